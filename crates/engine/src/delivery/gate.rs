//! The gates between done and accepted: what their hooks add up to, and what follows where one does not pass.

use serde::{Deserialize, Serialize};

use crate::command::limits::gist;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookOutcome, OnFailure};
use crate::effects::hook_point::HookPoint;
use crate::log::id::ConfigDigest;
use crate::session::Verdict;
use crate::task::Claim;

/// What whoever works on a task next has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    pub source: String,
    pub text: String,
}

/// Work that was judged done, where a gate could then not be asked about it, or where its session was ended on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stalled {
    /// Where its way goes on.
    pub gate: Gate,
    /// The last commit of it.
    pub head: String,
    /// The configuration that its hooks were from.
    pub config: ConfigDigest,
    /// Whoever did the work.
    pub agent: String,
    /// What was said about it when it was called done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Whoever was to judge it could not be started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
    /// A hook had judged it before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// The stop hooks have to judge it again before it is submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
    /// Why it was let pass although a stop hook did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
}

/// A gate between done and accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    BeforeSubmit,
    BeforeMerge,
}

impl Gate {
    pub const fn point(self) -> HookPoint {
        match self {
            Self::BeforeSubmit => HookPoint::BeforeSubmit,
            Self::BeforeMerge => HookPoint::BeforeMerge,
        }
    }

    /// The gate that a hook stands at.
    pub fn of(hook: &HookEffect) -> Option<Self> {
        [Self::BeforeSubmit, Self::BeforeMerge].into_iter().find(|gate| gate.point() == hook.point)
    }
}

/// The hook that did not let the work pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Broken {
    pub hook: String,
    pub why: Why,
    /// In a few words.
    pub reason: String,
    /// For the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Whoever was to judge it could not be started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
}

/// How a hook at a gate ended.
#[derive(Debug, Clone, Copy)]
pub struct HookEnd<'a> {
    pub outcome: HookOutcome,
    pub message: Option<&'a str>,
    pub feedback: Option<&'a str>,
    /// The program that was to judge the work could not be started.
    pub unstarted: bool,
}

/// In which way a hook did not let the work pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The work is not good enough.
    Blocked,
    /// It does not go together with the base.
    Conflicts,
    /// The hook could not do what it is for: that is not for the agent to mend.
    Failed,
    /// A person has to look.
    Escalated,
    /// A person has said something since the work was called done.
    Said,
    /// The work is at another commit than the one that is judged: on the newest base, or because its branch was moved.
    Moved,
}

impl Broken {
    /// What the end of a hook breaks, if it does. A hook that was not started or was cancelled has judged nothing, and at
    /// `before_merge` neither has one that ran out of time: before submission the work of the agent may be what hangs.
    pub fn by(hook: &HookEffect, end: &HookEnd<'_>) -> Option<Self> {
        let HookEnd { outcome, message, feedback, unstarted } = *end;
        let late = outcome == HookOutcome::TimedOut && Gate::of(hook) == Some(Gate::BeforeMerge);
        let unstarted = unstarted && outcome != HookOutcome::Block;
        let mute = unstarted || late;
        let why = match (Verdict::of(outcome, hook.on_failure), hook.on_failure) {
            (Verdict::Pass, _) | (Verdict::Fail, OnFailure::Ignore) => return None,
            _ if outcome == HookOutcome::Cancelled => Why::Failed,
            (Verdict::Continue, _)
                if outcome == HookOutcome::Continue && Gate::of(hook) == Some(Gate::BeforeSubmit) =>
            {
                Why::Blocked
            }
            (Verdict::Continue, _) => Why::Moved,
            (Verdict::Escalate, _) => Why::Escalated,
            (Verdict::Block, _) if mute => Why::Failed,
            (Verdict::Block, _) if outcome == HookOutcome::Block && hook.class == HookClass::Vcs => Why::Conflicts,
            (Verdict::Block, _) if outcome == HookOutcome::Block || feedback.is_some() => Why::Blocked,
            (Verdict::Block | Verdict::Fail, _) => Why::Failed,
        };
        let reason = message.map(gist).filter(|reason| !reason.is_empty());
        let reason = reason.unwrap_or_else(|| feedback.map(gist).unwrap_or_else(|| "it does not pass".to_owned()));
        let feedback = feedback.map(str::to_owned);
        Some(Self { hook: hook.hook.clone(), why, reason, feedback, unstarted })
    }

    /// Returns what a person is told where the work is merged already.
    pub(crate) fn objection_after_merge(&self) -> String {
        let Self { hook, why, reason, .. } = self;
        match why {
            Why::Escalated => format!("`{hook}` asks for a person after the merge: {reason}"),
            Why::Failed => format!("`{hook}` failed after the merge: {reason}"),
            _ => format!("`{hook}` does not pass after the merge: {reason}"),
        }
    }
}

/// What follows where a gate is not passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// The agent hears of it and goes on, in the same conversation.
    Remediate,
    /// The task is left as it is; the next run takes it up.
    GiveUp,
    /// The task is for anybody to take up again.
    Reject,
    /// A person has to look.
    Escalate,
    /// All of it once more, as the work is now.
    Again,
    /// The agent hears a person first, and goes on.
    Hear,
}
