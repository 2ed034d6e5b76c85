//! The states of a task.

use serde::{Deserialize, Serialize};

use crate::log::value_names::value_names;

/// The state of a task. The legal transitions are in [`crate::TASK_TRANSITIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Waits for its dependencies.
    Created,
    Ready,
    Active,
    Submitted,
    Completed,
    /// Waits for a person.
    Blocked,
    /// Work has ended without completion; the next run continues it.
    NeedsContinuation,
    Failed,
    Deleted,
}

value_names!(
    TaskState,
    "task state",
    Created = "created",
    Ready = "ready",
    Active = "active",
    Submitted = "submitted",
    Completed = "completed",
    Blocked = "blocked",
    NeedsContinuation = "needs_continuation",
    Failed = "failed",
    Deleted = "deleted",
);

impl TaskState {
    /// Returns whether a worker may claim the task now.
    pub fn is_claimable(self) -> bool {
        matches!(self, Self::Ready | Self::NeedsContinuation)
    }
}
