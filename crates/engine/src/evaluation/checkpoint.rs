//! Checkpoints: saved states to resume from.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::limits::{EngineLimits, check_json_value, check_nonblank_text, check_text_size};
use crate::command::refusal::Refusal;
use crate::log::id::{CheckpointId, SeriesId};
use crate::log::time::Timestamp;
use crate::log::value_names::value_names;

const AUTOMATIC_LIFETIME: Duration = Duration::from_hours(24);
const MANUAL_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// The trigger of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointTrigger {
    Manual,
    AutoStatus,
    AutoSubtask,
    Error,
    /// A stop hook asked for it.
    Hook,
}

value_names!(
    CheckpointTrigger,
    "trigger",
    Manual = "manual",
    AutoStatus = "auto_status",
    AutoSubtask = "auto_subtask",
    Error = "error",
    Hook = "hook",
);

impl CheckpointTrigger {
    /// Returns how long such a checkpoint is kept by default.
    fn default_lifetime(self) -> Duration {
        if self == Self::Manual { MANUAL_LIFETIME } else { AUTOMATIC_LIFETIME }
    }
}

/// A checkpoint to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheckpoint {
    pub trigger: CheckpointTrigger,
    pub execution_phase: Option<String>,
    pub execution_step: Option<u64>,
    /// Free data of the agent.
    pub agent_context: Value,
    pub draft_content: Option<String>,
    pub draft_type: Option<String>,
    /// How long it is kept.
    pub expires_in: Option<Duration>,
}

impl NewCheckpoint {
    pub fn with_trigger(trigger: CheckpointTrigger) -> Self {
        Self {
            trigger,
            execution_phase: None,
            execution_step: None,
            agent_context: Value::Null,
            draft_content: None,
            draft_type: None,
            expires_in: None,
        }
    }

    /// Returns the checkpoint that a stop hook asks for. Unknown fields make the whole data its context.
    pub fn from_hook_data(data: &Value) -> Self {
        let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
        let known = ["executionPhase", "executionStep", "agentContext", "draftContent", "draftType"];
        let is_known = data.as_object().is_some_and(|data| data.keys().all(|name| known.contains(&name.as_str())));
        match is_known {
            true => Self {
                execution_phase: text("executionPhase"),
                execution_step: data.get("executionStep").and_then(Value::as_u64),
                agent_context: data.get("agentContext").cloned().unwrap_or_default(),
                draft_content: text("draftContent"),
                draft_type: text("draftType"),
                ..Self::with_trigger(CheckpointTrigger::Hook)
            },
            false => Self { agent_context: data.clone(), ..Self::with_trigger(CheckpointTrigger::Hook) },
        }
    }

    pub(crate) fn check_limits(&self) -> Result<(), Refusal> {
        if let Some(phase) = &self.execution_phase {
            check_nonblank_text("executionPhase", phase, EngineLimits::LABEL_BYTES)?;
        }
        if let Some(kind) = &self.draft_type {
            check_nonblank_text("draftType", kind, EngineLimits::LABEL_BYTES)?;
        }
        check_json_value("agentContext", &self.agent_context)?;
        check_text_size(
            "draftContent",
            self.draft_content.as_deref().unwrap_or_default(),
            EngineLimits::ACCEPTED_DRAFT_BYTES,
        )?;
        match self.expires_in {
            Some(time) if time.is_zero() => {
                Err(Refusal::invalid_input("expiresIn", "is 0; give it in minutes, at least 1"))
            }
            Some(time) if time > EngineLimits::CHECKPOINT_LIFETIME => {
                Err(Refusal::invalid_input("expiresIn", "is more than a year; give it in minutes, at most 525600"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the part of the draft that is kept, and the length of the whole draft if it was cut.
    pub(crate) fn stored_draft(&self) -> (Option<String>, Option<u64>) {
        let Some(draft) = &self.draft_content else { return (None, None) };
        let kept = &draft[..draft.floor_char_boundary(EngineLimits::STORED_DRAFT_BYTES)];
        let cut = (kept.len() < draft.len()).then(|| u64::try_from(draft.len()).expect("a draft is small"));
        (Some(kept.to_owned()), cut)
    }

    pub(crate) fn expires_at(&self, now: Timestamp) -> Timestamp {
        let lasts = self.expires_in.unwrap_or_else(|| self.trigger.default_lifetime());
        now.add_millis(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A checkpoint, as the row of its task names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointRef {
    pub id: CheckpointId,
    /// Its number among the task's checkpoints, from 1.
    pub sequence: u32,
    pub trigger: CheckpointTrigger,
    pub expires_at: Timestamp,
    /// The series that was in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesId>,
}
