//! Command hooks: what one is given, how it is run, and what its end means.
//!
//! ```text
//! Hook + Call ─ call ─► process::Spec ─ run elsewhere ─► Finished ─ answer ─► HookReport: outcome, message, feedback
//! ```
//!
//! Invariants:
//! - Text from outside never becomes shell text: it travels in the payload and in variables.
//! - What a hook wrote is cleaned and cut before anybody else sees it.
//!
//! Not here: which hooks are owed when (`engine`), starting programs (`process`), the log.

mod answer;
mod call;
mod fields;
mod forms;
pub mod mask;
mod meaning;
pub mod said;
mod signs;
mod telling;
mod text;

use std::time::Duration;

pub use answer::{Parts, answer};
pub use call::Call;
pub use mask::Mask;
pub use said::{BadAnswer, Said};
pub use text::{clean, cut};

/// A command that runs at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub name: String,
    /// A script for the shell.
    pub command: String,
    pub timeout: Duration,
    /// Whether its output reaches the agent.
    pub pipes: bool,
    /// Bytes of output that are kept for the agent.
    pub max_output: usize,
}

/// What a place makes of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The stop gate: the agent can be sent back.
    Stop,
    /// `before_submit` and `before_merge`: only success and skip pass.
    Pipeline,
    /// Everything else: nothing can be blocked.
    Observer,
}

impl Role {
    /// Whether what happens next depends on the verdict.
    pub fn is_gate(self) -> bool {
        self != Self::Observer
    }
}
