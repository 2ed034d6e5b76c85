//! Where a session has its work from, whether it holds a task, and how it leaves or loses one.

use serde::{Deserialize, Serialize};

use crate::log::id::{Epoch, TaskId};
use crate::task::Task;

/// Where a session has its work from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// It was started with one task, or with a goal.
    #[default]
    Given,
    /// The graph's ready tasks, one after another until none is left.
    Graph,
}

impl Work {
    pub fn is_given(&self) -> bool {
        *self == Self::Given
    }
}

/// Whether a session holds its task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// It has held none yet. Sessions of older versions never do.
    #[default]
    Never,
    Held(Epoch),
    /// It was left, or somebody took it away.
    Left,
}

impl Hold {
    pub fn is_never(&self) -> bool {
        *self == Self::Never
    }
}

/// A task that was taken from a session before it could leave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    pub task: TaskId,
    /// The one that it held the task under.
    pub epoch: Epoch,
    /// What it has done is there, if it was worked on in a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl Lost {
    /// Who has the task now or had it last, and where the work of this session stays.
    pub fn in_words(&self, task: &Task) -> String {
        let (id, state) = (task.id, task.state);
        let taker = task.taken.as_ref().and_then(|taken| taken.by.clone());
        let said = match (&task.lease, taker) {
            (Some(lease), _) => format!("{id} was taken by {} (epoch {})", lease.holder(), lease.epoch),
            (None, Some(by)) if self.epoch < task.epoch => {
                format!("{id} was taken by {by} (epoch {}), and is {state} now", task.epoch)
            }
            (None, _) => format!("{id} is {state} now, and not by this session"),
        };
        match self.branch.as_ref().filter(|branch| task.former.iter().any(|former| former.branch == **branch)) {
            Some(branch) => format!("{said}; what was done here stays on {branch}"),
            None => said,
        }
    }
}

/// How a session leaves its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// The gate has said so.
    Completed,
    /// A person has to look, and why.
    Blocked(String),
    /// It can be taken up again, and why it was left.
    Unfinished(String),
    /// It can be taken up again as if nothing had been: nobody could work on it, and why.
    Released(String),
}
