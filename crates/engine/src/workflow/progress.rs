//! The progress of a workflow's run, and the variables of its steps.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Workflow;
use crate::effects::action::ActionRequest;
use crate::log::id::{Digest, Seq};

/// The progress of a run, stored in its pending effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkflowProgress {
    pub workflow: String,
    /// The digest of the definition that the run started with.
    pub digest: Digest,
    /// The number of steps in that definition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps: u32,
    /// The next step; `None` when the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The step that has started and whose end is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way: Option<String>,
    /// The attempt at the run in which that step started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// The events with the results of the finished steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<Seq>,
    /// Whether the log records the run as completed or failed.
    #[serde(default)]
    pub ended: bool,
    /// The reason of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl WorkflowProgress {
    /// Returns the number of steps that remain if none runs twice.
    pub fn remaining_steps(&self) -> u32 {
        self.steps.saturating_sub(u32::try_from(self.done.len()).unwrap_or(u32::MAX))
    }

    /// Returns whether a step has started in this attempt and not ended.
    pub fn is_step_running(&self, attempt: u32) -> bool {
        self.under_way.is_some() && self.attempt == attempt
    }
}

/// The result of a step.
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
        Self { step_id: step.to_owned(), success: true, data, error: None, duration_ms: whole_millis(took) }
    }

    pub fn failed(step: &str, error: impl Into<String>, took: Duration) -> Self {
        let error = Some(error.into());
        Self { step_id: step.to_owned(), success: false, data: None, error, duration_ms: whole_millis(took) }
    }

    /// Replaces the data. A failed step may have data too.
    #[must_use]
    pub fn with_data(self, data: Option<Value>) -> Self {
        Self { data, ..self }
    }
}

fn whole_millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// The outcome of a step, as far as the runner produces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepExecution {
    Ended(StepResult),
    /// The engine carries the action out in the commit of the step's end.
    RunAction(ActionRequest),
    Parallel(ParallelOutcome),
}

/// The outcome of parallel steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParallelOutcome {
    /// In the order of the file, without skipped branches.
    pub branches: Vec<BranchOutcome>,
    pub wanted: SuccessPolicy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchOutcome {
    Ended(StepResult),
    RunAction { step: String, request: ActionRequest },
}

/// The condition under which parallel steps succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuccessPolicy {
    All,
    /// The first success is enough, and the remaining branches are skipped.
    One,
    /// Like `One`, for some of the branches: if none of them succeeds, nothing has happened and the others are tried.
    OneOrContinue,
}

/// The end of a step, and the steps that can follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    pub step: String,
    pub execution: StepExecution,
    pub took: Duration,
    /// The values that the step stores for later steps, by name.
    pub stored: Map<String, Value>,
    pub on_success: Option<String>,
    pub on_failure: Option<String>,
}

/// Names below `context` that belong to the workflow, even if the given context has them.
const RESERVED_NAMES: [&str; 3] = ["workflow", "steps", DATA_NAME];
/// The given value of this name lies below the values that the steps store.
const DATA_NAME: &str = "data";

/// Refuses a context entry that no expression could find.
pub fn check_context_entry(name: &str, value: &Value) -> Result<(), String> {
    match (name, value) {
        (DATA_NAME, Value::Object(_) | Value::Null) => Ok(()),
        (DATA_NAME, _) => {
            Err("names `data`, where the steps store their values: give it a map of names and values, `{…}`".to_owned())
        }
        _ if RESERVED_NAMES.contains(&name) => {
            Err(format!("names `{name}`, and `context.{name}` belongs to the workflow; choose another name"))
        }
        _ => Ok(()),
    }
}

/// The variables of a step's expressions: those of a hook, and the results of earlier steps.
///
/// `context` holds all of them again. There, the given context replaces the variables of a hook, and stored values replace
/// both; `context.data` holds the given value of that name, and above it the stored values.
#[derive(Debug, Clone)]
pub struct StepVariables(Value);

impl StepVariables {
    pub fn from_context(workflow: &Workflow, values: Value, given: &Map<String, Value>) -> Self {
        let mut all = match values {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let mut around = all.clone();
        around.extend(given.clone());
        let own = [
            ("workflow", json!({"id": workflow.id, "name": workflow.name})),
            ("steps", json!({})),
            (DATA_NAME, json!({})),
        ];
        for (name, value) in own {
            around.insert(name.to_owned(), value.clone());
            all.insert(name.to_owned(), value);
        }
        if let Some(floor @ Value::Object(_)) = given.get(DATA_NAME) {
            around.insert(DATA_NAME.to_owned(), floor.clone());
        }
        all.insert("context".to_owned(), Value::Object(around));
        Self(Value::Object(all))
    }

    /// Adds the result and the stored values of a finished step.
    pub fn add_step_result(&mut self, result: &StepResult, within: &[StepResult], stored: &Map<String, Value>) {
        for result in within.iter().chain([result]) {
            let value = json!(result);
            self.0["context"]["steps"][&result.step_id] = value.clone();
            self.0["steps"][&result.step_id] = value;
        }
        for (name, value) in stored {
            self.0[DATA_NAME][name] = value.clone();
            self.0["context"][DATA_NAME][name] = value.clone();
            if !RESERVED_NAMES.contains(&name.as_str()) {
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
    fn stored_data_overrides_given_context_and_hook_values() {
        let workflow = Workflow {
            id: "w".to_owned(),
            name: None,
            description: None,
            steps: Vec::new(),
            digest: Digest::of_bytes(b"w"),
        };
        let given = json!({"goal": "given", "error": {"code": 3}, "branch_name": "b", "version": 1, "data": {"who": "ann", "version": 0}});
        let values = json!({"goal": "of the hook", "error": "of the hook", "task": {"id": "T1"}});
        let mut known = StepVariables::from_context(&workflow, values, given.as_object().unwrap());
        let stored = json!({"version": 2, "steps": 3}).as_object().unwrap().clone();
        known.add_step_result(&StepResult::succeeded("a", None, Duration::ZERO), &[], &stored);
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
    fn reserved_context_names_are_refused() {
        let of = |name: &str, value: Value| check_context_entry(name, &value).err().unwrap_or_default();
        assert_eq!(of("goal", json!(1)) + &of("data", json!({"a": 1})) + &of("data", Value::Null), "");
        assert!(of("steps", json!({})).contains("`context.steps` belongs to the workflow"));
        assert!(of("data", json!([1])).contains("give it a map of names and values"));
    }
}
