//! `task_update`: changes a task's text or its state.
//!
//! Invariant: one call is one command, so no update is ever half done.

use serde::Deserialize;
use serde_json::Value;
use windlass_engine::{Command, Limits, Priority, Task, TaskId, TaskPatch, TypeName};

use super::{DELIVERABLES, LABELS, TASK};
use crate::error::{Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Id, Kind};
use crate::tool::{Effect, Tool};

pub(crate) const UPDATE: Tool = Tool {
    name: "task_update",
    description: "Change what a task says, or (alone) its state: active starts it, blocked asks for a person, \
                  ready unblocks.",
    example: r#"{"taskId": "T3", "state": "blocked", "reason": "no access to the server"}"#,
    effect: Effect::Writes,
    fields: &[
        TASK,
        Field::optional("goal", "", Kind::Words(Limits::GOAL)),
        Field::optional("body", "empty takes it away", Kind::Text(Limits::BODY)),
        Field::optional("deliverables", "instead of the present ones", DELIVERABLES),
        Field::optional("addLabels", "", LABELS),
        Field::optional("removeLabels", "", LABELS),
        Field::optional("priority", "0 is most urgent", Kind::Whole(0, 4)),
        Field::optional("type", "", Kind::Id(Id::Type)),
        Field::optional("state", "", Kind::OneOf(&["active", "blocked", "ready"])),
        Field::optional("reason", "why it is blocked", Kind::Words(Limits::REASON)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Update {
    task_id: TaskId,
    goal: Option<String>,
    body: Option<String>,
    deliverables: Option<Vec<String>>,
    #[serde(default)]
    add_labels: Vec<String>,
    #[serde(default)]
    remove_labels: Vec<String>,
    priority: Option<Priority>,
    #[serde(rename = "type")]
    kind: Option<TypeName>,
    state: Option<Aim>,
    reason: Option<String>,
}

/// Target state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Aim {
    Active,
    Blocked,
    Ready,
}

pub(crate) fn update<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Update) -> Result<Task, ToolError> {
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
    let wrong = |message: &str| Err(ToolError::new(Code::Invalid, message));
    let command = match (given.state, given.reason) {
        (Some(_), _) if changes => {
            return wrong("state: other fields are given too; move the task in a call of its own");
        }
        (Some(Aim::Blocked), Some(reason)) => Command::BlockTask { id, reason, required_knowledge: Vec::new() },
        (Some(Aim::Blocked), None) => {
            return wrong("reason: is missing; say why the task is blocked, and what would help");
        }
        (_, Some(_)) => return wrong("reason: only a task that is blocked has one; give it with state `blocked`"),
        (Some(Aim::Active), None) => Command::StartTask { id, context: Value::Null },
        (Some(Aim::Ready), None) => Command::UnblockTask { id },
        (None, None) if changes => Command::UpdateTask { id, patch },
        (None, None) => return wrong("taskId: nothing else is given; give the fields that are to change"),
    };
    match command {
        Command::BlockTask { .. } => call.block(id, &command)?,
        _ => call.execute(&command)?,
    };
    call.task(id)
}
