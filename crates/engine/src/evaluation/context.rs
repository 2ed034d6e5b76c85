//! The input of stop hooks: the state of the agent's work.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::evaluation::validation::RuleResult;
use crate::log::id::TaskId;
use crate::log::time::Timestamp;
use crate::session::promise::Promise;

/// The state of the work when hooks are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentContext {
    /// `None` for work without a task.
    pub task_id: Option<TaskId>,
    /// Counts from 1.
    pub iteration: u32,
    /// The phase of the last checkpoint.
    pub execution_phase: Option<String>,
    pub files_modified: Vec<String>,
    /// The latest results of the validation rules.
    pub validation_results: Vec<RuleResult>,
    /// The promises that the agent made.
    pub completion_promises: Vec<DetectedPromise>,
    pub agent_output: Option<String>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
}

impl AgentContext {
    /// Returns the values for conditions, templates and programs: every field exists.
    pub fn to_values(&self) -> Value {
        let mut values = serde_json::to_value(self).expect("a context has string keys");
        // Events leave out a `broken` that is false, and an expression over a missing field fails.
        for (at, result) in self.validation_results.iter().enumerate() {
            values["validationResults"][at]["broken"] = result.broken.into();
        }
        values
    }

    pub(super) fn has_promise(&self, promise: Promise) -> bool {
        self.completion_promises.iter().any(|seen| seen.kind == promise && seen.detected)
    }
}

/// A promise that was found in the agent's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DetectedPromise {
    #[serde(rename = "type")]
    pub kind: Promise,
    pub detected: bool,
    /// Its text.
    pub content: String,
    pub detected_at: Timestamp,
}

impl DetectedPromise {
    pub fn from_promise(promise: Promise, detected_at: Timestamp) -> Self {
        Self { kind: promise, detected: true, content: promise.tag().to_owned(), detected_at }
    }
}
