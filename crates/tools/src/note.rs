//! `note_add`: adds a note for the next agent or person on a task.

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Limits, NoteKind, TaskId, Timestamp};

use crate::error::{Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Id, Kind};
use crate::tool::{Effect, Tool};

pub(crate) const ADD: Tool = Tool {
    name: "note_add",
    description: "Leave a note with a task, for the next agent that works on it.",
    example: r#"{"taskId": "T3", "text": "the parser is generated: change grammar.y"}"#,
    effect: Effect::Writes,
    fields: &[
        Field::required("text", "", Kind::Words(Limits::NOTE)),
        Field::optional("kind", "default learning", Kind::OneOf(KINDS)),
        Field::optional("taskId", "default that of this turn", Kind::Id(Id::Task)),
    ],
};

const KINDS: &[&str] = &["learning", "stuck", "tip", "decision", "summary"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Add {
    text: String,
    kind: Option<NoteKind>,
    task_id: Option<TaskId>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Added {
    task_id: Option<TaskId>,
    kind: NoteKind,
    at: Timestamp,
}

pub(crate) fn add<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Add) -> Result<Added, ToolError> {
    if given.task_id.is_none() && call.session()?.and_then(|session| session.task).is_none() {
        let message = "taskId: is missing, and this is no turn of a session with a task; give one such as T12";
        return Err(ToolError::new(Code::Invalid, message));
    }
    let kind = given.kind.unwrap_or(NoteKind::Learning);
    let records = call.execute(&Command::AddNote { task: given.task_id, kind, text: given.text })?;
    let envelope = &records.first().expect("a note is an event").envelope;
    Ok(Added { task_id: envelope.node.task(), kind, at: envelope.timestamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_given() {
        assert_eq!(KINDS, NoteKind::ALL.map(NoteKind::name));
    }
}
