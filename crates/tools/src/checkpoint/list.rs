//! `checkpoint_list`

use serde::{Deserialize, Serialize};
use windlass_engine::TaskId;

use super::{CheckpointSummary, load_checkpoint};
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::task::TASK_ID_FIELD;
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const LIST: ToolDefinition = ToolDefinition {
    name: "checkpoint_list",
    description: "List the checkpoints of a task to resume from, newest first.",
    example: r#"{"taskId": "T3"}"#,
    effect: ToolEffect::ReadOnly,
    fields: &[TASK_ID_FIELD],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListCheckpointsInput {
    task_id: TaskId,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListCheckpointsOutput {
    task_id: TaskId,
    checkpoint_count: usize,
    checkpoints: Vec<CheckpointSummary>,
}

pub(crate) fn list_checkpoints<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: ListCheckpointsInput,
) -> Result<ListCheckpointsOutput, ToolError> {
    let task = call.load_task(given.task_id)?;
    let mut checkpoints = Vec::new();
    for kept in task.evaluation.live_checkpoints_at(call.host.now()).rev() {
        let made = load_checkpoint(call.host.store(), kept)?;
        checkpoints.extend(made.map(|(at, made)| CheckpointSummary::from_created(kept.id, at, &made)));
    }
    Ok(ListCheckpointsOutput { task_id: task.id, checkpoint_count: checkpoints.len(), checkpoints })
}
