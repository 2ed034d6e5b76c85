//! What stop hooks say of a turn, and what follows from it.

use serde::{Deserialize, Serialize};

use crate::effects::hook_outcome::{HookOutcome, OnFailure};
use crate::session::closing::{Closing, Ending};

/// What the stop hooks of a turn add up to. Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    #[default]
    Pass,
    /// A hook failed by itself: what is not known to have passed has not passed.
    Fail,
    /// A hook says that the work is not done.
    Continue,
    Block,
    Escalate,
}

impl Verdict {
    /// What the end of a stop hook adds. A hook that could not run has judged nothing, and the agent cannot answer for it: a
    /// person is needed, whatever `strict` and `on_failure` say.
    pub fn of_stop_hook(outcome: HookOutcome, on_failure: OnFailure, unstarted: bool) -> Self {
        if unstarted { Self::Escalate } else { Self::of(outcome, on_failure) }
    }

    pub fn of(outcome: HookOutcome, on_failure: OnFailure) -> Self {
        match outcome {
            HookOutcome::Success | HookOutcome::Skip => Self::Pass,
            HookOutcome::Continue | HookOutcome::Again => Self::Continue,
            HookOutcome::Block => Self::Block,
            HookOutcome::Escalate => Self::Escalate,
            HookOutcome::Failure | HookOutcome::TimedOut | HookOutcome::Cancelled | HookOutcome::Interrupted => {
                match on_failure {
                    OnFailure::Ignore => Self::Fail,
                    OnFailure::Block => Self::Block,
                    OnFailure::Escalate => Self::Escalate,
                }
            }
        }
    }
}

/// A stop hook that sends the agent back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blocker {
    pub hook: String,
    /// How often it may do so within an iteration; without it, as often as `max_hook_retries` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// Why, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a person can say where stop hooks do not let the agent go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateAnswer {
    /// The agent is sent back, and the count starts again.
    Continue,
    /// The session ends, and is left to a person.
    Abort,
    /// The hooks that block count as passed, this time.
    Ignore,
}

/// What a gate's verdict leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    SendBack,
    /// A person has to say what follows.
    Ask,
    Next(Next),
}

impl Decision {
    /// Whether a person says next what is let pass: all that did not pass, with what was let pass before.
    pub(crate) fn asks_for_person(&self) -> bool {
        match self {
            Self::Ask => true,
            Self::Next(Next::Close(closing)) => closing.ending == Ending::Escalated,
            Self::Next(_) | Self::SendBack => false,
        }
    }
}

/// What follows an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Another iteration.
    Continue,
    /// Another iteration, which takes up an interrupted one: how often the agent was sent back still counts.
    TakeUp,
    /// Nothing more for this task: the next run takes it up.
    GiveUp(String),
    Close(Closing),
}
