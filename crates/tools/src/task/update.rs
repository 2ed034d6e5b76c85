//! `task_update`: changes a task's text or its state.
//!
//! Invariant: one call is one command, so no update is ever half done.

use serde::Deserialize;
use serde_json::Value;
use windlass_engine::{Command, EngineLimits, Task, TaskId, TaskPatch, TaskPriority, TypeName};

use super::{DELIVERABLES_KIND, LABELS_KIND, TASK_ID_FIELD};
use crate::error::{ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, IdKind, ToolField};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const UPDATE: ToolDefinition = ToolDefinition {
    name: "task_update",
    description: "Change the fields of a task, or (alone) its state: active starts it, blocked asks for a person, \
                  ready unblocks.",
    example: r#"{"taskId": "T3", "state": "blocked", "reason": "no access to the server"}"#,
    effect: ToolEffect::Writes,
    fields: &[
        TASK_ID_FIELD,
        ToolField::optional("goal", "", FieldKind::Words(EngineLimits::GOAL_BYTES)),
        ToolField::optional("body", "empty removes it", FieldKind::Text(EngineLimits::BODY_BYTES)),
        ToolField::optional("deliverables", "instead of the present ones", DELIVERABLES_KIND),
        ToolField::optional("addLabels", "", LABELS_KIND),
        ToolField::optional("removeLabels", "", LABELS_KIND),
        ToolField::optional("priority", "0 is most urgent", FieldKind::Whole(0, 4)),
        ToolField::optional("type", "", FieldKind::Id(IdKind::Type)),
        ToolField::optional("state", "", FieldKind::OneOf(&["active", "blocked", "ready"])),
        ToolField::optional("reason", "why it is blocked", FieldKind::Words(EngineLimits::REASON_BYTES)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UpdateTaskInput {
    task_id: TaskId,
    goal: Option<String>,
    body: Option<String>,
    deliverables: Option<Vec<String>>,
    #[serde(default)]
    add_labels: Vec<String>,
    #[serde(default)]
    remove_labels: Vec<String>,
    priority: Option<TaskPriority>,
    #[serde(rename = "type")]
    kind: Option<TypeName>,
    state: Option<TargetState>,
    reason: Option<String>,
}

/// Target state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetState {
    Active,
    Blocked,
    Ready,
}

pub(crate) fn update_task<G: ToolHost>(call: &mut ToolCall<'_, G>, given: UpdateTaskInput) -> Result<Task, ToolError> {
    let id = given.task_id;
    let patch = TaskPatch {
        goal: given.goal,
        body: given.body,
        deliverables: given.deliverables,
        labels: None,
        add_labels: given.add_labels,
        remove_labels: given.remove_labels,
        priority: given.priority,
        kind: given.kind.map(Some),
    };
    let changes = patch != TaskPatch::default();
    let wrong = |message: &str| Err(ToolError::new(ToolErrorCode::Invalid, message));
    let command = match (given.state, given.reason) {
        (Some(_), _) if changes => {
            return wrong("state: other fields are given too; move the task in a call of its own");
        }
        (Some(TargetState::Blocked), Some(reason)) => Command::BlockTask { id, reason, required_knowledge: Vec::new() },
        (Some(TargetState::Blocked), None) => {
            return wrong("reason: is missing; say why the task is blocked, and what would help");
        }
        (_, Some(_)) => return wrong("reason: only a task that is blocked has one; give it with state `blocked`"),
        (Some(TargetState::Active), None) => Command::StartTask { id, context: Value::Null },
        (Some(TargetState::Ready), None) => Command::UnblockTask { id },
        (None, None) if changes => Command::UpdateTask { id, patch },
        (None, None) => return wrong("taskId: nothing else is given; give the fields to change"),
    };
    match command {
        Command::BlockTask { .. } => call.block_task(id, &command)?,
        _ => call.execute_command(&command)?,
    };
    call.load_task(id)
}
