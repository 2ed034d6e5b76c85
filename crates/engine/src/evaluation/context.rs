//! What stop hooks look at: the state of the agent's work.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::evaluation::validation::RuleResult;
use crate::log::id::TaskId;
use crate::log::time::Timestamp;
use crate::session::promise::Promise;

/// What is known of the work when hooks are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentContext {
    /// `None` for work that is no task.
    pub task_id: Option<TaskId>,
    /// The first is 1.
    pub iteration: u32,
    /// That of the last checkpoint.
    pub execution_phase: Option<String>,
    pub files_modified: Vec<String>,
    /// What the validation rules have just said.
    pub validation_results: Vec<RuleResult>,
    /// Those that were made.
    pub completion_promises: Vec<SeenPromise>,
    pub agent_output: Option<String>,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
}

impl AgentContext {
    /// As conditions, templates and programs see it: every field is there.
    pub fn values(&self) -> Value {
        let mut values = serde_json::to_value(self).expect("a context has string keys");
        // Events leave `broken` out where it is false, and an expression over what is missing fails.
        for (at, result) in self.validation_results.iter().enumerate() {
            values["validationResults"][at]["broken"] = result.broken.into();
        }
        values
    }

    pub(super) fn promises(&self, promise: Promise) -> bool {
        self.completion_promises.iter().any(|seen| seen.kind == promise && seen.detected)
    }
}

/// A promise that was found in what the agent said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenPromise {
    #[serde(rename = "type")]
    pub kind: Promise,
    pub detected: bool,
    /// As it is written.
    pub content: String,
    pub detected_at: Timestamp,
}

impl SeenPromise {
    pub fn at(promise: Promise, detected_at: Timestamp) -> Self {
        Self { kind: promise, detected: true, content: promise.tag().to_owned(), detected_at }
    }
}
