//! How far a run of a workflow has come, and what its steps know of it.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Workflow;
use crate::effects::action::ActionRequest;
use crate::log::id::{Digest, Seq};

/// How far a run has come: a part of what is owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Progress {
    pub workflow: String,
    /// Of the definition that it was begun with.
    pub digest: Digest,
    /// How many steps that has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps: u32,
    /// The step that comes next; none when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The step that has begun, and of whose end nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way: Option<String>,
    /// In which attempt at the run it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// The events that say what the finished steps came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<Seq>,
    /// Whether the log says that it is completed or has failed.
    #[serde(default)]
    pub ended: bool,
    /// Why it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Progress {
    /// How many steps it may still take, if it takes none of them twice.
    pub fn ahead(&self) -> u32 {
        self.steps.saturating_sub(u32::try_from(self.done.len()).unwrap_or(u32::MAX))
    }

    /// Whether a step has begun in this attempt at the run, and not ended.
    pub fn is_under_way(&self, attempt: u32) -> bool {
        self.under_way.is_some() && self.attempt == attempt
    }
}

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepResult {
    pub step_id: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub duration_ms: u64,
}

impl StepResult {
    pub fn succeeded(step: &str, data: Option<Value>, took: Duration) -> Self {
        Self { step_id: step.to_owned(), success: true, data, error: None, duration_ms: millis(took) }
    }

    pub fn failed(step: &str, error: impl Into<String>, took: Duration) -> Self {
        let error = Some(error.into());
        Self { step_id: step.to_owned(), success: false, data: None, error, duration_ms: millis(took) }
    }

    /// What it left all the same.
    #[must_use]
    pub fn with(self, data: Option<Value>) -> Self {
        Self { data, ..self }
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// What was done for a step, as far as that is not for the engine to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Did {
    Ended(StepResult),
    /// It is done with the step's end, in one commit.
    Act(ActionRequest),
    Several(Several),
}

/// What was done for steps side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Several {
    /// In the order of the file. What was left out is not among them.
    pub branches: Vec<Branch>,
    pub wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    Ended(StepResult),
    Act { step: String, request: ActionRequest },
}

/// Which of several steps have to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    All,
    /// The first one is enough: what could be done after it is left out.
    One,
    /// The same, and there are others to turn to: where none of these succeeds, nothing has happened.
    OneOfMore,
}

/// The end of a step, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEnd {
    pub step: String,
    pub did: Did,
    pub took: Duration,
    /// What it leaves for later steps, by name.
    pub stored: Map<String, Value>,
    pub on_success: Option<String>,
    pub on_failure: Option<String>,
}

/// Names below `context` that are the workflow's own, whatever it is given.
const OWN: [&str; 3] = ["workflow", "steps", DATA];
/// What it is given under this name lies below what its steps store.
const DATA: &str = "data";

/// Refuses what a workflow cannot be given: it would never be found.
pub fn check_given(name: &str, value: &Value) -> Result<(), String> {
    match (name, value) {
        (DATA, Value::Object(_) | Value::Null) => Ok(()),
        (DATA, _) => {
            Err("names `data`, where its steps store what they find: give it names with values, `{…}`".to_owned())
        }
        _ if OWN.contains(&name) => {
            Err(format!("names `{name}`, and `context.{name}` is the workflow's own; call it otherwise"))
        }
        _ => Ok(()),
    }
}

/// What the expressions of a step know: what a hook would, and what came of the steps before it.
///
/// `context` has all of it once more. There, what the workflow was given comes before what a hook would know, and what its
/// steps have stored before both; `context.data` is what was given under that name, and above it what was stored.
#[derive(Debug, Clone)]
pub struct Known(Value);

impl Known {
    pub fn begin(workflow: &Workflow, values: Value, given: &Map<String, Value>) -> Self {
        let mut all = match values {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let mut around = all.clone();
        around.extend(given.clone());
        let own =
            [("workflow", json!({"id": workflow.id, "name": workflow.name})), ("steps", json!({})), (DATA, json!({}))];
        for (name, value) in own {
            around.insert(name.to_owned(), value.clone());
            all.insert(name.to_owned(), value);
        }
        if let Some(floor @ Value::Object(_)) = given.get(DATA) {
            around.insert(DATA.to_owned(), floor.clone());
        }
        all.insert("context".to_owned(), Value::Object(around));
        Self(Value::Object(all))
    }

    /// What has become known with the end of a step.
    pub fn add(&mut self, result: &StepResult, within: &[StepResult], stored: &Map<String, Value>) {
        for result in within.iter().chain([result]) {
            let told = json!(result);
            self.0["context"]["steps"][&result.step_id] = told.clone();
            self.0["steps"][&result.step_id] = told;
        }
        for (name, value) in stored {
            self.0[DATA][name] = value.clone();
            self.0["context"][DATA][name] = value.clone();
            if !OWN.contains(&name.as_str()) {
                self.0["context"][name] = value.clone();
            }
        }
    }

    pub fn values(&self) -> &Value {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::id::Digest;

    #[test]
    fn what_is_given_comes_before_what_a_hook_knows_and_stored_data_before_both() {
        let workflow =
            Workflow { id: "w".to_owned(), name: None, description: None, steps: Vec::new(), digest: Digest::of(b"w") };
        let given = json!({"goal": "given", "error": {"code": 3}, "branch_name": "b", "version": 1, "data": {"who": "ann", "version": 0}});
        let values = json!({"goal": "of the hook", "error": "of the hook", "task": {"id": "T1"}});
        let mut known = Known::begin(&workflow, values, given.as_object().unwrap());
        let stored = json!({"version": 2, "steps": 3}).as_object().unwrap().clone();
        known.add(&StepResult::succeeded("a", None, Duration::ZERO), &[], &stored);
        let values = known.values();
        assert_eq!((&values["goal"], &values["context"]["goal"]), (&json!("of the hook"), &json!("given")));
        assert_eq!(values["context"]["error"]["code"], json!(3));
        assert_eq!(values["context"]["task"]["id"], json!("T1"));
        assert_eq!((&values["context"]["version"], &values["data"]["version"]), (&json!(2), &json!(2)));
        assert_eq!(values["context"]["steps"]["a"]["success"], json!(true));
        assert_eq!(values["context"]["data"], json!({"who": "ann", "version": 2, "steps": 3}));
        assert_eq!(values["data"], json!({"version": 2, "steps": 3}), "only what was stored");
    }

    #[test]
    fn what_would_never_be_found_cannot_be_given() {
        let of = |name: &str, value: Value| check_given(name, &value).err().unwrap_or_default();
        assert_eq!(of("goal", json!(1)) + &of("data", json!({"a": 1})) + &of("data", Value::Null), "");
        assert!(of("steps", json!({})).contains("`context.steps` is the workflow's own"));
        assert!(of("data", json!([1])).contains("give it names with values"));
    }
}
