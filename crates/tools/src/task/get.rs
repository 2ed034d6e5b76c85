//! `task_get`

use serde::{Deserialize, Serialize};
use windlass_engine::{Edge, Event, NoteKind, Refusal, Task, TaskId, Timestamp, View};
use windlass_store::Sqlite;

use super::TASK;
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::tool::{Effect, Tool};

pub(crate) const GET: Tool = Tool {
    name: "task_get",
    description: "Everything about a task: goal, state, what it waits for, its newest notes.",
    example: r#"{"taskId": "T3"}"#,
    effect: Effect::ReadOnly,
    fields: &[TASK],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Get {
    task_id: TaskId,
}

/// A task with its edges and newest notes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetails {
    #[serde(flatten)]
    task: Task,
    edges: Vec<Edge>,
    /// Newest notes, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
}

#[derive(Debug, Serialize)]
pub struct Note {
    kind: NoteKind,
    pub text: String,
    at: Timestamp,
}

pub(crate) fn get<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Get) -> Result<TaskDetails, ToolError> {
    TaskDetails::load(call.ground.store(), given.task_id)
}

impl TaskDetails {
    pub fn load(store: &Sqlite, id: TaskId) -> Result<Self, ToolError> {
        let snapshot = store.snapshot()?;
        let task = snapshot.task(id)?.ok_or(Refusal::UnknownTask(id))?;
        Ok(Self { edges: snapshot.links(id)?, notes: notes(store, &task)?, task })
    }
}

/// Returns the newest notes of a task, oldest first.
pub fn notes(store: &Sqlite, task: &Task) -> Result<Vec<Note>, ToolError> {
    let mut notes = Vec::with_capacity(task.memo.notes.len());
    for at in &task.memo.notes {
        let Some(record) = store.event(*at)? else { continue };
        if let Event::NoteAdded(note) = record.envelope.event {
            notes.push(Note { kind: note.kind, text: note.text, at: record.envelope.timestamp });
        }
    }
    Ok(notes)
}
