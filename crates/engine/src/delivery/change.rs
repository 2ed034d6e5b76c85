//! The work of a task: its place, its submission, and the change that others see.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::log::id::{ConfigDigest, Digest, Seq, TaskId};

/// The place where a session does its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMode {
    /// The directory of the project itself.
    #[default]
    InPlace,
    /// A git worktree per task.
    Worktrees,
}

impl WorkspaceMode {
    pub fn is_in_place(&self) -> bool {
        *self == Self::InPlace
    }
}

/// The worktree of a task, and the branch that holds its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workspace {
    pub branch: String,
    /// The target branch of the work.
    pub base: String,
    /// The commit that the work starts from.
    pub start: String,
    /// The name of the worktree within the project.
    pub name: String,
    /// The tasks that this work is stacked on, because their work is not merged yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacked_on: Vec<TaskId>,
    /// The content of the protected files in the worktree before the work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<ConfigDigest>,
}

/// The submitted work of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmittedWork {
    /// The last commit.
    pub head: String,
    /// The number of commits beyond the base.
    pub commits: u32,
    /// The number of changed files.
    pub files: u32,
}

/// The result of preparing work for submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmissionCheck {
    Work(SubmittedWork),
    /// Committed work that the stop hooks have not judged in this form: ignored or filtered files were beside it, it
    /// has changed since, or it was rebased. The stop hooks judge the commit.
    Unjudged(SubmittedWork),
    /// The agent's final message, if its task asks for a report.
    Report(String),
    /// The work cannot be submitted. `hook` names the check; the texts are for people and for the agent.
    NotSubmittable {
        hook: String,
        reason: String,
        feedback: String,
    },
}

/// A reference to a change, for others to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The page of the change on a forge; without it, the change is known to this log only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The forge's number of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// A change, and whether it is merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskChange {
    #[serde(flatten)]
    pub at: ChangeRef,
    pub opened: Seq,
    /// The commit that contains the change in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
}

/// A fact about a change that a hook reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeFact {
    Opened(ChangeRef),
    /// The commit that contains the change in the base.
    Merged(String),
}

/// The approval of a change by gatekeepers: the same lines, under the same configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeApproval {
    pub patch: Digest,
    /// The briefs under which the change was approved.
    pub briefs: Vec<String>,
}

impl ChangeApproval {
    /// Adds earlier approvals of the same change.
    pub(crate) fn merge_earlier_approval(&self, before: Option<&Self>) -> Self {
        let mut briefs =
            before.filter(|before| before.patch == self.patch).map(|it| it.briefs.clone()).unwrap_or_default();
        let new: Vec<String> = self.briefs.iter().filter(|brief| !briefs.contains(brief)).cloned().collect();
        briefs.extend(new);
        Self { patch: self.patch, briefs }
    }
}

/// Values that a hook has published, by name.
pub type HookMetadata = Map<String, Value>;
