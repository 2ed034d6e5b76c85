//! The tools over the Model Context Protocol: what is said and how it is guarded.
//!
//! ```text
//! standard streams ─► lines: bounded ─────────────► message: read, or refused with an error of its own ─┐
//! HTTP ─► token ─► body: bounded in size and time ─► message ─► rmcp: Host, Origin, sessions ──────────┤
//!                                                                                                      ▼
//!                            a desk of the pool ◄─ inline, or in a thread where it may change something ◄─ handler (rmcp)
//! ```
//!
//! Invariants:
//! - Standard output carries the protocol and nothing else.
//! - Whatever is sent, the server is still there, and what it holds in memory is bounded.
//! - Everything is done by one thread, but for calls that may change something: those have threads, and are few.
//! - Nothing is opened before the first call needs it.
//!
//! Not here: what the tools are and do (`tools`), the rules (`engine`), where a token comes from (`cli`).

mod handler;
mod http;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod lines;
mod message;
mod pool;
mod server;
mod stdio;
#[cfg(test)]
mod tests;

pub use http::{AddressError, Listening, Token, TokenError};
pub use server::{Driven, Server, Stop, ToolRouter};
