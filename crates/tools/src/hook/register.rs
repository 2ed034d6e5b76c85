//! `hook_register`

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_engine::validation::CommandRule;
use windlass_engine::{Command, HookId, Limits, NewHook, RulesText, State, StopHook, TaskId};

use crate::error::{Code, ToolError};
use crate::host::{ToolCall, ToolHost};
use crate::iteration::way_out;
use crate::shape::{Field, Kind};
use crate::task::TASK;
use crate::tool::{Effect, Tool};

pub(crate) const REGISTER: Tool = Tool {
    name: "hook_register",
    description: "Let a stop hook decide when a task is done. default: promises, then validation rules; validation or \
                  promise: only those; rules or command: your own. Asked in the order of registration.",
    example: r#"{"taskId": "T3", "hookType": "rules", "rules": [{"when": "iteration > 5", "action": "escalate"}]}"#,
    effect: Effect::Writes,
    fields: &[
        TASK,
        Field::required("hookType", "", Kind::OneOf(TYPES)),
        Field::optional("enabled", "default true", Kind::Flag),
        Field::optional("metadata", "", Kind::Map),
        Field::optional(
            "command",
            "gets the context as JSON on stdin; prints {action, reason, nextPrompt}",
            Kind::Words(Limits::COMMAND),
        ),
        Field::optional(
            "rules",
            "tdd, security-remediation, checkpoint-every, {template, …}, or a list of {when: 'iteration > 3', allOf, anyOf, \
             action: complete|continue|escalate, reason, nextPrompt, checkpointData}",
            Kind::Own(rules_schema),
        ),
    ],
};

/// Timeout of a command: hooks may run whole test suites. A rule can set its own.
const TIMEOUT: Duration = Duration::from_mins(10);

const TYPES: &[&str] = &["default", "validation", "promise", "command", "rules"];

fn rules_schema() -> Value {
    json!({"type": ["array", "string", "object"]})
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Register {
    task_id: TaskId,
    hook_type: Type,
    enabled: Option<bool>,
    metadata: Option<Map<String, Value>>,
    command: Option<String>,
    rules: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Type {
    Default,
    Validation,
    Promise,
    Command,
    Rules,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    hook_id: HookId,
    task_id: TaskId,
    hook_type: &'static str,
    enabled: bool,
    metadata: Map<String, Value>,
}

pub(crate) fn register<G: ToolHost>(call: &mut ToolCall<'_, G>, given: Register) -> Result<Answer, ToolError> {
    let hook = hook(given.hook_type, given.command, given.rules)?;
    if let StopHook::Command { command } = &hook {
        let rule = supplied(command);
        let workshop = call.ground.workshop()?;
        workshop.permission.supplied(&rule).map_err(|refused| {
            ToolError::new(refused.code, format!("command: {refused}")).hint(refused.remedy.clone())
        })?;
    }
    let task = call.task(given.task_id)?;
    // A blocked task may be worked on again.
    if let Some(hint) = way_out(&task).filter(|_| task.state != State::Blocked) {
        let message = format!("no hook can be registered for {}: it is {}", task.id, task.state);
        return Err(ToolError::new(Code::Refused, message).hint(hint));
    }
    let new = NewHook { hook, enabled: given.enabled.unwrap_or(true), metadata: given.metadata.unwrap_or_default() };
    let records = call.execute(&Command::RegisterHook { task: given.task_id, new: new.clone() })?;
    let at = records.first().expect("a registration is an event").seq;
    let hook_type = new.hook.name();
    Ok(Answer {
        hook_id: HookId(at.0),
        task_id: given.task_id,
        hook_type,
        enabled: new.enabled,
        metadata: new.metadata,
    })
}

/// Wraps an agent's command into a rule, for which permission is asked.
pub(super) fn supplied(command: &str) -> CommandRule {
    CommandRule {
        command: command.to_owned(),
        expected_exit_code: None,
        success_exit_codes: Vec::new(),
        timeout: Some(TIMEOUT),
        working_directory: None,
    }
}

fn hook(kind: Type, command: Option<String>, rules: Option<Value>) -> Result<StopHook, ToolError> {
    let wrong = |message: &str| Err(ToolError::new(Code::Invalid, message));
    match (kind, command, rules) {
        (Type::Command, Some(command), None) => Ok(StopHook::Command { command }),
        (Type::Command, None, _) => wrong("command: is missing; give the command that decides"),
        (Type::Rules, None, Some(rules)) => Ok(StopHook::Rules { rules: RulesText::parse(&rules)? }),
        (Type::Rules, _, None) => wrong(
            "rules: is missing; give the name of a template (tdd, security-remediation, checkpoint-every) or a list \
             such as [{\"when\": \"iteration > 3\", \"action\": \"escalate\"}]",
        ),
        (_, Some(_), _) => wrong("command: only hookType `command` has one; leave it out, or give that type"),
        (_, _, Some(_)) => wrong("rules: only hookType `rules` has them; leave them out, or give that type"),
        (Type::Default, ..) => Ok(StopHook::Default),
        (Type::Validation, ..) => Ok(StopHook::Validation),
        (Type::Promise, ..) => Ok(StopHook::Promise),
    }
}
