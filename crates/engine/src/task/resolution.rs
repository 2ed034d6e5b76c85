//! What a person says where a task cannot go on without one.

use serde::{Deserialize, Serialize};

use crate::log::value_names::value_names;
use crate::task::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It goes on, with what the person has to say.
    Continue,
    /// The same, with every count started again; a failed task is taken up again too.
    Retry,
    /// It is completed, whatever the gates say.
    Approve,
    /// It has failed.
    Reject,
    /// It goes on, and the hooks that blocked it are not counted until the agent next says that it is done.
    IgnoreHook,
}

value_names!(
    Resolution,
    "answer",
    Continue = "continue",
    Retry = "retry",
    Approve = "approve",
    Reject = "reject",
    IgnoreHook = "ignore-hook",
);

impl Resolution {
    /// Whether a task in this state can be answered so.
    pub fn answers(self, state: State) -> bool {
        match state {
            State::Blocked => true,
            State::NeedsContinuation => self != Self::IgnoreHook,
            State::Failed => matches!(self, Self::Retry | Self::Approve),
            _ => false,
        }
    }
}

/// What is owed to whoever works on a task next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The stop hooks that are not counted once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignores: Vec<String>,
}
