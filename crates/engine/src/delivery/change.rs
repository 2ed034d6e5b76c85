//! The work of a task: where it lies, what of it is submitted, and the change that others see.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::log::id::{ConfigDigest, Digest, Seq, TaskId};

/// Where a session does its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// In the directory of the project, as it is.
    #[default]
    InPlace,
    /// In a git worktree for each task.
    Worktrees,
}

impl Grounds {
    pub fn is_in_place(&self) -> bool {
        *self == Self::InPlace
    }
}

/// The worktree of a task, and the branch that holds its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workspace {
    pub branch: String,
    /// The branch that the work is meant for.
    pub base: String,
    /// The commit that the work begins after.
    pub start: String,
    /// The worktree's name among those of the project.
    pub name: String,
    /// The tasks on whose work it stands, because theirs is not merged yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacked_on: Vec<TaskId>,
    /// What the protected files held there before the work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<ConfigDigest>,
}

/// The work of a task as it is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkDone {
    /// The last commit.
    pub head: String,
    /// How many there are beyond the base.
    pub commits: u32,
    /// How many files they change.
    pub files: u32,
}

/// What there is to be submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readied {
    Work(WorkDone),
    /// Work that the stop hooks have not judged as it was committed: files that git ignores or filters were beside it, it has
    /// changed since, or it was brought onto another base. They judge the commit.
    Unjudged(WorkDone),
    /// What the agent said at the end of its work, where its task asks for a report.
    Report(String),
    /// It is not in order. The hook is what finds that, and the reasons are for people and for the agent.
    Unfit {
        hook: String,
        reason: String,
        feedback: String,
    },
}

/// How the work of a task can be looked at by others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Where a forge shows it; without one it is in this log alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The forge's number for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// A change, and what has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskChange {
    #[serde(flatten)]
    pub at: ChangeRef,
    pub opened: Seq,
    /// The commit that has it in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
}

/// What a hook has done about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeFact {
    Opened(ChangeRef),
    /// The commit that has it in the base.
    Merged(String),
}

/// A change as gatekeepers have approved it: the same lines, under the same configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approved {
    pub patch: Digest,
    /// The briefs by which it was.
    pub briefs: Vec<String>,
}

impl Approved {
    /// What was approved of the same change before counts as well.
    pub(crate) fn after(&self, before: Option<&Self>) -> Self {
        let mut briefs =
            before.filter(|before| before.patch == self.patch).map(|it| it.briefs.clone()).unwrap_or_default();
        let new: Vec<String> = self.briefs.iter().filter(|brief| !briefs.contains(brief)).cloned().collect();
        briefs.extend(new);
        Self { patch: self.patch, briefs }
    }
}

/// What a hook has told about itself, by names.
pub type HookContext = Map<String, Value>;
