//! The payloads of workflow events.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::log::id::{Digest, EffectId};
use crate::workflow::StepResult;

payloads! {
    /// A hook or a person requests a run of a workflow.
    WorkflowTriggered {
        workflow_id: String,
        /// The context values of the run.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        context: Map<String, Value>,
    }
    WorkflowStarted {
        #[serde(rename = "debt")]
        effect: EffectId,
        workflow_id: String,
        /// The digest of the workflow's definition.
        digest: Digest,
        /// The first step.
        step: String,
        /// The number of steps in the definition.
        #[serde(default, skip_serializing_if = "is_none")]
        steps: u32,
    }
    /// A step that runs programs.
    WorkflowStepStarted {
        #[serde(rename = "debt")]
        effect: EffectId,
        step: String,
        /// Above 1 when an interrupted run is repeated.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
    }
    WorkflowStepFinished {
        #[serde(rename = "debt")]
        effect: EffectId,
        result: StepResult,
        /// The results of the nested steps.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        within: Vec<StepResult>,
        /// The values that the step stores for later steps, by name.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        stored: Map<String, Value>,
        /// The next step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }
    WorkflowCompleted {
        #[serde(rename = "debt")]
        effect: EffectId,
        workflow_id: String,
        /// The number of finished steps.
        steps: u32,
    }
    WorkflowFailed {
        #[serde(rename = "debt")]
        effect: EffectId,
        workflow_id: String,
        steps: u32,
        error: String,
    }
}

fn is_none(steps: &u32) -> bool {
    *steps == 0
}

fn first() -> u32 {
    1
}

fn is_first(attempt: &u32) -> bool {
    *attempt == first()
}
