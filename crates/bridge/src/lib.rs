//! The contracts of agents' own hook systems: what they send, and which answers they understand.
//!
//! ```text
//! standard input ─ parse_payload ─► AgentHookRequest, in Claude Code's names ─ judged elsewhere ─► AgentHookResponse
//!                                                                                                     │ AgentContract: what the
//!                                      stdout, stderr, exit ◄─ AgentHookOutput ◄──────────────────────┘ agent supports here
//! ```
//!
//! Invariants:
//! - Text in, text out: no files, no environment, no clock.
//! - Exit code 2 and blocking answers stand for a hook's response, never for an error: for a block, and for a response that
//!   an agent supports only as a block.
//! - No answer has a field that its agent does not know.
//!
//! Not here: which hooks run and what they decide (`engine`, `runner`); which project is concerned (`cli`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod agent;
mod contract;
mod event;
mod identification;
mod output;
mod request;
mod response;
pub mod settings;

pub use agent::{BridgeAgent, UnknownAgentError};
pub use event::AgentHookEvent;
pub use output::{AgentHookOutput, UnsupportedPart};
pub use request::{AgentHookRequest, AgentHookRequestError, AgentTool};
pub use response::AgentHookResponse;
