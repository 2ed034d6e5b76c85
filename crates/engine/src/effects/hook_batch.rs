//! The hooks that an event enqueues, as the event names them.

use serde::{Deserialize, Serialize};

use crate::command::limits::EngineLimits;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::log::id::{ConfigDigest, OwnerName};

/// An effectful hook that an event enqueues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookEffect {
    pub hook: String,
    /// Its point: two points may belong to the same event.
    pub point: HookPoint,
    pub class: HookClass,
    pub on_failure: HookFailurePolicy,
    /// At a gate, the limit of its send-backs in an iteration, instead of `max_hook_retries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_backs: Option<u32>,
}

impl HookEffect {
    /// Returns whether it judges the work: it belongs to a gate, and is no step of git.
    pub fn is_check(&self) -> bool {
        self.class == HookClass::Gate && (self.point.is_gate())
    }
}

/// All hooks that one event enqueues, with their owner and their configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookBatch {
    pub config: ConfigDigest,
    pub owner: OwnerName,
    pub hooks: Vec<HookEffect>,
    /// How many events each of them may lead to.
    #[serde(default = "default_share")]
    pub share: u32,
    /// How many nested calls of `windlass` lead to them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nesting: u8,
}

/// The share of hooks in logs from before shares existed.
fn default_share() -> u32 {
    EngineLimits::CASCADE_EVENTS
}

pub(crate) fn is_zero(number: &u8) -> bool {
    *number == 0
}
