//! The source of a session's tasks, its hold on a task, and the ways to leave or lose one.

use serde::{Deserialize, Serialize};

use crate::log::id::{Epoch, TaskId};
use crate::task::Task;

/// The source of a session's tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkSource {
    /// The session was started with one task, or with a goal.
    #[default]
    Given,
    /// The ready tasks of the graph, one after another until none is left.
    Graph,
}

impl WorkSource {
    pub fn is_given(&self) -> bool {
        *self == Self::Given
    }
}

/// The hold of a session on its task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskHold {
    /// The session has held no task yet. Sessions of older versions never do.
    #[default]
    Never,
    Held(Epoch),
    /// The session has left the task, or has lost it.
    Left,
}

impl TaskHold {
    pub fn is_never(&self) -> bool {
        *self == Self::Never
    }
}

/// A task that was taken from a session before the session left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LostTask {
    pub task: TaskId,
    /// The epoch under which the session held the task.
    pub epoch: Epoch,
    /// The branch with the session's work, if it worked in a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl LostTask {
    /// Describes who holds the task now or held it last, and where this session's work stays.
    pub fn describe_loss(&self, task: &Task) -> String {
        let (id, state) = (task.id, task.state);
        let taker = task.taken.as_ref().and_then(|taken| taken.by.clone());
        let said = match (&task.lease, taker) {
            (Some(lease), _) => format!("{id} was taken by {} (epoch {})", lease.holder_name(), lease.epoch),
            (None, Some(by)) if self.epoch < task.epoch => {
                format!("{id} was taken by {by} (epoch {}), and is {state} now", task.epoch)
            }
            (None, _) => format!("{id} is {state} now, changed outside this session"),
        };
        match self
            .branch
            .as_ref()
            .filter(|branch| task.former_workspaces.iter().any(|former| former.branch == **branch))
        {
            Some(branch) => format!("{said}; the work of this session stays on {branch}"),
            None => said,
        }
    }
}

/// The way in which a session leaves its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskExit {
    /// The gate has passed the work.
    Completed,
    /// A person has to decide, for this reason.
    Blocked(String),
    /// The task can be continued. The session left it for this reason.
    Unfinished(String),
    /// The task can be started as if the session had not been. No agent could work on it, for this reason.
    Released(String),
}
