//! How far a run of a workflow has come, and what its steps know of it.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Workflow;
use crate::action::ActionRequest;
use crate::id::{Digest, Seq};

/// How far a run has come: a part of what is owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Progress {
    pub workflow: String,
    /// Of the definition that it was begun with.
    pub digest: Digest,
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

fn is_zero(attempt: &u32) -> bool {
    *attempt == 0
}

impl Progress {
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
    Several {
        ended: Vec<StepResult>,
        acts: Vec<(String, ActionRequest)>,
        /// Whether all of them have to succeed, or one.
        all: bool,
    },
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

/// What the expressions of a step know: what a hook would, and what came of the steps before it.
///
/// `context` has all of it once more, with what the workflow was given and what its steps have stored.
pub fn context(workflow: &Workflow, values: Value, given: &Map<String, Value>, done: &[StepDone<'_>]) -> Value {
    let mut all = match values {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let (mut steps, mut data) = (Map::new(), Map::new());
    for StepDone { result, within, stored } in done {
        for result in within.iter().copied().chain([*result]) {
            steps.insert(result.step_id.clone(), json!(result));
        }
        data.extend((*stored).clone());
    }
    all.insert("workflow".to_owned(), json!({"id": workflow.id, "name": workflow.name}));
    all.insert("steps".to_owned(), Value::Object(steps));
    all.insert("data".to_owned(), Value::Object(data.clone()));
    let mut around = given.clone();
    around.extend(data);
    around.extend(all.clone());
    all.insert("context".to_owned(), Value::Object(around));
    Value::Object(all)
}

/// A step that has ended, with those within it.
#[derive(Debug, Clone, Copy)]
pub struct StepDone<'a> {
    pub result: &'a StepResult,
    pub within: &'a [&'a StepResult],
    pub stored: &'a Map<String, Value>,
}
