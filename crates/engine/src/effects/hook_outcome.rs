//! The class of a hook, the outcome of its run, and its policy for failures.

use serde::{Deserialize, Serialize};

use crate::log::value_names::value_names;

/// The kind of effect that a hook has. It decides whether the hook may run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookClass {
    /// A gate or a validation rule: it only judges.
    Gate,
    /// A git or forge operation: it can check whether it has already happened.
    Vcs,
    /// A request with an idempotency key.
    Webhook,
    /// Several steps, each of which records its end.
    Workflow,
    /// Its configuration says that it may run again.
    Idempotent,
    /// Only an agent's hook system waits for it.
    Bridge,
    Other,
}

/// The meaning of a crash, a timeout or an invalid answer of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFailurePolicy {
    Ignore,
    Block,
    Escalate,
}

/// The outcome of one run of a hook.
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
    /// The base has moved: the work has to be judged once more, on top of it. That is no failure.
    Again,
    /// A person is needed.
    Escalate,
    TimedOut,
    /// A person or a signal cancelled it while it ran.
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
