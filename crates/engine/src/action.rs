//! What a hook asks the engine to do.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::command::NewTask;
use crate::event::{Event, EventType, Node};
use crate::id::TaskId;

/// An action as a hook's answer words it: nobody has looked yet whether it can be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub payload: Value,
}

/// A change to a task that a hook may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskAction {
    /// Nothing is in its way any more, perhaps because this task was completed.
    Ready { after: Option<TaskId> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    CreateTask(NewTask),
    UpdateTask {
        task: TaskId,
        action: TaskAction,
    },
    /// Adds an event that bears no state.
    Log {
        node: Node,
        event: Event,
    },
}

impl Action {
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateTask(_) => "create_task",
            Self::UpdateTask { .. } => "update_task",
            Self::Log { .. } => "log",
        }
    }

    /// The action as it is recorded where it fails.
    pub(crate) fn payload(&self) -> Value {
        match self {
            Self::CreateTask(new) => json!({
                "goal": new.goal,
                "deliverables": new.deliverables,
                "labels": new.labels,
                "priority": new.priority,
                "parentTaskId": new.parent,
            }),
            Self::UpdateTask { task, action: TaskAction::Ready { .. } } => json!({"taskId": task, "action": "ready"}),
            Self::Log { node, event } => json!({"type": event.kind(), "nodeId": node, "data": event}),
        }
    }

    /// Whether it counts towards the bound on a cascade. Becoming ready does not: every task does so once, so the graph
    /// bounds it, and one that never did would be work lost.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self, Self::UpdateTask { action: TaskAction::Ready { .. }, .. })
    }
}

/// Whether an event only tells something: such events may be logged by anybody.
pub(crate) fn is_stateless(event: EventType) -> bool {
    matches!(event, EventType::DependencySatisfied | EventType::AgentMetrics | EventType::AutoLabelSuggestion)
}
