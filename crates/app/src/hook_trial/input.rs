//! The input of a trial: default values with a person's payload merged over them, or the payload of an agent's hook system.
//!
//! Invariant: a value that is put into a command unquoted has the form that it has in the log. A payload may come from
//! anywhere, and the shell would run a session name with a semicolon.

use serde_json::{Value, json};
use windlass_bridge::{AgentHookEvent, AgentHookRequest, BridgeAgent};
use windlass_config::listing::WorkSubject;
use windlass_engine::{EventContext, EventType, HookPoint, ParseIdError, SessionName, TaskId};

use crate::project::Project;
use crate::{Failure, FailureCode};

/// The payload that a person gives for a trial.
pub struct TrialPayload {
    pub value: Value,
    /// Its name in errors, such as `payload.json`.
    pub name: String,
}

impl TrialPayload {
    pub fn failure(&self, cause: impl Into<String>, hint: &str) -> Failure {
        let message = format!("cannot use the payload `{}`", self.name);
        Failure::new(FailureCode::Usage, message).with_cause(cause.into()).with_hint(hint)
    }
}

/// The input of the hooks of a trial.
pub struct TrialInput {
    /// The values that hooks get.
    pub values: Value,
    /// The agent's request, if the trial stands for a call of an agent.
    pub request: Option<AgentHookRequest>,
}

impl TrialInput {
    /// Completes the values with the project, and returns the kind of work that they describe.
    pub fn complete_values(&mut self, project: &Project) -> WorkSubject {
        let values = &mut self.values;
        if values["project_dir"] == "" {
            values["project_dir"] = json!(project.root.to_string_lossy());
        }
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        WorkSubject { kind: text(&values["task"]["type"]), agent: values["agent"].as_str().map(str::to_owned) }
    }
}

/// Fields that identify the conversation in payloads of agents. Windlass's own fields have other names.
const AGENT_PAYLOAD_FIELDS: [&str; 4] = ["session_id", "conversation_id", "sessionId", "hook_event_name"];

/// Builds the input of a trial. It is a call of an agent if the point knows only calls, if `agent` is given or if the payload
/// looks like one; else it is an event of the loop.
pub fn build_trial_input(
    payload: Option<&TrialPayload>,
    point: &HookPoint,
    agent: Option<BridgeAgent>,
) -> Result<TrialInput, Failure> {
    let event = AgentHookEvent::from_point(point);
    if let (Some(agent), None) = (agent, event) {
        let points: Vec<_> = AgentHookEvent::ALL.iter().map(|event| event.point_name().name()).collect();
        let failure = Failure::new(FailureCode::Usage, format!("{} never calls at {point}", agent.title()));
        return Err(failure.with_hint(format!("agents call at {}", points.join(", "))));
    }
    if let Some(payload) = payload.filter(|payload| !payload.value.is_object()) {
        return Err(payload.failure("it is not a JSON object", "write it as {\"iteration\": 1, …}"));
    }
    let says = |given: &Value| AGENT_PAYLOAD_FIELDS.iter().any(|field| given.get(field).is_some());
    let only_calls = point.event_types().first() == Some(&EventType::BridgeCalled);
    let is_call = only_calls || agent.is_some() || payload.is_some_and(|payload| says(&payload.value));
    match event.filter(|_| is_call) {
        Some(event) => {
            let said = payload.map_or_else(|| "{}".to_owned(), |payload| payload.value.to_string());
            let request = match agent {
                Some(agent) => AgentHookRequest::parse_payload(agent, event, said.as_bytes()),
                None => AgentHookRequest::parse_unnamed_payload(event, said.as_bytes(), |_| false),
            };
            let request = request.map_err(|error| Failure::from_error(FailureCode::Usage, &error))?;
            Ok(TrialInput { values: EventContext::values_of_call(&request.call), request: Some(request) })
        }
        None => Ok(TrialInput { values: build_hook_values(payload, point)?, request: None }),
    }
}

/// Returns the values for hooks, with the payload merged over the defaults.
fn build_hook_values(payload: Option<&TrialPayload>, point: &HookPoint) -> Result<Value, Failure> {
    let mut values = EventContext::empty_values();
    values["point"] = json!(point.name());
    let event = match point {
        HookPoint::Fact(fact) => fact.as_str(),
        point => point.event_types().first().map_or("", |event| event.name()),
    };
    values["event"]["type"] = json!(event);
    let Some(payload) = payload else { return Ok(values) };
    merge_json_values(&mut values, payload.value.clone());
    check_id_fields(&values).map_err(|(cause, hint)| payload.failure(cause, hint))?;
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
