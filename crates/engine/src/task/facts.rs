//! Parts of a task's row that come from single events: claims, blocks, reports and conversations.

use serde::{Deserialize, Serialize};

use crate::log::id::{RunId, TaskId};
use crate::session::usage::AgentUsage;

/// The reason why a task waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockDetails {
    pub reason: String,
    /// The knowledge that the agent lacks.
    pub required_knowledge: Vec<String>,
    /// The dependency whose end blocked the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<TaskId>,
    /// The stop hooks that blocked the task's session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// The commits that the message to the person names, as full ids: only those that the loop has named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
}

/// A request for a report instead of a change. The agent's final message is the report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReportRequest {
    /// The task whose change the report is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviews: Option<TaskId>,
    /// The task's type asks for the report, not the task itself: the next claim checks the type again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_type: bool,
}

/// The last conversation about a task. The next session of the task continues it if it has the same agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskConversation {
    /// The agent as the session names it: `command:…`.
    pub agent: String,
    /// The agent's own name for the conversation.
    pub name: String,
    /// The usage of the conversation: some agents report only this total.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub used: AgentUsage,
}

/// An agent's claim, made during its turn, that the task is done. The runner has it judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompletionClaim {
    pub run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    pub artifacts: Vec<String>,
}
