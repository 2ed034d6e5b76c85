//! `checkpoint_create`

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::{CheckpointId, CheckpointTrigger, Command, EngineLimits, Event, NewCheckpoint, Seq, TaskId};

use super::CheckpointSummary;
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, ToolField};
use crate::task::TASK_ID_FIELD;
use crate::tool::{ToolDefinition, ToolEffect};

/// Longest lifetime of a checkpoint in minutes: a year.
const MAX_LIFETIME_MINUTES: u64 = EngineLimits::CHECKPOINT_LIFETIME.as_secs() / 60;

pub(crate) const CREATE: ToolDefinition = ToolDefinition {
    name: "checkpoint_create",
    description: "Save the progress on a task, to resume from later. The last five are kept.",
    example: r#"{"taskId": "T3", "trigger": "manual", "executionPhase": "testing", "executionStep": 4}"#,
    effect: ToolEffect::Writes,
    fields: &[
        TASK_ID_FIELD,
        ToolField::required("trigger", "", FieldKind::OneOf(&["manual", "auto_status", "auto_subtask", "error"])),
        ToolField::optional("executionPhase", "", FieldKind::Words(EngineLimits::LABEL_BYTES)),
        ToolField::optional("executionStep", "", FieldKind::Whole(0, u32::MAX as u64)),
        ToolField::optional("agentContext", "what you want to find again", FieldKind::Map),
        ToolField::optional("draftContent", "cut at 50 KiB", FieldKind::Text(EngineLimits::ACCEPTED_DRAFT_BYTES)),
        ToolField::optional("draftType", "", FieldKind::Words(EngineLimits::LABEL_BYTES)),
        ToolField::optional(
            "expiresIn",
            "minutes; default a week if manual, else a day",
            FieldKind::Whole(1, MAX_LIFETIME_MINUTES),
        ),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateCheckpointInput {
    task_id: TaskId,
    trigger: CheckpointTrigger,
    execution_phase: Option<String>,
    execution_step: Option<u64>,
    agent_context: Option<Map<String, Value>>,
    draft_content: Option<String>,
    draft_type: Option<String>,
    expires_in: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateCheckpointOutput {
    task_id: TaskId,
    #[serde(flatten)]
    made: CheckpointSummary,
}

pub(crate) fn create_checkpoint<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: CreateCheckpointInput,
) -> Result<CreateCheckpointOutput, ToolError> {
    let new = NewCheckpoint {
        trigger: given.trigger,
        execution_phase: given.execution_phase,
        execution_step: given.execution_step,
        agent_context: given.agent_context.map_or(Value::Null, Value::Object),
        draft_content: given.draft_content,
        draft_type: given.draft_type,
        expires_in: given.expires_in.map(|minutes| Duration::from_secs(minutes * 60)),
    };
    let records = call.execute_command(&Command::CreateCheckpoint { task: given.task_id, new })?;
    let made = records.iter().find_map(|record| match &record.envelope.event {
        Event::CheckpointCreated(made) => {
            let Seq(at) = record.seq;
            Some(CheckpointSummary::from_created(CheckpointId(at), record.envelope.timestamp, made))
        }
        _ => None,
    });
    Ok(CreateCheckpointOutput { task_id: given.task_id, made: made.expect("a checkpoint is an event") })
}
