//! `hook_list`

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::{HookId, TaskId};

use super::{metadata, registered};
use crate::catalogue::{Effect, Tool};
use crate::desk::{Call, Ground};
use crate::error::ToolError;
use crate::task::{TASK, find};

pub(crate) const LIST: Tool = Tool {
    name: "hook_list",
    description: "The stop hooks of a task, in their order.",
    twin: "windlass hooks list --task",
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
    hook_count: usize,
    hooks: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    id: HookId,
    enabled: bool,
    metadata: Map<String, Value>,
}

pub(crate) fn list<G: Ground>(call: &mut Call<'_, G>, given: List) -> Result<Answer, ToolError> {
    let hooks = registered(call.ground.store(), &find(call, given.task_id)?)?;
    let hooks: Vec<Listed> =
        hooks.iter().map(|hook| Listed { id: hook.id, enabled: hook.enabled, metadata: metadata(hook) }).collect();
    Ok(Answer { task_id: given.task_id, hook_count: hooks.len(), hooks })
}
