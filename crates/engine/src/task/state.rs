//! Where a task stands.

use serde::{Deserialize, Serialize};

use crate::log::value_names::value_names;

/// Where a task stands. The legal moves between states are in [`crate::MOVES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for its dependencies.
    Created,
    Ready,
    Active,
    Submitted,
    Completed,
    /// Waits for a person.
    Blocked,
    /// Was worked on without getting there; the next run takes it up.
    NeedsContinuation,
    Failed,
    Deleted,
}

value_names!(
    State,
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

impl State {
    /// A worker may take it up now.
    pub fn is_claimable(self) -> bool {
        matches!(self, Self::Ready | Self::NeedsContinuation)
    }
}
