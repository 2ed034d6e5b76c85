//! `hook_list`

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::{HookId, Registered, RulesText, StopHook, TaskId};

use super::{metadata, registered};
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::task::TASK;
use crate::tool::{Effect, Tool};

pub(crate) const LIST: Tool = Tool {
    name: "hook_list",
    description: "The stop hooks of a task, in their order.",
    example: r#"{"taskId": "T3"}"#,
    effect: Effect::ReadOnly,
    fields: &[TASK],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct List {
    task_id: TaskId,
}

/// The stop hooks of a task, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StopHookList {
    task_id: TaskId,
    hook_count: usize,
    hooks: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    id: HookId,
    enabled: bool,
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Rules as they were registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<Value>,
}

/// Maximum size of the rules in a list. Of longer ones, it has only the size.
const SHOWN: usize = 4 * 1024;

impl From<Registered> for Listed {
    fn from(hook: Registered) -> Self {
        let metadata = metadata(&hook);
        let (command, rules) = match hook.hook {
            StopHook::Command { command } => (Some(command), None),
            StopHook::Rules { rules } => (None, Some(shown(&rules))),
            _ => (None, None),
        };
        Self { id: hook.id, enabled: hook.enabled, metadata, command, rules }
    }
}

fn shown(rules: &RulesText) -> Value {
    let text = serde_json::to_value(rules).expect("rules have string keys");
    match text.to_string().len() {
        bytes if bytes > SHOWN => Value::from(format!("{bytes} bytes of rules")),
        _ => text,
    }
}

pub(crate) fn list<G: ToolHost>(call: &mut ToolCall<'_, G>, given: List) -> Result<StopHookList, ToolError> {
    let task = call.task(given.task_id)?;
    Ok(StopHookList::new(task.id, registered(call.ground.store(), &task)?))
}

impl StopHookList {
    pub fn new(task_id: TaskId, hooks: Vec<Registered>) -> Self {
        Self { task_id, hook_count: hooks.len(), hooks: hooks.into_iter().map(Listed::from).collect() }
    }
}
