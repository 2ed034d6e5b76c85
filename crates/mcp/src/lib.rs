//! The tools over the Model Context Protocol: transports, messages and admission.
//!
//! ```text
//! standard streams ─► lines: bounded ─────────────► message: read, or refused with an error of its own ─┐
//! HTTP ─► token ─► body: bounded in size and time ─► message ─► rmcp: Host, Origin, sessions ──────────┤
//!                                                                                                      ▼
//!                                a router of the pool ◄─ inline, or in a thread if it may change something ◄─ handler (rmcp)
//! ```
//!
//! Invariants:
//! - Standard output carries the protocol and nothing else.
//! - No input ends the server, and its memory is bounded.
//! - One thread does everything except calls that may change something: those have threads, and are few.
//! - No store is opened before the first call needs it.
//!
//! Not here: the tools (`tools`), the rules (`engine`), the origin of a token (`cli`).

mod bounded_lines;
mod handler;
mod http;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod message;
mod router_pool;
mod server;
mod stdio;
#[cfg(test)]
mod tests;

pub use http::{AccessToken, AccessTokenError, AddressError, BoundAddress, McpRoute};
pub use server::{AgentDriverKind, StopHandle, ToolCaller, ToolServer};
