//! The edges of the graph: relations between tasks.

use serde::{Deserialize, Serialize};

use crate::log::id::{EdgeId, TaskId};
use crate::log::value_names::value_names;

/// The relation of one task to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// The first task waits until the second is completed.
    DependsOn,
    SpawnedBy,
    /// The second task waits until the first is completed.
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
pub struct TaskEdge {
    pub id: EdgeId,
    pub from_id: TaskId,
    pub to_id: TaskId,
    #[serde(rename = "edgeType")]
    pub kind: EdgeKind,
}

impl TaskEdge {
    /// Returns the waiting task and the awaited one, if the edge makes a task wait.
    pub fn waiting_pair(&self) -> Option<(TaskId, TaskId)> {
        match self.kind {
            EdgeKind::DependsOn => Some((self.from_id, self.to_id)),
            EdgeKind::Blocks => Some((self.to_id, self.from_id)),
            _ => None,
        }
    }
}
