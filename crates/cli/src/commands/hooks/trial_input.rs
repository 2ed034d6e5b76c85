//! The input of a trial: default values with a person's payload merged over them, or the payload of an agent's hook system.
//!
//! Invariant: a value that is put into a command unquoted has the form that it has in the log. A payload may come from
//! anywhere, and the shell would run a session name with a semicolon.

use std::path::Path;

use serde_json::{Value, json};
use windlass_app::{Failure, FailureCode};
use windlass_bridge::{AgentHookEvent, AgentHookRequest, BridgeAgent};
use windlass_engine::{EventContext, EventType, HookPoint, ParseIdError, SessionName, TaskId};

use crate::commands::input::read_bytes;

/// The longest accepted payload.
const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

/// The input of the hooks of a trial.
pub struct TrialInput {
    /// The values that hooks get.
    pub values: Value,
    /// The agent's request, if the trial stands for a call of an agent.
    pub request: Option<AgentHookRequest>,
}

/// Fields that identify the conversation in payloads of agents. Windlass's own fields have other names.
const AGENT_PAYLOAD_FIELDS: [&str; 4] = ["session_id", "conversation_id", "sessionId", "hook_event_name"];

/// Builds the input of a trial. It is a call of an agent if the point knows only calls, if `agent` is given or if the payload
/// looks like one; else it is an event of the loop.
pub fn build_trial_input(
    payload: Option<&Path>,
    point: &HookPoint,
    agent: Option<BridgeAgent>,
) -> Result<TrialInput, Failure> {
    let event = AgentHookEvent::from_point(point);
    if let (Some(agent), None) = (agent, event) {
        let points: Vec<_> = AgentHookEvent::ALL.iter().map(|event| event.point_name().name()).collect();
        let failure = Failure::new(FailureCode::Usage, format!("{} never calls at {point}", agent.title()));
        return Err(failure.with_hint(format!("agents call at {}", points.join(", "))));
    }
    let given = payload.map(|path| read_payload_file(path).map(|given| (path, given))).transpose()?;
    let says = |given: &Value| AGENT_PAYLOAD_FIELDS.iter().any(|field| given.get(field).is_some());
    let only_calls = point.event_types().first() == Some(&EventType::BridgeCalled);
    let is_call = only_calls || agent.is_some() || given.as_ref().is_some_and(|(_, given)| says(given));
    match event.filter(|_| is_call) {
        Some(event) => {
            let said = given.as_ref().map_or_else(|| "{}".to_owned(), |(_, given)| given.to_string());
            let request = match agent {
                Some(agent) => AgentHookRequest::parse_payload(agent, event, said.as_bytes()),
                None => AgentHookRequest::parse_unnamed_payload(event, said.as_bytes(), |_| false),
            };
            let request = request.map_err(|error| Failure::from_error(FailureCode::Usage, &error))?;
            Ok(TrialInput { values: EventContext::values_of_call(&request.call), request: Some(request) })
        }
        None => Ok(TrialInput { values: build_hook_values(given, point)?, request: None }),
    }
}

fn payload_failure(path: &Path, cause: impl Into<String>) -> Failure {
    Failure::new(FailureCode::Usage, format!("cannot use the payload `{}`", path.display())).with_cause(cause.into())
}

fn read_payload_file(path: &Path) -> Result<Value, Failure> {
    let bytes =
        read_bytes(path, MAX_PAYLOAD_BYTES, "a payload for a trial can be shorter: leave out what no hook reads")?;
    let given: Value = serde_json::from_slice(&bytes).map_err(|error| payload_failure(path, error.to_string()))?;
    if !given.is_object() {
        return Err(payload_failure(path, "it is not a JSON object").with_hint("write it as {\"iteration\": 1, …}"));
    }
    Ok(given)
}

/// Returns the values for hooks, with the payload merged over the defaults.
fn build_hook_values(given: Option<(&Path, Value)>, point: &HookPoint) -> Result<Value, Failure> {
    let mut values = EventContext::empty_values();
    values["point"] = json!(point.name());
    let event = match point {
        HookPoint::Fact(fact) => fact.as_str(),
        point => point.event_types().first().map_or("", |event| event.name()),
    };
    values["event"]["type"] = json!(event);
    let Some((path, given)) = given else { return Ok(values) };
    merge_json_values(&mut values, given);
    check_id_fields(&values).map_err(|(cause, hint)| payload_failure(path, cause).with_hint(hint))?;
    // Aliases get the value of the field, unless the payload has them too.
    for (name, of) in [("task_id", "id"), ("taskId", "id"), ("task_content", "content")] {
        if values[name] == "" && values["task"][of].is_string() {
            values[name] = values["task"][of].clone();
        }
    }
    Ok(values)
}

/// Checks the fields that commands get unquoted. An error has the cause and a hint.
fn check_id_fields(values: &Value) -> Result<(), (String, &'static str)> {
    type FieldCheck = fn(&str) -> Result<(), ParseIdError>;
    let is_session: FieldCheck = |text| text.parse::<SessionName>().map(drop);
    let is_task: FieldCheck = |text| text.parse::<TaskId>().map(drop);
    let fields = [
        ("session", "/session", is_session),
        ("task_id", "/task_id", is_task),
        ("taskId", "/taskId", is_task),
        ("task.id", "/task/id", is_task),
    ];
    for (name, path, is_right) in fields {
        let right = match values.pointer(path) {
            None => Ok(()),
            Some(Value::String(text)) if text.is_empty() => Ok(()),
            Some(Value::String(text)) => is_right(text).map_err(|error| error.to_string()),
            Some(other) => Err(format!("{other} is not text")),
        };
        right.map_err(|why| (format!("`{name}`: {why}"), "leave it out, or write it as it is in the log"))?;
    }
    match &values["iteration"] {
        Value::Number(number) if number.is_u64() => Ok(()),
        other => Err((format!("`iteration`: {other} is not a number such as 3"), "leave it out, or count from 1")),
    }
}

/// Merges objects and replaces every other value.
fn merge_json_values(values: &mut Value, given: Value) {
    match (values, given) {
        (Value::Object(values), Value::Object(given)) => {
            for (name, value) in given {
                merge_json_values(values.entry(name).or_insert(Value::Null), value);
            }
        }
        (values, given) => *values = given,
    }
}
