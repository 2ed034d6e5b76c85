//! The answers of people to tasks that cannot go on without one.

use serde::{Deserialize, Serialize};

use crate::log::value_names::value_names;
use crate::task::TaskState;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskResolution {
    /// The task goes on, with the person's text.
    Continue,
    /// The task goes on, and all counts start again. A failed task is reopened.
    Retry,
    /// The task is completed without the gates.
    Approve,
    /// The task has failed.
    Reject,
    /// The task goes on, and the hooks that blocked it are ignored until the agent next claims that it is done.
    IgnoreHook,
}

value_names!(
    TaskResolution,
    "answer",
    Continue = "continue",
    Retry = "retry",
    Approve = "approve",
    Reject = "reject",
    IgnoreHook = "ignore-hook",
);

impl TaskResolution {
    /// Returns whether a task in this state accepts this answer.
    pub fn applies_to_state(self, state: TaskState) -> bool {
        match state {
            TaskState::Blocked => true,
            TaskState::NeedsContinuation => self != Self::IgnoreHook,
            TaskState::Failed => matches!(self, Self::Retry | Self::Approve),
            _ => false,
        }
    }
}

/// A person's answer for the next agent or person on the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingAnswer {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The stop hooks that are ignored once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignores: Vec<String>,
}
