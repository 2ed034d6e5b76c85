//! The gates between done and accepted: the combined result of their hooks, and the consequence of a failure.

use serde::{Deserialize, Serialize};

use crate::command::limits::extract_summary_line;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy, HookOutcome};
use crate::effects::hook_point::HookPoint;
use crate::log::id::ConfigDigest;
use crate::session::GateVerdict;
use crate::task::CompletionClaim;

/// A finding that the next agent on a task has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateFinding {
    pub source: String,
    pub text: String,
}

/// Work that was judged done, when a gate could not be asked or when its session ended on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StalledWork {
    /// The gate where the work continues.
    pub gate: DeliveryGate,
    /// The last commit of the work.
    pub head: String,
    /// The configuration of the hooks that judged it.
    pub config: ConfigDigest,
    /// The agent that did the work.
    pub agent: String,
    /// The claim that called it done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<CompletionClaim>,
    /// The program that was to judge it could not be started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
    /// A hook has judged it before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// The stop hooks have to judge it again before it is submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
    /// The reason why it passed although a stop hook did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
}

/// A gate between done and accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryGate {
    BeforeSubmit,
    BeforeMerge,
}

impl DeliveryGate {
    pub const fn hook_point(self) -> HookPoint {
        match self {
            Self::BeforeSubmit => HookPoint::BeforeSubmit,
            Self::BeforeMerge => HookPoint::BeforeMerge,
        }
    }

    /// Returns the gate that a hook belongs to.
    pub fn of_hook_effect(hook: &HookEffect) -> Option<Self> {
        [Self::BeforeSubmit, Self::BeforeMerge].into_iter().find(|gate| gate.hook_point() == hook.point)
    }
}

/// The hook that did not let the work pass, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateFailure {
    pub hook: String,
    pub why: GateFailureKind,
    /// A short reason for people.
    pub reason: String,
    /// Feedback for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The program that was to judge the work could not be started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
}

/// The end of a hook at a gate.
#[derive(Debug, Clone, Copy)]
pub struct GateHookEnd<'a> {
    pub outcome: HookOutcome,
    pub message: Option<&'a str>,
    pub feedback: Option<&'a str>,
    /// The program that was to judge the work could not be started.
    pub unstarted: bool,
}

/// The kind of failure at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateFailureKind {
    /// The work is not good enough.
    Blocked,
    /// The work conflicts with the base.
    Conflicts,
    /// The hook itself failed: the agent cannot repair that.
    Failed,
    /// A person has to decide.
    Escalated,
    /// A person has sent a message since the work was called done.
    Said,
    /// The work is at another commit than the judged one: it was rebased, or its branch was moved.
    Moved,
}

impl GateFailure {
    /// Returns the failure that a hook's end causes, if any. A hook that was not started or was cancelled has judged
    /// nothing. The same holds for a timeout at `before_merge`; before submission the agent's work may be the cause of
    /// the timeout.
    pub fn from_hook_end(hook: &HookEffect, end: &GateHookEnd<'_>) -> Option<Self> {
        let GateHookEnd { outcome, message, feedback, unstarted } = *end;
        let late =
            outcome == HookOutcome::TimedOut && DeliveryGate::of_hook_effect(hook) == Some(DeliveryGate::BeforeMerge);
        let unstarted = unstarted && outcome != HookOutcome::Block;
        let mute = unstarted || late;
        let why = match (GateVerdict::from_hook_outcome(outcome, hook.on_failure), hook.on_failure) {
            (GateVerdict::Pass, _) | (GateVerdict::Fail, HookFailurePolicy::Ignore) => return None,
            _ if outcome == HookOutcome::Cancelled => GateFailureKind::Failed,
            (GateVerdict::Continue, _)
                if outcome == HookOutcome::Continue
                    && DeliveryGate::of_hook_effect(hook) == Some(DeliveryGate::BeforeSubmit) =>
            {
                GateFailureKind::Blocked
            }
            (GateVerdict::Continue, _) => GateFailureKind::Moved,
            (GateVerdict::Escalate, _) => GateFailureKind::Escalated,
            (GateVerdict::Block, _) if mute => GateFailureKind::Failed,
            (GateVerdict::Block, _) if outcome == HookOutcome::Block && hook.class == HookClass::Vcs => {
                GateFailureKind::Conflicts
            }
            (GateVerdict::Block, _) if outcome == HookOutcome::Block || feedback.is_some() => GateFailureKind::Blocked,
            (GateVerdict::Block | GateVerdict::Fail, _) => GateFailureKind::Failed,
        };
        let reason = message.map(extract_summary_line).filter(|reason| !reason.is_empty());
        let reason = reason
            .unwrap_or_else(|| feedback.map(extract_summary_line).unwrap_or_else(|| "it does not pass".to_owned()));
        let feedback = feedback.map(str::to_owned);
        Some(Self { hook: hook.hook.clone(), why, reason, feedback, unstarted })
    }

    /// Returns the message to a person when the work is already merged.
    pub(crate) fn describe_merge_objection(&self) -> String {
        let Self { hook, why, reason, .. } = self;
        match why {
            GateFailureKind::Escalated => format!("`{hook}` asks for a person after the merge: {reason}"),
            GateFailureKind::Failed => format!("`{hook}` failed after the merge: {reason}"),
            _ => format!("`{hook}` does not pass after the merge: {reason}"),
        }
    }
}

/// The consequence of a failure at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateRemedy {
    /// The agent gets the feedback and goes on, in the same conversation.
    Remediate,
    /// The task stays as it is; the next run continues it.
    GiveUp,
    /// The task is open for any agent again.
    Reject,
    /// A person has to decide.
    Escalate,
    /// The gate starts again, with the work as it is now.
    Again,
    /// The agent gets a person's message first, and goes on.
    Hear,
}
