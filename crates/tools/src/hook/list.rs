//! `hook_list`

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::{HookId, RegisteredStopHook, RuleListSource, StopHook, TaskId};

use super::{registered_hooks, typed_metadata};
use crate::error::ToolError;
use crate::host::{ToolCall, ToolHost};
use crate::task::TASK_ID_FIELD;
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const LIST: ToolDefinition = ToolDefinition {
    name: "hook_list",
    description: "List the stop hooks of a task, in their order.",
    example: r#"{"taskId": "T3"}"#,
    effect: ToolEffect::ReadOnly,
    fields: &[TASK_ID_FIELD],
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListHooksInput {
    task_id: TaskId,
}

/// The stop hooks of a task, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StopHookList {
    task_id: TaskId,
    hook_count: usize,
    hooks: Vec<ListedStopHook>,
}

#[derive(Debug, Serialize)]
struct ListedStopHook {
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
const MAX_LISTED_RULES_BYTES: usize = 4 * 1024;

impl From<RegisteredStopHook> for ListedStopHook {
    fn from(hook: RegisteredStopHook) -> Self {
        let metadata = typed_metadata(&hook);
        let (command, rules) = match hook.hook {
            StopHook::Command { command } => (Some(command), None),
            StopHook::Rules { rules } => (None, Some(rules_excerpt(&rules))),
            _ => (None, None),
        };
        Self { id: hook.id, enabled: hook.enabled, metadata, command, rules }
    }
}

fn rules_excerpt(rules: &RuleListSource) -> Value {
    let text = serde_json::to_value(rules).expect("rules have string keys");
    match text.to_string().len() {
        bytes if bytes > MAX_LISTED_RULES_BYTES => Value::from(format!("{bytes} bytes of rules")),
        _ => text,
    }
}

pub(crate) fn list_hooks<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: ListHooksInput,
) -> Result<StopHookList, ToolError> {
    let task = call.load_task(given.task_id)?;
    Ok(StopHookList::new(task.id, registered_hooks(call.host.store(), &task)?))
}

impl StopHookList {
    pub fn new(task_id: TaskId, hooks: Vec<RegisteredStopHook>) -> Self {
        Self { task_id, hook_count: hooks.len(), hooks: hooks.into_iter().map(ListedStopHook::from).collect() }
    }
}
