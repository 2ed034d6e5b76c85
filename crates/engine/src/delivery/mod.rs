//! From done to accepted: where the work of a task lies, and the two gates that it passes on its way to the others.
//!
//! ```text
//! workspace opened ─► iterations ─► work committed ─► before_submit ─► submitted ─► before_merge ─► completed
//!                        ▲                               │ remediate       ▲ again, on a newer base  │
//!                        └───────────────────────────────┘                 └─────────────────────────┤
//!                                                        │ given up: the next run takes it up        │ rejected: ready again
//! ```
//!
//! Invariants:
//! - A gate stops at its first hook that does not pass: what has not begun is skipped.
//! - What is merged is accepted, whatever a later hook says. An objection after the merge ends the session for a person.
//! - A gate that could not be asked, or not to the end, says nothing about the work: the next session of the task asks it again, and only if the work
//!   is not what it was an agent works first.
//! - Nothing is accepted over the head of a person: what was said since the work was called done is heard first, as long as no
//!   merge has begun.
//! - What a gate has to say reaches the agent that works on the task next, in this attempt or in another one.

mod change;
mod gate;
mod stalled;

use serde::{Deserialize, Serialize};

use crate::log::id::{RunId, Seq};
use crate::session::closing::Closing;

pub use change::{Approved, ChangeFact, ChangeRef, Grounds, HookContext, Readied, TaskChange, WorkDone, Workspace};
pub use gate::{Broken, Finding, Gate, HookEnd, Remedy, Stalled, Why};

/// Work on its way through the gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pipeline {
    pub run: RunId,
    /// How the session ends when all is well.
    pub closing: Closing,
    pub stage: Stage,
    /// The event whose hooks are the gate.
    pub at: Seq,
    /// What is on its way, where it lies in a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkDone>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Broken>,
    /// It is in the base: nothing takes that back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// What a hook has against the work after it was merged, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
    /// The stop hooks judge it too: they judged it on another base, or were others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Submitting,
    Submitted,
    Merging,
}

impl Pipeline {
    /// Whether a hook that has not begun need not run: its gate is decided.
    pub(crate) fn is_decided(&self, at: Seq) -> bool {
        at == self.at && self.broken.is_some()
    }

    pub fn gate(&self) -> Gate {
        match self.stage {
            Stage::Submitting | Stage::Submitted => Gate::BeforeSubmit,
            Stage::Merging => Gate::BeforeMerge,
        }
    }
}
