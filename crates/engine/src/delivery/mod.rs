//! From done to accepted: the place of a task's work, and the two gates before it is accepted.
//!
//! ```text
//! workspace opened ─► iterations ─► work committed ─► before_submit ─► submitted ─► before_merge ─► completed
//!                        ▲                               │ remediate       ▲ again, on a newer base  │
//!                        └───────────────────────────────┘                 └─────────────────────────┤
//!                                                        │ given up: the next run takes it up        │ rejected: ready again
//! ```
//!
//! Invariants:
//! - A gate stops at its first hook that does not pass: the remaining hooks are skipped.
//! - Merged work is accepted, whatever a later hook says. An objection after the merge ends the session for a person.
//! - A gate that could not be asked, or not to the end, has no verdict: the next session of the task asks it again. An agent
//!   works first only if the work has changed.
//! - A person's message since the work was called done is delivered before the work is accepted, as long as no merge has begun.
//! - The feedback of a gate reaches the next agent on the task, in this attempt or in another one.

mod change;
mod gate;
mod stalled_work;

use serde::{Deserialize, Serialize};

use crate::log::id::{RunId, Seq};
use crate::session::ending::SessionEnd;

pub use change::{
    ChangeApproval, ChangeFact, ChangeRef, HookMetadata, SubmissionCheck, SubmittedWork, TaskChange, Workspace,
    WorkspaceMode,
};
pub use gate::{DeliveryGate, GateFailure, GateFailureKind, GateFinding, GateHookEnd, GateRemedy, StalledWork};

/// Work on its way through the gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryPipeline {
    pub run: RunId,
    /// The end of the session if all gates pass.
    pub closing: SessionEnd,
    pub stage: DeliveryStage,
    /// The event whose hooks form the gate.
    pub at: Seq,
    /// The submitted work, if it lies in a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<SubmittedWork>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<GateFailure>,
    /// Whether the work is in the base, which is final.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// A hook's objection after the merge, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
    /// Whether the stop hooks judge the work too: they judged it on another base, or other hooks did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStage {
    Submitting,
    Submitted,
    Merging,
}

impl DeliveryPipeline {
    /// Returns whether a hook that has not started is skipped, because its gate is decided.
    pub(crate) fn is_gate_decided(&self, at: Seq) -> bool {
        at == self.at && self.broken.is_some()
    }

    pub fn current_gate(&self) -> DeliveryGate {
        match self.stage {
            DeliveryStage::Submitting | DeliveryStage::Submitted => DeliveryGate::BeforeSubmit,
            DeliveryStage::Merging => DeliveryGate::BeforeMerge,
        }
    }
}
