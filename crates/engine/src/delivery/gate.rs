//! The gates between done and accepted: the combined result of their hooks, and the consequence of a failure.

use serde::{Deserialize, Serialize};

use crate::command::limits::gist;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookOutcome, OnFailure};
use crate::effects::hook_point::HookPoint;
use crate::log::id::ConfigDigest;
use crate::session::Verdict;
use crate::task::Claim;

/// A finding that the next agent on a task has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    pub source: String,
    pub text: String,
}

/// Work that was judged done, when a gate could not be asked or when its session ended on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stalled {
    /// The gate where the work continues.
    pub gate: Gate,
    /// The last commit of the work.
    pub head: String,
    /// The configuration of the hooks that judged it.
    pub config: ConfigDigest,
    /// The agent that did the work.
    pub agent: String,
    /// The claim that called it done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
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

    /// Returns the gate that a hook belongs to.
    pub fn of(hook: &HookEffect) -> Option<Self> {
        [Self::BeforeSubmit, Self::BeforeMerge].into_iter().find(|gate| gate.point() == hook.point)
    }
}

/// The hook that did not let the work pass, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Broken {
    pub hook: String,
    pub why: Why,
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
pub struct HookEnd<'a> {
    pub outcome: HookOutcome,
    pub message: Option<&'a str>,
    pub feedback: Option<&'a str>,
    /// The program that was to judge the work could not be started.
    pub unstarted: bool,
}

/// The kind of failure at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The work is not good enough.
    Blocked,
    /// The work conflicts with the base.
    Conflicts,
    /// The hook itself failed: the agent cannot mend that.
    Failed,
    /// A person has to decide.
    Escalated,
    /// A person has sent a message since the work was called done.
    Said,
    /// The work is at another commit than the judged one: it was rebased, or its branch was moved.
    Moved,
}

impl Broken {
    /// Returns the failure that a hook's end causes, if any. A hook that was not started or was cancelled has judged
    /// nothing. The same holds for a timeout at `before_merge`; before submission the agent's work may be the cause of
    /// the timeout.
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

    /// Returns the message to a person when the work is already merged.
    pub(crate) fn objection_after_merge(&self) -> String {
        let Self { hook, why, reason, .. } = self;
        match why {
            Why::Escalated => format!("`{hook}` asks for a person after the merge: {reason}"),
            Why::Failed => format!("`{hook}` failed after the merge: {reason}"),
            _ => format!("`{hook}` does not pass after the merge: {reason}"),
        }
    }
}

/// The consequence of a failure at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
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
