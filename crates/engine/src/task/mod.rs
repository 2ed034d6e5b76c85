//! Tasks: the row of a task, and the types of its fields.

pub(crate) mod edge;
mod facts;
pub(crate) mod graph;
pub(crate) mod lease;
pub(crate) mod note;
mod priority;
pub(crate) mod resolution;
pub(crate) mod review;
pub(crate) mod state;
pub(crate) mod transitions;
pub(crate) mod types;

use serde::{Deserialize, Serialize};

use self::note::NoteIndex;
use self::resolution::PendingAnswer;
use crate::delivery::{ChangeApproval, GateFinding, StalledWork, TaskChange, Workspace};
use crate::evaluation::EvaluationState;
use crate::log::id::{Epoch, Seq, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::FeedbackRef;
use crate::session::usage::AgentUsage;

pub use edge::{EdgeKind, TaskEdge};
pub use facts::{BlockDetails, CompletionClaim, ReportRequest, TaskConversation};
pub use lease::{Lease, TaskTakeover};
pub use priority::TaskPriority;
pub use state::TaskState;

fn is_never(count: &u32) -> bool {
    *count == 0
}

/// A node of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub id: TaskId,
    pub goal: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    pub deliverables: Vec<String>,
    pub labels: Vec<String>,
    pub priority: TaskPriority,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TypeName>,
    /// Set when the task ends with a report instead of a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportRequest>,
    pub state: TaskState,
    /// The number of distinct tasks that it waits for and that are not completed.
    pub open_dependencies: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockDetails>,
    /// The reason why it failed or needs another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<CompletionClaim>,
    /// A person's answer for the next agent or person on the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<PendingAnswer>,
    /// Messages of people that sessions of older versions did not deliver before they ended.
    #[serde(rename = "unsaid", default, skip_serializing_if = "Vec::is_empty")]
    pub undelivered_messages: Vec<FeedbackRef>,
    /// Feedback that no finished turn has delivered. It opens the next session of the task.
    #[serde(rename = "unheard", default, skip_serializing_if = "Vec::is_empty")]
    pub undelivered_feedback: Vec<FeedbackRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<TaskConversation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The place of the work, if it is not the project's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// Whether its last session worked in the project's own directory, where the unfinished work lies.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_place: bool,
    /// The worktrees of earlier holders whose lease ran out while they were silent, the latest last.
    #[serde(rename = "former", default, skip_serializing_if = "Vec::is_empty")]
    pub former_workspaces: Vec<Workspace>,
    /// The last takeover of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<TaskTakeover>,
    /// The change that shows the work to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<TaskChange>,
    /// The findings that the next agent has to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<GateFinding>,
    /// The number of rejections so far.
    #[serde(default, skip_serializing_if = "is_never")]
    pub rejections: u32,
    /// The reason of the last rejection, until the same hook lets the work pass or rejects it for another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<GateFinding>,
    /// The approvals of gatekeepers for the work as last judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<ChangeApproval>,
    /// Set when the work was judged done and only a gate could not be asked. As long as it is set, no agent has to work
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<StalledWork>,
    /// The notes about the task.
    #[serde(default, skip_serializing_if = "NoteIndex::is_empty")]
    pub memo: NoteIndex,
    /// The usage of all turns on the task, as far as agents report it.
    #[serde(default, skip_serializing_if = "AgentUsage::is_nothing")]
    pub used: AgentUsage,
    /// The state of an agent that drives itself: stop hooks, series and checkpoints.
    #[serde(rename = "drive", default, skip_serializing_if = "EvaluationState::is_empty")]
    pub evaluation: EvaluationState,
    /// The last epoch that was assigned.
    pub epoch: Epoch,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The last event that changed this row: the version of the task's scope.
    pub version: Seq,
    /// The last event of this task itself: the head of its history.
    pub last_event: Seq,
}

impl Task {
    /// Keeps feedback for the next session, in the order in which it was queued.
    pub(crate) fn keep_undelivered_feedback(&mut self, pieces: Vec<FeedbackRef>) {
        self.undelivered_feedback.extend(pieces);
        self.undelivered_feedback.sort_by_key(|piece| piece.at);
    }

    /// Returns the goal, then a blank line and the body if there is one.
    pub fn goal_and_body(&self) -> String {
        match &self.body {
            Some(body) => format!("{}\n\n{body}", self.goal),
            None => self.goal.clone(),
        }
    }

    /// Returns the first line of the goal that is not blank.
    pub fn title(&self) -> &str {
        self.goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("Work")
    }

    /// Returns the change of the task, while it is not merged.
    pub fn open_change(&self) -> Option<&TaskChange> {
        self.change.as_ref().filter(|change| change.merged.is_none())
    }

    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|l| l == label)
    }
}
