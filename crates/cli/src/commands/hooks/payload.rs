//! The input of a trial: default values with a person's payload merged over them, or the payload of an agent's hook system.
//!
//! Invariant: a value that is put into a command unquoted has the form that it has in the log. A payload may come from
//! anywhere, and the shell would run a session name with a semicolon.

use std::path::Path;

use serde_json::{Value, json};
use windlass_app::{Code, Failure};
use windlass_bridge::{Agent, AgentHookEvent, AgentHookRequest};
use windlass_engine::{EventType, HookPoint, ParseIdError, SessionName, Situation, TaskId};

use crate::commands::input::read_bytes;

/// The longest accepted payload.
const LONGEST: usize = 16 * 1024 * 1024;

/// The input of the hooks of a trial.
pub struct Given {
    /// The values that hooks get.
    pub values: Value,
    /// The agent's request, if the trial stands for a call of an agent.
    pub request: Option<AgentHookRequest>,
}

/// Fields that identify the conversation in payloads of agents. Windlass's own fields have other names.
const SAID_BY_AGENTS: [&str; 4] = ["session_id", "conversation_id", "sessionId", "hook_event_name"];

/// Builds the input of a trial. It is a call of an agent if the point knows only calls, if `agent` is given or if the payload
/// looks like one; else it is an event of the loop.
pub fn given(payload: Option<&Path>, point: &HookPoint, agent: Option<Agent>) -> Result<Given, Failure> {
    let event = AgentHookEvent::of_point(point);
    if let (Some(agent), None) = (agent, event) {
        let points: Vec<_> = AgentHookEvent::ALL.iter().map(|event| event.point().name()).collect();
        let failure = Failure::new(Code::Usage, format!("{} never calls at {point}", agent.title()));
        return Err(failure.hint(format!("agents call at {}", points.join(", "))));
    }
    let given = payload.map(|path| read(path).map(|given| (path, given))).transpose()?;
    let says = |given: &Value| SAID_BY_AGENTS.iter().any(|field| given.get(field).is_some());
    let only_calls = point.events().first() == Some(&EventType::BridgeCalled);
    let is_call = only_calls || agent.is_some() || given.as_ref().is_some_and(|(_, given)| says(given));
    match event.filter(|_| is_call) {
        Some(event) => {
            let said = given.as_ref().map_or_else(|| "{}".to_owned(), |(_, given)| given.to_string());
            let request = match agent {
                Some(agent) => AgentHookRequest::parse(agent, event, said.as_bytes()),
                None => AgentHookRequest::parse_unnamed(event, said.as_bytes(), |_| false),
            };
            let request = request.map_err(|error| Failure::from_error(Code::Usage, &error))?;
            Ok(Given { values: Situation::of_call(&request.call), request: Some(request) })
        }
        None => Ok(Given { values: values(given, point)?, request: None }),
    }
}

fn wrong(path: &Path, cause: impl Into<String>) -> Failure {
    Failure::new(Code::Usage, format!("cannot use the payload `{}`", path.display())).caused_by(cause.into())
}

fn read(path: &Path) -> Result<Value, Failure> {
    let bytes = read_bytes(path, LONGEST, "a payload for a trial can be shorter: leave out what no hook reads")?;
    let given: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(path, error.to_string()))?;
    if !given.is_object() {
        return Err(wrong(path, "it is not a JSON object").hint("write it as {\"iteration\": 1, …}"));
    }
    Ok(given)
}

/// Returns the values for hooks, with the payload merged over the defaults.
fn values(given: Option<(&Path, Value)>, point: &HookPoint) -> Result<Value, Failure> {
    let mut values = Situation::nothing();
    values["point"] = json!(point.name());
    let event = match point {
        HookPoint::Fact(fact) => fact.as_str(),
        point => point.events().first().map_or("", |event| event.name()),
    };
    values["event"]["type"] = json!(event);
    let Some((path, given)) = given else { return Ok(values) };
    lay_over(&mut values, given);
    check(&values).map_err(|(cause, hint)| wrong(path, cause).hint(hint))?;
    // Aliases get the value of the field, unless the payload has them too.
    for (name, of) in [("task_id", "id"), ("taskId", "id"), ("task_content", "content")] {
        if values[name] == "" && values["task"][of].is_string() {
            values[name] = values["task"][of].clone();
        }
    }
    Ok(values)
}

/// Checks the fields that commands get unquoted. An error has the cause and a hint.
fn check(values: &Value) -> Result<(), (String, &'static str)> {
    type Check = fn(&str) -> Result<(), ParseIdError>;
    let is_session: Check = |text| text.parse::<SessionName>().map(drop);
    let is_task: Check = |text| text.parse::<TaskId>().map(drop);
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
            Some(other) => Err(format!("{other} is no text")),
        };
        right.map_err(|why| (format!("`{name}`: {why}"), "leave it out, or write it as it is in the log"))?;
    }
    match &values["iteration"] {
        Value::Number(number) if number.is_u64() => Ok(()),
        other => Err((format!("`iteration`: {other} is not a number such as 3"), "leave it out, or count from 1")),
    }
}

/// Merges objects and replaces every other value.
fn lay_over(values: &mut Value, given: Value) {
    match (values, given) {
        (Value::Object(values), Value::Object(given)) => {
            for (name, value) in given {
                lay_over(values.entry(name).or_insert(Value::Null), value);
            }
        }
        (values, given) => *values = given,
    }
}
