//! `checkpoint_create`

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::{CheckpointId, Command, Event, Limits, NewCheckpoint, Seq, TaskId, Trigger};

use super::Glance;
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Kind};
use crate::task::TASK;
use crate::tool::{Effect, Tool};

/// Longest lifetime of a checkpoint in minutes: a year.
const LONGEST: u64 = Limits::CHECKPOINT_LIFE.as_secs() / 60;

pub(crate) const CREATE: Tool = Tool {
    name: "checkpoint_create",
    description: "Save where the work on a task stands, to resume from later. The last five are kept.",
    example: r#"{"taskId": "T3", "trigger": "manual", "executionPhase": "testing", "executionStep": 4}"#,
    effect: Effect::Writes,
    fields: &[
        TASK,
        Field::required("trigger", "", Kind::OneOf(&["manual", "auto_status", "auto_subtask", "error"])),
        Field::optional("executionPhase", "", Kind::Words(Limits::LABEL)),
        Field::optional("executionStep", "", Kind::Whole(0, u32::MAX as u64)),
        Field::optional("agentContext", "what you want to find again", Kind::Map),
        Field::optional("draftContent", "cut at 50 KiB", Kind::Text(Limits::DRAFT_TAKEN)),
        Field::optional("draftType", "", Kind::Words(Limits::LABEL)),
        Field::optional("expiresIn", "minutes; default a week if manual, else a day", Kind::Whole(1, LONGEST)),
    ],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Create {
    task_id: TaskId,
    trigger: Trigger,
    execution_phase: Option<String>,
    execution_step: Option<u64>,
    agent_context: Option<Map<String, Value>>,
    draft_content: Option<String>,
    draft_type: Option<String>,
    expires_in: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    task_id: TaskId,
    #[serde(flatten)]
    made: Glance,
}

pub(crate) fn create<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Create) -> Result<Answer, ToolError> {
    let new = NewCheckpoint {
        trigger: given.trigger,
        execution_phase: given.execution_phase,
        execution_step: given.execution_step,
        agent_context: given.agent_context.map_or(Value::Null, Value::Object),
        draft_content: given.draft_content,
        draft_type: given.draft_type,
        expires_in: given.expires_in.map(|minutes| Duration::from_secs(minutes * 60)),
    };
    let records = call.execute(&Command::CreateCheckpoint { task: given.task_id, new })?;
    let made = records.iter().find_map(|record| match &record.envelope.event {
        Event::CheckpointCreated(made) => {
            let Seq(at) = record.seq;
            Some(Glance::of(CheckpointId(at), record.envelope.timestamp, made))
        }
        _ => None,
    });
    Ok(Answer { task_id: given.task_id, made: made.expect("a checkpoint is an event") })
}
