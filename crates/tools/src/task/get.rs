//! `task_get`

use serde::{Deserialize, Serialize};
use windlass_engine::{Event, NoteKind, Refusal, StateView, Task, TaskEdge, TaskId, Timestamp};
use windlass_store::SqliteStore;

use super::TASK_ID_FIELD;
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const GET: ToolDefinition = ToolDefinition {
    name: "task_get",
    description: "Show a task: goal, state, what it waits for, its newest notes.",
    example: r#"{"taskId": "T3"}"#,
    effect: ToolEffect::ReadOnly,
    fields: &[TASK_ID_FIELD],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GetTaskInput {
    task_id: TaskId,
}

/// A task with its edges and newest notes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskGetReport {
    #[serde(flatten)]
    task: Task,
    edges: Vec<TaskEdge>,
    /// Newest notes, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<ListedNote>,
}

#[derive(Debug, Serialize)]
pub struct ListedNote {
    kind: NoteKind,
    pub text: String,
    at: Timestamp,
}

pub(crate) fn get_task<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: GetTaskInput,
) -> Result<TaskGetReport, ToolError> {
    TaskGetReport::load_details(call.host.store(), given.task_id)
}

impl TaskGetReport {
    pub fn load_details(store: &SqliteStore, id: TaskId) -> Result<Self, ToolError> {
        let snapshot = store.begin_snapshot()?;
        let task = snapshot.find_task(id)?.ok_or(Refusal::UnknownTask(id))?;
        Ok(Self { edges: snapshot.edges_of_task(id)?, notes: newest_notes(store, &task)?, task })
    }
}

/// Returns the newest notes of a task, oldest first.
pub fn newest_notes(store: &SqliteStore, task: &Task) -> Result<Vec<ListedNote>, ToolError> {
    let mut notes = Vec::with_capacity(task.memo.notes.len());
    for at in &task.memo.notes {
        let Some(record) = store.read_event(*at)? else { continue };
        if let Event::NoteAdded(note) = record.envelope.event {
            notes.push(ListedNote { kind: note.kind, text: note.text, at: record.envelope.timestamp });
        }
    }
    Ok(notes)
}
