//! Tasks: the row of a task, and below it what its fields hold.

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

use self::note::Memo;
use self::resolution::Answered;
use crate::delivery::{Approved, Finding, Stalled, TaskChange, Workspace};
use crate::evaluation::Drive;
use crate::log::id::{Epoch, Seq, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::Piece;
use crate::session::usage::Usage;

pub use edge::{Edge, EdgeKind};
pub use facts::{Blocked, Claim, ReportRequest, TaskConversation};
pub use lease::{Lease, Taken};
pub use priority::Priority;
pub use state::State;

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
    pub priority: Priority,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TypeName>,
    /// It ends with a report, and without a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportRequest>,
    pub state: State,
    /// How many different tasks it waits for that are not completed.
    pub open_dependencies: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// Why it failed, or why it needs another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// What a person has to say to whoever works on it next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answered>,
    /// What a person has said to sessions of older versions that ended before their agent heard it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaid: Vec<Piece>,
    /// Feedback that no finished turn has heard. It opens the next session of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<Piece>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<TaskConversation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// Where the work on it lies, if not in the project's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// The session that had it last worked in the project's own directory: what there is of the work lies there.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_place: bool,
    /// Where it was worked on before, by those whose lease ran out while they were silent, the last one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<Workspace>,
    /// From whom it was taken last, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// How others can look at the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<TaskChange>,
    /// What whoever works on it next has to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// How often it was judged and not accepted.
    #[serde(default, skip_serializing_if = "is_never")]
    pub rejections: u32,
    /// What it was last rejected for, until the same hook lets it pass or rejects it for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Finding>,
    /// What gatekeepers have approved of the work as it was last judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// Its work was judged done, and only a gate could not be asked: as long as that is so, nobody need work on it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<Stalled>,
    /// What was said about it.
    #[serde(default, skip_serializing_if = "Memo::is_empty")]
    pub memo: Memo,
    /// What turns on it have used, where agents tell.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub used: Usage,
    /// What an agent drives itself with.
    #[serde(default, skip_serializing_if = "Drive::is_empty")]
    pub drive: Drive,
    /// The last epoch that was given out.
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
    pub(crate) fn keep_unheard(&mut self, pieces: Vec<Piece>) {
        self.unheard.extend(pieces);
        self.unheard.sort_by_key(|piece| piece.at);
    }

    /// The goal, then a blank line and the body if there is one.
    pub fn content(&self) -> String {
        match &self.body {
            Some(body) => format!("{}\n\n{body}", self.goal),
            None => self.goal.clone(),
        }
    }

    /// The first line of the goal that says anything.
    pub fn title(&self) -> &str {
        self.goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("Work")
    }

    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|l| l == label)
    }
}
