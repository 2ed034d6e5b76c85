//! Work that is owed: what a crash may interrupt, and what is to be done about it then.
//!
//! An effect is made by an event, in the commit of that event. `hook_started` and `hook_finished` (for a turn:
//! `turn_started` and whatever ended it) stand before and after the effect. An effect that was started by an
//! owner who is dead was interrupted; [`Effect::recovery`] is the whole table of what happens then.

use serde::{Deserialize, Serialize};

use crate::effects::action::ActionRequest;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, OnFailure};
use crate::log::id::{ConfigDigest, EffectId, OwnerName, RunId, Seq, SessionName, TaskId};
use crate::workflow::Progress;

/// The work itself.
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

/// What to do about an effect whose owner died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// It never began: run it.
    Run,
    RunAgain,
    /// From the step that had not ended.
    GoOn,
    LookThenAct,
    /// The receiver knows the key and counts it once.
    SendAgain,
    /// It is recorded as interrupted, and counts as this says.
    Record(OnFailure),
    /// The iteration ends as interrupted; the next one takes the work up.
    EndIteration,
}

impl EffectKind {
    /// The table of interrupted effects.
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::Turn { .. } => Recovery::EndIteration,
            Self::Hook(hook) => match hook.class {
                HookClass::Gate | HookClass::Idempotent => Recovery::RunAgain,
                HookClass::Vcs => Recovery::LookThenAct,
                HookClass::Webhook => Recovery::SendAgain,
                HookClass::Workflow => Recovery::GoOn,
                HookClass::Bridge => Recovery::Record(OnFailure::Ignore),
                HookClass::Other => Recovery::Record(hook.on_failure),
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
    /// Whoever owes it; free for others only when that owner is dead.
    pub owner: OwnerName,
    /// How often it was begun.
    pub attempts: u32,
    /// How many hooks and actions lie between a person's command and this.
    pub depth: u8,
    /// How many events it may still lead to.
    pub share: u32,
    pub nesting: u8,
    /// What the hooks before it have asked for: it is carried out after the last one of the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<ActionRequest>,
    /// How far it has come, if it is a workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// How its last attempt failed, while it waits for the next one and nothing of it runs.
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
    /// What whoever takes it over has to do.
    pub fn recovery(&self) -> Recovery {
        let awaited = !matches!(&self.kind, EffectKind::Hook(hook) if hook.class == HookClass::Bridge);
        let idle = self.attempts == 0 || self.resting.is_some();
        if idle && awaited { Recovery::Run } else { self.kind.recovery() }
    }
}
