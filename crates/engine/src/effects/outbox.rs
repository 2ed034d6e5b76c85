//! Work that is owed: what a crash may interrupt, and what is to be done about it then.
//!
//! An effect is made by an event, in the commit of that event. `hook_started` and `hook_finished` (for a turn:
//! `turn_started` and whatever ended it) stand before and after the effect. An effect that was started by an
//! owner who is dead was interrupted; [`Effect::recovery`] is the whole table of what happens then.

use serde::{Deserialize, Serialize};

use crate::command::limits::Limits;
use crate::effects::action::ActionRequest;
use crate::effects::hook_point::HookPoint;
use crate::log::id::{ConfigDigest, EffectId, OwnerName, RunId, Seq, SessionName, TaskId};
use crate::log::value_names::value_names;
use crate::view::{Looked, View};
use crate::workflow::Progress;

/// What kind of effect a hook has, as far as running it again is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookClass {
    /// A gate or a validation rule: it only judges.
    Gate,
    /// A git or forge operation: it can see whether it has already happened.
    Vcs,
    /// A request with an idempotency key.
    Webhook,
    /// Several steps, each of which says when it has ended.
    Workflow,
    /// Says of itself that it may run again.
    Idempotent,
    /// An agent's hook system waits for it, and nobody else ever will.
    Bridge,
    Other,
}

/// What a crash, a timeout or a bad answer of the hook itself counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    Ignore,
    Block,
    Escalate,
}

/// How one run of a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    Success,
    Skip,
    Failure,
    /// The agent is sent back at once.
    Block,
    /// The work is not done: another iteration.
    Continue,
    /// The base has moved: what was judged is to be judged once more, on top of it. Nobody has failed.
    Again,
    /// A person is needed.
    Escalate,
    TimedOut,
    /// Somebody has asked for the end while it ran.
    Cancelled,
    /// Its owner died while it ran, and it may not run again.
    Interrupted,
}

value_names!(
    HookOutcome,
    "outcome of a hook",
    Success = "success",
    Skip = "skip",
    Failure = "failure",
    Block = "block",
    Continue = "continue",
    Again = "again",
    Escalate = "escalate",
    TimedOut = "timed_out",
    Cancelled = "cancelled",
    Interrupted = "interrupted",
);

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

/// Whose share it is that a hook uses: its own, or that of the one which has taken it over.
pub(crate) fn payer(view: &dyn View, effect: EffectId) -> Looked<Option<PendingEffect>> {
    match view.effect(effect)? {
        Some(effect) => Ok(Some(effect)),
        None => sibling(view, effect),
    }
}

/// Another hook of the same event that has yet to end: the first one.
pub(crate) fn sibling(view: &dyn View, effect: EffectId) -> Looked<Option<PendingEffect>> {
    let mut after = Some(EffectId { seq: Seq(effect.seq.0.saturating_sub(1)), index: u32::MAX });
    while let Some(other) = view.next_effect(after)?.filter(|other| other.id.seq == effect.seq) {
        if other.id != effect && matches!(other.kind, EffectKind::Hook(_)) {
            return Ok(Some(other));
        }
        after = Some(other.id);
    }
    Ok(None)
}
