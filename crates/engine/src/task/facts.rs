//! What the row of a task keeps of single events: claims, blocks, reports and conversations.

use serde::{Deserialize, Serialize};

use crate::log::id::{RunId, TaskId};
use crate::session::usage::Usage;

/// Why a task waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blocked {
    pub reason: String,
    /// What would have to be known.
    pub required_knowledge: Vec<String>,
    /// The dependency whose end blocked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<TaskId>,
    /// The stop hooks that did not let its session go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// The commits that a person is told of with it, by their whole ids: only those that the loop has named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
}

/// What a task asks for in place of a change: a report, which is the agent's final message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReportRequest {
    /// The task whose change the report is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviews: Option<TaskId>,
    /// The type of the task asks for it, and not the task itself: the next claim looks at the type again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_type: bool,
}

/// The last conversation about a task, which its next session goes on with if its agent is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskConversation {
    /// As it was given: `command:…`.
    pub agent: String,
    /// The agent's own name for it.
    pub name: String,
    /// What was used in it: some agents tell only the sum.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub used: Usage,
}

/// An agent's word, from inside its turn, that the task is done. The runner judges it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    pub run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    pub artifacts: Vec<String>,
}
