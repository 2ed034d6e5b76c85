//! The verdict of stop hooks on a turn, and the decision that follows.

use serde::{Deserialize, Serialize};

use crate::effects::hook_outcome::{HookFailurePolicy, HookOutcome};
use crate::session::ending::{SessionEnd, SessionEndKind};

/// The combined verdict of a turn's stop hooks. Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    #[default]
    Pass,
    /// A hook failed by itself: the work has not passed.
    Fail,
    /// A hook says that the work is not done.
    Continue,
    Block,
    Escalate,
}

impl GateVerdict {
    /// Returns the verdict of one stop hook. A hook that could not start has judged nothing, and the agent cannot
    /// repair it: a person is needed, regardless of `strict` and `on_failure`.
    pub fn from_stop_hook(outcome: HookOutcome, on_failure: HookFailurePolicy, unstarted: bool) -> Self {
        if unstarted { Self::Escalate } else { Self::from_hook_outcome(outcome, on_failure) }
    }

    pub fn from_hook_outcome(outcome: HookOutcome, on_failure: HookFailurePolicy) -> Self {
        match outcome {
            HookOutcome::Success | HookOutcome::Skip => Self::Pass,
            HookOutcome::Continue | HookOutcome::Again => Self::Continue,
            HookOutcome::Block => Self::Block,
            HookOutcome::Escalate => Self::Escalate,
            HookOutcome::Failure | HookOutcome::TimedOut | HookOutcome::Cancelled | HookOutcome::Interrupted => {
                match on_failure {
                    HookFailurePolicy::Ignore => Self::Fail,
                    HookFailurePolicy::Block => Self::Block,
                    HookFailurePolicy::Escalate => Self::Escalate,
                }
            }
        }
    }
}

/// A stop hook that keeps the agent from ending, also one at its limit of send-backs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockingHook {
    pub hook: String,
    /// The limit of send-backs of this hook within an iteration. Without it, `max_hook_retries` applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// A short reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A person's answer to a blocking gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateAnswer {
    /// Sends the agent back, and resets the count.
    Continue,
    /// Ends the session and leaves it to a person.
    Abort,
    /// Counts the blocking hooks as passed, this time.
    Ignore,
}

/// The decision that follows a verdict of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateDecision {
    SendBack,
    /// Asks a person.
    Ask,
    Next(AfterIteration),
}

impl GateDecision {
    /// Returns whether a person has to decide next.
    pub(crate) fn asks_for_person(&self) -> bool {
        match self {
            Self::Ask => true,
            Self::Next(AfterIteration::Close(closing)) => closing.ending == SessionEndKind::Escalated,
            Self::Next(_) | Self::SendBack => false,
        }
    }
}

/// The step after an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterIteration {
    /// Starts another iteration.
    Continue,
    /// Starts another iteration that continues an interrupted one, with its count of send-backs.
    TakeUp,
    /// Leaves the task for the next run.
    GiveUp(String),
    Close(SessionEnd),
}
