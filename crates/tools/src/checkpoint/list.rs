//! `checkpoint_list`

use serde::{Deserialize, Serialize};
use windlass_engine::TaskId;

use super::{Glance, held};
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::task::TASK;
use crate::tool::{Effect, Tool};

pub(crate) const LIST: Tool = Tool {
    name: "checkpoint_list",
    description: "The checkpoints of a task that can be resumed from, newest first.",
    example: r#"{"taskId": "T3"}"#,
    effect: Effect::ReadOnly,
    fields: &[TASK],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct List {
    task_id: TaskId,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    task_id: TaskId,
    checkpoint_count: usize,
    checkpoints: Vec<Glance>,
}

pub(crate) fn list<G: ToolHost>(call: &mut ToolCall<'_, G>, given: List) -> Result<Answer, ToolError> {
    let task = call.task(given.task_id)?;
    let mut checkpoints = Vec::new();
    for kept in task.drive.checkpoints_at(call.ground.now()).rev() {
        let made = held(call.ground.store(), kept)?;
        checkpoints.extend(made.map(|(at, made)| Glance::of(kept.id, at, &made)));
    }
    Ok(Answer { task_id: task.id, checkpoint_count: checkpoints.len(), checkpoints })
}
