//! What a hook is, how one run of it ended, and what its failure counts as.

use serde::{Deserialize, Serialize};

use crate::log::value_names::value_names;

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
    /// Only an agent's hook system waits for it.
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
    /// The base has moved: what was judged is to be judged once more, on top of it. That is no failure.
    Again,
    /// A person is needed.
    Escalate,
    TimedOut,
    /// A person or a signal asked for the end while it ran.
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
