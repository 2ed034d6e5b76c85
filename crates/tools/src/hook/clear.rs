//! `hook_clear`

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Event, HookId, TaskId};

use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::shape::{Field, Id, Kind};
use crate::task::TASK;
use crate::tool::{Effect, Tool};

pub(crate) const CLEAR: Tool = Tool {
    name: "hook_clear",
    description: "Take all stop hooks of a task away, or one.",
    example: r#"{"taskId": "T3"}"#,
    effect: Effect::Writes,
    fields: &[TASK, Field::optional("hookId", "only this one", Kind::Id(Id::Hook))],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Clear {
    task_id: TaskId,
    hook_id: Option<HookId>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    task_id: TaskId,
    hooks_cleared: usize,
}

pub(crate) fn clear<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Clear) -> Result<Answer, ToolError> {
    let records = call.execute(&Command::ClearHooks { task: given.task_id, hook: given.hook_id })?;
    let hooks_cleared = records.iter().map(|record| match &record.envelope.event {
        Event::HooksCleared(cleared) => cleared.hooks.len(),
        _ => 0,
    });
    Ok(Answer { task_id: given.task_id, hooks_cleared: hooks_cleared.sum() })
}
