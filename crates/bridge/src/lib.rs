//! What agents' own hook systems say, and how each of them wants to be answered.
//!
//! ```text
//! standard input ─ parse ─► AgentHookRequest, in one set of words ─ judged elsewhere ─► AgentHookResponse
//!                                                                                          │ Contract: what the agent
//!                           stdout, stderr, exit ◄─ AgentHookOutput ◄──────────────────────┘ can be told at this event
//! ```
//!
//! Invariants:
//! - Text in, text out: no files, no environment, no clock.
//! - Exit code 2 and words that block are written for what a hook says, and never because something went wrong: for a no, and
//!   for what an agent can only be told as one.
//! - No answer has a field that its agent does not know.
//!
//! Not here: which hooks run, and what they decide (`engine`, `runner`); whose project it is (`cli`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod agent;
mod contract;
mod event;
mod output;
mod recognise;
mod request;
mod response;
pub mod settings;

pub use agent::{Agent, UnknownAgent};
pub use event::AgentHookEvent;
pub use output::{AgentHookOutput, Unsupported};
pub use request::{AgentHookRequest, AgentHookRequestError, AgentTool};
pub use response::AgentHookResponse;
