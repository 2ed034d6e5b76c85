//! What a hook asks the engine to do.

mod parser;
pub(crate) mod request;

use serde_json::{Map, Value, json};

use crate::command::NewTask;
use crate::log::event::{Event, Node};
use crate::log::event_type::EventType;
use crate::log::id::TaskId;

pub use request::ActionRequest;

/// A change to a task that a hook may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskAction {
    /// Nothing is in its way any more, perhaps because this task was completed.
    Ready {
        after: Option<TaskId>,
    },
    Start {
        context: Value,
    },
    Complete {
        result: Option<String>,
        artifacts: Vec<String>,
    },
    Block {
        reason: String,
        required_knowledge: Vec<String>,
    },
    Unblock,
    Fail {
        reason: String,
    },
    /// These instead of the present ones.
    SetLabels(Vec<String>),
    AddLabels(Vec<String>),
    RemoveLabels(Vec<String>),
}

impl TaskAction {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "ready",
            Self::Start { .. } => "start",
            Self::Complete { .. } => "complete",
            Self::Block { .. } => "block",
            Self::Unblock => "unblock",
            Self::Fail { .. } => "fail",
            Self::SetLabels(_) => "set_labels",
            Self::AddLabels(_) => "add_labels",
            Self::RemoveLabels(_) => "remove_labels",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    CreateTask(NewTask),
    UpdateTask {
        task: TaskId,
        action: TaskAction,
    },
    ExecuteWorkflow {
        id: String,
        /// What it is given.
        context: Map<String, Value>,
        /// What it is about.
        task: Option<TaskId>,
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
            Self::ExecuteWorkflow { .. } => "execute_workflow",
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
            Self::UpdateTask { task, action } => json!({"taskId": task, "action": action.name()}),
            Self::ExecuteWorkflow { id, context, .. } => json!({"workflowId": id, "context": context}),
            Self::Log { node, event } => {
                json!({"type": event.type_name(), "nodeId": node, "data": event.data()})
            }
        }
    }

    /// How many events have to be left for it. What it does to further tasks, which wait for this one, is bounded by the
    /// graph.
    pub(crate) fn events(&self) -> usize {
        match self {
            Self::CreateTask(new) => 2 + new.depends_on.len() + usize::from(new.parent.is_some()),
            Self::UpdateTask { .. } | Self::ExecuteWorkflow { .. } | Self::Log { .. } => 1,
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
    use EventType as T;
    matches!(event, T::DependencySatisfied | T::AgentMetrics | T::AutoLabelSuggestion | T::FactLogged)
}
