//! Pending work: effects that a crash may interrupt, and their recovery.
//!
//! An event creates an effect in its own commit. `hook_started` and `hook_finished` (for a turn: `turn_started` and the event
//! that ends it) stand before and after the effect. An effect that a dead owner had started was interrupted;
//! `EffectKind::recovery_action` is the whole table of recoveries.

use serde::{Deserialize, Serialize};

use crate::effects::action::ActionRequest;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::log::id::{ConfigDigest, EffectId, OwnerName, RunId, Seq, SessionName, TaskId};
use crate::workflow::WorkflowProgress;

/// The kind of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    Hook(HookEffect),
    /// One agent turn.
    Turn {
        session: SessionName,
        run: RunId,
    },
}

/// The recovery of an effect whose owner died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryAction {
    /// It never began: run it.
    Run,
    RunAgain,
    /// From the step that had not ended.
    Continue,
    CheckThenRun,
    /// The receiver knows the key and counts it once.
    SendAgain,
    /// Record it as interrupted, with this meaning.
    Record(HookFailurePolicy),
    /// The iteration ends as interrupted; the next one takes the work up.
    EndIteration,
}

impl EffectKind {
    /// Returns the recovery of an interrupted effect. This is the whole table.
    pub fn recovery_action(&self) -> RecoveryAction {
        match self {
            Self::Turn { .. } => RecoveryAction::EndIteration,
            Self::Hook(hook) => match hook.class {
                HookClass::Gate | HookClass::Idempotent => RecoveryAction::RunAgain,
                HookClass::Vcs => RecoveryAction::CheckThenRun,
                HookClass::Webhook => RecoveryAction::SendAgain,
                HookClass::Workflow => RecoveryAction::Continue,
                HookClass::Bridge => RecoveryAction::Record(HookFailurePolicy::Ignore),
                HookClass::Other => RecoveryAction::Record(hook.on_failure),
            },
        }
    }
}

/// A row of the table of effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingEffect {
    pub id: EffectId,
    #[serde(rename = "effect")]
    pub kind: EffectKind,
    pub config: ConfigDigest,
    /// Its owner. Other processes may take it only when the owner is dead.
    pub owner: OwnerName,
    /// How often it was begun.
    pub attempts: u32,
    /// How many hooks and actions lie between a person's command and this effect.
    pub depth: u8,
    /// How many events it may still lead to.
    pub share: u32,
    pub nesting: u8,
    /// The actions that the hooks before it asked for. They are performed after the last hook of the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<ActionRequest>,
    /// Its progress, if it is a workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<WorkflowProgress>,
    /// The failure of its last attempt, while it waits for the next one and no part of it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The last event that changed this row.
    pub version: Seq,
}

impl PendingEffect {
    /// Returns what a process that takes it over has to do.
    pub fn recovery_action(&self) -> RecoveryAction {
        let awaited = !matches!(&self.kind, EffectKind::Hook(hook) if hook.class == HookClass::Bridge);
        let idle = self.attempts == 0 || self.resting.is_some();
        if idle && awaited { RecoveryAction::Run } else { self.kind.recovery_action() }
    }
}
