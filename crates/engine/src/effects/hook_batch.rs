//! The hooks that an event makes owed, as the event names them.

use serde::{Deserialize, Serialize};

use crate::command::limits::Limits;
use crate::effects::hook_outcome::{HookClass, OnFailure};
use crate::effects::hook_point::HookPoint;
use crate::log::id::{ConfigDigest, OwnerName};

/// An effectful hook that an event made owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookEffect {
    pub hook: String,
    /// Where it runs: two points may come with the same event.
    pub point: HookPoint,
    pub class: HookClass,
    pub on_failure: OnFailure,
    /// At the stop gate: how often it may send the agent back within an iteration, instead of `max_hook_retries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_backs: Option<u32>,
}

impl HookEffect {
    /// Whether it judges the work: it stands at a gate, and is no step of git.
    pub fn is_check(&self) -> bool {
        self.class == HookClass::Gate && (self.point.is_gate())
    }
}

/// Everything that one event made owed, by whom, and under which configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookBatch {
    pub config: ConfigDigest,
    pub owner: OwnerName,
    pub hooks: Vec<HookEffect>,
    /// How many events each of them may lead to.
    #[serde(default = "everything")]
    pub share: u32,
    /// How many calls of `windlass` lie within each other on the way to them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nesting: u8,
}

/// What was owed before hooks had a share.
fn everything() -> u32 {
    Limits::EVENTS
}

pub(crate) fn is_zero(number: &u8) -> bool {
    *number == 0
}
