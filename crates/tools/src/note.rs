//! `note_add`: adds a note for the next agent or person on a task.

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, EngineLimits, NoteKind, TaskId, Timestamp};

use crate::error::{ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, IdKind, ToolField};
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const ADD: ToolDefinition = ToolDefinition {
    name: "note_add",
    description: "Leave a note with a task, for the next agent that works on it.",
    example: r#"{"taskId": "T3", "text": "the parser is generated: change grammar.y"}"#,
    effect: ToolEffect::Writes,
    fields: &[
        ToolField::required("text", "", FieldKind::Words(EngineLimits::NOTE_BYTES)),
        ToolField::optional("kind", "default learning", FieldKind::OneOf(NOTE_KIND_NAMES)),
        ToolField::optional("taskId", "default that of this turn", FieldKind::Id(IdKind::Task)),
    ],
};

const NOTE_KIND_NAMES: &[&str] = &["learning", "stuck", "tip", "decision", "summary"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AddNoteInput {
    text: String,
    kind: Option<NoteKind>,
    task_id: Option<TaskId>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddNoteOutput {
    task_id: Option<TaskId>,
    kind: NoteKind,
    at: Timestamp,
}

pub(crate) fn add_note<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: AddNoteInput,
) -> Result<AddNoteOutput, ToolError> {
    if given.task_id.is_none() && call.calling_session()?.and_then(|session| session.task).is_none() {
        let message = "taskId: is missing, and this is not a turn of a session with a task; give one such as T12";
        return Err(ToolError::new(ToolErrorCode::Invalid, message));
    }
    let kind = given.kind.unwrap_or(NoteKind::Learning);
    let records = call.execute_command(&Command::AddNote { task: given.task_id, kind, text: given.text })?;
    let envelope = &records.first().expect("a note is an event").envelope;
    Ok(AddNoteOutput { task_id: envelope.node.task_id(), kind, at: envelope.timestamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_kind_names_cover_every_kind() {
        assert_eq!(NOTE_KIND_NAMES, NoteKind::ALL.map(NoteKind::name));
    }
}
