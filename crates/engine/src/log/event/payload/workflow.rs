//! What the events of workflows say.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::log::id::{Digest, EffectId};
use crate::workflow::StepResult;

payloads! {
    /// Somebody wants a workflow to be run: a hook that asks for it, or a person.
    WorkflowTriggered {
        workflow_id: String,
        /// What it is given.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        context: Map<String, Value>,
    }
    WorkflowStarted {
        #[serde(rename = "debt")]
        effect: EffectId,
        workflow_id: String,
        /// Of its definition.
        digest: Digest,
        /// The first step.
        step: String,
        /// How many its definition has.
        #[serde(default, skip_serializing_if = "is_none")]
        steps: u32,
    }
    /// A step that runs programs.
    WorkflowStepStarted {
        #[serde(rename = "debt")]
        effect: EffectId,
        step: String,
        /// Above 1 where a run that was interrupted is made good.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        attempt: u32,
    }
    WorkflowStepFinished {
        #[serde(rename = "debt")]
        effect: EffectId,
        result: StepResult,
        /// What the steps within it came to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        within: Vec<StepResult>,
        /// What it leaves for later steps, by name.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        stored: Map<String, Value>,
        /// The step that follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }
    WorkflowCompleted {
        #[serde(rename = "debt")]
        effect: EffectId,
        workflow_id: String,
        /// How many steps were done.
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
