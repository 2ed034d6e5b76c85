//! Actions that a hook can ask the engine to perform.

mod parser;
pub(crate) mod request;

use serde_json::{Map, Value, json};

use crate::command::NewTask;
use crate::log::event::{Event, EventSubject};
use crate::log::event_type::EventType;
use crate::log::id::TaskId;

pub use request::ActionRequest;

/// A change to a task that a hook may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskAction {
    /// Nothing blocks it any more, possibly because this task was completed.
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
    /// Replaces the present labels.
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
pub enum HookAction {
    CreateTask(NewTask),
    UpdateTask {
        task: TaskId,
        action: TaskAction,
    },
    ExecuteWorkflow {
        id: String,
        /// Its input.
        context: Map<String, Value>,
        /// The task that it is about.
        task: Option<TaskId>,
    },
    /// Adds an event without effect on the state.
    Log {
        node: EventSubject,
        event: Event,
    },
}

impl HookAction {
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateTask(_) => "create_task",
            Self::UpdateTask { .. } => "update_task",
            Self::ExecuteWorkflow { .. } => "execute_workflow",
            Self::Log { .. } => "log",
        }
    }

    /// Returns the action as an error event records it.
    pub(crate) fn error_payload(&self) -> Value {
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
                json!({"type": event.shown_type_name(), "nodeId": node, "data": event.shown_data()})
            }
        }
    }

    /// Returns how many events the budget must have left for the action. Its effects on waiting tasks are bounded by the
    /// graph.
    pub(crate) fn events_needed(&self) -> usize {
        match self {
            Self::CreateTask(new) => 2 + new.depends_on.len() + usize::from(new.parent.is_some()),
            Self::UpdateTask { .. } | Self::ExecuteWorkflow { .. } | Self::Log { .. } => 1,
        }
    }

    /// Returns whether the action counts towards the limits of a cascade. Becoming ready does not count: every task does so
    /// once, so the graph bounds it, and a task that never became ready would be lost.
    pub(crate) fn counts_towards_limit(&self) -> bool {
        !matches!(self, Self::UpdateTask { action: TaskAction::Ready { .. }, .. })
    }
}

/// Returns whether an event has no effect on the state. Any hook may log such an event.
pub(crate) fn is_stateless_event(event: EventType) -> bool {
    use EventType as T;
    matches!(event, T::DependencySatisfied | T::AgentMetrics | T::AutoLabelSuggestion | T::FactLogged)
}
