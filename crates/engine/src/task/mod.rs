//! The rows of the graph: tasks and the edges between them.

pub(crate) mod graph;
pub(crate) mod note;
pub(crate) mod resolution;
pub(crate) mod review;
pub(crate) mod transitions;
pub(crate) mod types;

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::note::Memo;
use self::resolution::Answered;
use crate::delivery::{Approved, Finding, Stalled, TaskChange, Workspace};
use crate::evaluation::Drive;
use crate::log::id::{EdgeId, Epoch, OwnerName, RunId, Seq, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::log::value_names::value_names;
use crate::session::Piece;
use crate::session::usage::Usage;

/// Where a task stands. The legal moves between states are in [`crate::MOVES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for its dependencies.
    Created,
    Ready,
    Active,
    Submitted,
    Completed,
    /// Waits for a person.
    Blocked,
    /// Was worked on without getting there; the next run takes it up.
    NeedsContinuation,
    Failed,
    Deleted,
}

value_names!(
    State,
    "task state",
    Created = "created",
    Ready = "ready",
    Active = "active",
    Submitted = "submitted",
    Completed = "completed",
    Blocked = "blocked",
    NeedsContinuation = "needs_continuation",
    Failed = "failed",
    Deleted = "deleted",
);

impl State {
    /// Somebody may take it up now.
    pub fn is_claimable(self) -> bool {
        matches!(self, Self::Ready | Self::NeedsContinuation)
    }
}

/// 0 is the most urgent, 4 the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    pub const LEAST: Self = Self(4);
}

impl Default for Priority {
    fn default() -> Self {
        Self(2)
    }
}

impl TryFrom<u8> for Priority {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if number <= 4 { Ok(Self(number)) } else { Err(format!("{number} is no priority: 0 (most urgent) to 4")) }
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: u8 = text.parse().map_err(|_| format!("`{text}` is no priority: 0 (most urgent) to 4"))?;
        number.try_into()
    }
}

impl Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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
    /// The commits that a person is told of with it, by their whole ids: none that anybody but the loop has named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
}

/// Who is working on a task, and until when that holds unless renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    pub owner: OwnerName,
    pub epoch: Epoch,
    /// Without one it lasts as long as its session has the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The session that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
}

impl Lease {
    /// Whoever holds it, as people know them.
    pub fn holder(&self) -> String {
        match &self.session {
            Some(session) => format!("session `{session}`"),
            None => self.owner.to_string(),
        }
    }
}

/// That a task was taken from the session that worked on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    pub from: SessionName,
    /// The one that it was held under.
    pub epoch: Epoch,
    /// Whoever held it last afterwards, as people know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Taken {
    /// The same once somebody has claimed the task: nothing is taken from whoever gets it back.
    pub(crate) fn by(self, lease: &Lease) -> Option<Self> {
        let by = Some(lease.holder());
        (lease.session.as_ref() != Some(&self.from)).then_some(Self { by, ..self })
    }
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

/// What one task is to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// The first waits until the second is completed.
    DependsOn,
    SpawnedBy,
    /// The second waits until the first is completed.
    Blocks,
    References,
    Produces,
    RequiresKnowledge,
}

value_names!(
    EdgeKind,
    "edge kind",
    DependsOn = "depends_on",
    SpawnedBy = "spawned_by",
    Blocks = "blocks",
    References = "references",
    Produces = "produces",
    RequiresKnowledge = "requires_knowledge",
);

/// A directed edge of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    pub id: EdgeId,
    pub from_id: TaskId,
    pub to_id: TaskId,
    #[serde(rename = "edgeType")]
    pub kind: EdgeKind,
}

impl Edge {
    /// `(who waits, for whom)`, if the edge makes anybody wait.
    pub fn wait(&self) -> Option<(TaskId, TaskId)> {
        match self.kind {
            EdgeKind::DependsOn => Some((self.from_id, self.to_id)),
            EdgeKind::Blocks => Some((self.to_id, self.from_id)),
            _ => None,
        }
    }
}
