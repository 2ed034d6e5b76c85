//! `hook_register`

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_engine::validation::CommandRule;
use windlass_engine::{Command, EngineLimits, HookId, NewStopHook, RuleListSource, StopHook, TaskId, TaskState};

use crate::error::{ToolError, ToolErrorCode};
use crate::host::{ToolCall, ToolHost};
use crate::iteration::closed_task_hint;
use crate::schema::{FieldKind, ToolField};
use crate::task::TASK_ID_FIELD;
use crate::tool::{ToolDefinition, ToolEffect};

pub(crate) const REGISTER: ToolDefinition = ToolDefinition {
    name: "hook_register",
    description: "Register a stop hook, which decides when a task is done. default: promises, then validation rules; validation or \
                  promise: only those; rules or command: your own. They run in the order of registration.",
    example: r#"{"taskId": "T3", "hookType": "rules", "rules": [{"when": "iteration > 5", "action": "escalate"}]}"#,
    effect: ToolEffect::Writes,
    fields: &[
        TASK_ID_FIELD,
        ToolField::required("hookType", "", FieldKind::OneOf(HOOK_TYPE_NAMES)),
        ToolField::optional("enabled", "default true", FieldKind::Flag),
        ToolField::optional("metadata", "", FieldKind::Map),
        ToolField::optional(
            "command",
            "gets the context as JSON on stdin; prints {action, reason, nextPrompt}",
            FieldKind::Words(EngineLimits::COMMAND_BYTES),
        ),
        ToolField::optional(
            "rules",
            "tdd, security-remediation, checkpoint-every, {template, …}, or a list of {when: 'iteration > 3', allOf, anyOf, \
             action: complete|continue|escalate, reason, nextPrompt, checkpointData}",
            FieldKind::Own(rules_schema),
        ),
    ],
};

/// Timeout of a command: hooks may run whole test suites. A rule can set its own.
const COMMAND_HOOK_TIMEOUT: Duration = Duration::from_mins(10);

const HOOK_TYPE_NAMES: &[&str] = &["default", "validation", "promise", "command", "rules"];

fn rules_schema() -> Value {
    json!({"type": ["array", "string", "object"]})
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RegisterHookInput {
    task_id: TaskId,
    hook_type: HookTypeName,
    enabled: Option<bool>,
    metadata: Option<Map<String, Value>>,
    command: Option<String>,
    rules: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HookTypeName {
    Default,
    Validation,
    Promise,
    Command,
    Rules,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegisterHookOutput {
    hook_id: HookId,
    task_id: TaskId,
    hook_type: &'static str,
    enabled: bool,
    metadata: Map<String, Value>,
}

pub(crate) fn register_hook<G: ToolHost>(
    call: &mut ToolCall<'_, G>,
    given: RegisterHookInput,
) -> Result<RegisterHookOutput, ToolError> {
    let hook = parse_stop_hook(given.hook_type, given.command, given.rules)?;
    if let StopHook::Command { command } = &hook {
        let rule = command_rule(command);
        let workshop = call.host.validator_env()?;
        workshop.permission.permit_supplied_command(&rule).map_err(|refused| {
            ToolError::new(refused.code, format!("command: {refused}")).with_hint(refused.remedy.clone())
        })?;
    }
    let task = call.load_task(given.task_id)?;
    // A blocked task may be worked on again.
    if let Some(hint) = closed_task_hint(&task).filter(|_| task.state != TaskState::Blocked) {
        let message = format!("no hook can be registered for {}: it is {}", task.id, task.state);
        return Err(ToolError::new(ToolErrorCode::Refused, message).with_hint(hint));
    }
    let new =
        NewStopHook { hook, enabled: given.enabled.unwrap_or(true), metadata: given.metadata.unwrap_or_default() };
    let records = call.execute_command(&Command::RegisterHook { task: given.task_id, new: new.clone() })?;
    let at = records.first().expect("a registration is an event").seq;
    let hook_type = new.hook.name();
    Ok(RegisterHookOutput {
        hook_id: HookId(at.0),
        task_id: given.task_id,
        hook_type,
        enabled: new.enabled,
        metadata: new.metadata,
    })
}

/// Wraps an agent's command into a rule, for which permission is asked.
pub(super) fn command_rule(command: &str) -> CommandRule {
    CommandRule {
        command: command.to_owned(),
        expected_exit_code: None,
        success_exit_codes: Vec::new(),
        timeout: Some(COMMAND_HOOK_TIMEOUT),
        working_directory: None,
    }
}

fn parse_stop_hook(kind: HookTypeName, command: Option<String>, rules: Option<Value>) -> Result<StopHook, ToolError> {
    let wrong = |message: &str| Err(ToolError::new(ToolErrorCode::Invalid, message));
    match (kind, command, rules) {
        (HookTypeName::Command, Some(command), None) => Ok(StopHook::Command { command }),
        (HookTypeName::Command, None, _) => wrong("command: is missing; give the command that decides"),
        (HookTypeName::Rules, None, Some(rules)) => Ok(StopHook::Rules { rules: RuleListSource::parse_rules(&rules)? }),
        (HookTypeName::Rules, _, None) => wrong(
            "rules: is missing; give the name of a template (tdd, security-remediation, checkpoint-every) or a list \
             such as [{\"when\": \"iteration > 3\", \"action\": \"escalate\"}]",
        ),
        (_, Some(_), _) => wrong("command: only hookType `command` has one; leave it out, or give that type"),
        (_, _, Some(_)) => wrong("rules: only hookType `rules` has them; leave them out, or give that type"),
        (HookTypeName::Default, ..) => Ok(StopHook::Default),
        (HookTypeName::Validation, ..) => Ok(StopHook::Validation),
        (HookTypeName::Promise, ..) => Ok(StopHook::Promise),
    }
}
