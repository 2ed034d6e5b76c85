//! `hook_clear`

use serde::{Deserialize, Serialize};
use windlass_engine::{Command, Event, HookId, TaskId};

use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::schema::{FieldKind, IdKind, ToolField};
use crate::task::TASK_ID_FIELD;
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const CLEAR: ToolDefinition = ToolDefinition {
    name: "hook_clear",
    description: "Remove all stop hooks of a task, or one.",
    example: r#"{"taskId": "T3"}"#,
    effect: ToolEffect::Writes,
    fields: &[TASK_ID_FIELD, ToolField::optional("hookId", "only this one", FieldKind::Id(IdKind::Hook))],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClearHooksInput {
    task_id: TaskId,
    hook_id: Option<HookId>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClearHooksOutput {
    task_id: TaskId,
    hooks_cleared: usize,
}

pub(crate) fn clear_hooks<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: ClearHooksInput,
) -> Result<ClearHooksOutput, ToolError> {
    let records = call.execute_command(&Command::ClearHooks { task: given.task_id, hook: given.hook_id })?;
    let hooks_cleared = records.iter().map(|record| match &record.envelope.event {
        Event::HooksCleared(cleared) => cleared.hooks.len(),
        _ => 0,
    });
    Ok(ClearHooksOutput { task_id: given.task_id, hooks_cleared: hooks_cleared.sum() })
}
