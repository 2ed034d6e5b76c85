//! Command hooks: what one is given, how it is run, and what its end means.
//!
//! ```text
//! Hook + Call ─ call ─► process::Spec ─ run elsewhere ─► Finished ─ answer ─► HookReport: outcome, message, feedback
//! ```
//!
//! Invariants:
//! - Text from outside never becomes shell text: it travels in the payload and in variables (`script`).
//! - What a hook wrote is cleaned and cut before anybody else sees it.
//!
//! Not here: which hooks are owed when (`engine`), starting programs (`process`), the log.

mod answer;
mod call;
mod script;
mod text;

use std::time::Duration;

pub use answer::answer;
pub use call::Call;
pub use script::{Carrier, Script, UnsafeTemplate, Values};
pub use text::{clean, cut};

/// A command that runs at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub name: String,
    pub command: Script,
    pub timeout: Duration,
    /// Whether its output reaches the agent.
    pub pipes: bool,
    /// Bytes of output that are kept for the agent.
    pub max_output: usize,
}

/// Whether a point's verdict decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Gate,
    Observer,
}
