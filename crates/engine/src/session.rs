//! A session: one run of the loop, as a row, and the list of decisions that moves it.
//!
//! ```text
//! started ─► preparing ─► turn ─► judging ─► decided ─► settled ─► closing ─► ended
//!               ▲          ▲  │ interrupted │ send back     │   ▲ delivery
//!               │          └──┼─────────────┘               │
//!               │   failed ◄──┤ recovering: told at once    │
//!               └─────────────┴─────────────────────────────┘ next iteration
//! ```
//!
//! A session rests only where something outside has to happen: a hook is owed, or the agent has the word, or it is over.
//! Everything in between is decided in the commit that ended what was waited for: [`Session::step`] says what comes next.

mod work;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::debt::{HookOutcome, OnFailure, is_zero};
use crate::id::{ConfigDigest, DebtId, OwnerName, RunId, Seq, SessionName, TaskId};
use crate::limits::Limits;
use crate::promise::Promise;
pub use work::{Hold, Leave, Work};

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Completed,
    /// Iterations, time, cost or another budget ran out.
    Limit,
    Escalated,
    Cancelled,
    Error,
}

/// How a session is to end, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Closing {
    pub ending: Ending,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Closing {
    fn because(ending: Ending, reason: impl Into<String>) -> Self {
        Self { ending, reason: Some(reason.into()) }
    }
}

/// What makes the work complete, once the gates agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The agent says that it is done.
    #[default]
    Promise,
    /// The end of a turn.
    Gate,
}

/// What happens when stop hooks have sent the agent back as often as they may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRetryLimit {
    #[default]
    Escalate,
    Complete,
}

/// What holds for a whole session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Terms {
    pub max_iterations: u32,
    /// How often stop hooks may send the agent back within an iteration.
    pub max_hook_retries: u32,
    /// Failed iterations in a row.
    pub max_failures: u32,
    pub completion: Completion,
    /// Whether a stop hook that fails by itself keeps the work from being complete.
    pub strict: bool,
    pub on_retry_limit: OnRetryLimit,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            max_iterations: 25,
            max_hook_retries: 5,
            max_failures: 3,
            completion: Completion::default(),
            strict: true,
            on_retry_limit: OnRetryLimit::default(),
        }
    }
}

/// Feedback that is owed to the agent: the event that queued it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Piece {
    pub at: Seq,
    /// It was in a turn that did not finish.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub possibly_seen: bool,
    /// A person said it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
}

/// Why the agent is given the word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To do the work.
    Work,
    /// Stop hooks sent it back into the same conversation.
    SendBack,
    /// The iteration failed, and hooks have something to say about it.
    Recovery,
    /// To hear what is still pending, before the session ends so.
    Delivery(Closing),
}

impl Purpose {
    pub fn is_delivery(&self) -> bool {
        matches!(self, Self::Delivery(_))
    }

    /// Whether its end is judged. Otherwise the agent is only told something.
    pub fn is_judged(&self) -> bool {
        matches!(self, Self::Work | Self::SendBack)
    }
}

/// A stop hook that sends the agent back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blocker {
    pub hook: String,
    /// How often it may do so within an iteration, if less than the session allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

/// How the agent came to a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// It is the session's first.
    New,
    /// The one before was taken up again: the agent knows what was said in it.
    Loaded,
    /// The one before could not be taken up: the agent knows nothing of it.
    Anew,
}

/// The agent has the word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub run: RunId,
    pub debt: DebtId,
    pub purpose: Purpose,
    pub feedback: Vec<Piece>,
    /// The agent has said by a command, while it runs, that the session's task is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
}

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
    pub fn of(outcome: HookOutcome, on_failure: OnFailure) -> Self {
        match outcome {
            HookOutcome::Success | HookOutcome::Skip => Self::Pass,
            HookOutcome::Continue => Self::Continue,
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

/// What a gate's verdict leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    SendBack,
    Next(Next),
}

/// What follows an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Another iteration.
    Continue,
    /// Another iteration, which takes up an interrupted one: how often the agent was sent back still counts.
    TakeUp,
    Close(Closing),
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Started,
    /// An iteration has begun.
    Preparing(RunId),
    Turn(Turn),
    /// A turn has ended, with what the agent claims.
    Judging(RunId, Option<Promise>),
    Decided(RunId, Decision),
    /// An iteration has failed.
    Failed(RunId),
    /// It has failed, and hooks have something to say about it.
    Recovering(RunId),
    /// Between iterations.
    Settled(Next),
    /// Everything that could be said to the agent was said.
    Closing(Closing),
    Ended(Ending),
}

/// One run of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub name: SessionName,
    pub config: ConfigDigest,
    /// What the protected files held when it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<ConfigDigest>,
    /// What it works on now, or did last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Hold::is_never")]
    pub hold: Hold,
    #[serde(default, skip_serializing_if = "Work::is_given")]
    pub work: Work,
    /// The agent's last words, until it is known that it does not ask for a person with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plea: Option<String>,
    /// The tasks that it has left to a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalated: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// As it was given: `command:…`.
    pub agent: String,
    pub terms: Terms,
    /// Tells the runs of this session from those of others with its name.
    pub nonce: u64,
    /// How many calls of `windlass` it lies within: a hook may have started it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nesting: u8,
    /// Whoever runs the loop.
    pub owner: OwnerName,
    pub phase: Phase,
    /// Hooks that the loop waits for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<DebtId>,
    /// The number of the last iteration that was started.
    pub iteration: u32,
    /// Iterations that were interrupted: they do not count.
    #[serde(default)]
    pub interrupted: u32,
    /// Those of them since a turn was last finished.
    #[serde(default)]
    pub interrupted_in_a_row: u32,
    /// Iterations that failed, one after another.
    #[serde(default)]
    pub failures: u32,
    /// How often stop hooks have sent the agent back in this iteration.
    #[serde(default)]
    pub retries: u32,
    /// How often each of them has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent_back: BTreeMap<String, u32>,
    #[serde(default)]
    pub verdict: Verdict,
    /// Which stop hook asks for a person, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<String>,
    /// The stop hooks that block this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<Blocker>,
    /// Stop hooks that a person wants not to be counted at the next gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignores: Vec<String>,
    /// Feedback that no turn carries yet, first in first out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Piece>,
    /// The event that holds what the agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<Seq>,
    /// The agent's own name for the conversation that it works in, where it keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Somebody has asked for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Closing>,
    /// The last event that changed this row.
    pub version: Seq,
}

/// What is decided next about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing, before this is done.
    Wait(Wanted),
    SkipHook(DebtId),
    /// The next task of the graph, or the one that it had.
    TakeTask,
    LeaveTask(Leave),
    StartIteration,
    StartTurn(RunId, Purpose),
    DecideGate(RunId, Decision),
    CompleteIteration(RunId),
    /// An iteration that is open when the session is stopped.
    InterruptIteration(RunId),
    End(Closing),
}

/// Work outside the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Hook(DebtId),
    Turn(DebtId),
    /// It is over.
    Nothing,
}

impl Session {
    /// Whether nothing is left to be done.
    pub fn is_over(&self) -> bool {
        self.ended().is_some() && self.owed.is_empty()
    }

    pub fn ended(&self) -> Option<Ending> {
        match self.phase {
            Phase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// The turn that runs now.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    pub fn run(&self, iteration: u32) -> RunId {
        RunId { session: self.name.clone(), iteration, nonce: self.nonce }
    }

    /// What has to be done outside before anything else can be decided.
    pub fn wanted(&self) -> Wanted {
        match self.step() {
            Step::Wait(wanted) => wanted,
            // It has begun, or it would have been skipped.
            Step::SkipHook(debt) => Wanted::Hook(debt),
            // What can be decided always is, in the commit that made it possible.
            _ => Wanted::Nothing,
        }
    }

    /// The list of decisions.
    pub fn step(&self) -> Step {
        if let Some(hook) = self.owed.first() {
            let skipped = self.stopping.is_some() && self.ended().is_none();
            return if skipped { Step::SkipHook(*hook) } else { Step::Wait(Wanted::Hook(*hook)) };
        }
        match (&self.phase, &self.stopping) {
            (Phase::Turn(turn), _) => Step::Wait(Wanted::Turn(turn.debt)),
            (Phase::Ended(_), _) => Step::Wait(Wanted::Nothing),
            (Phase::Closing(closing), _) => Step::End(closing.clone()),
            (Phase::Preparing(run) | Phase::Judging(run, _) | Phase::Decided(run, _), Some(_)) => {
                Step::InterruptIteration(run.clone())
            }
            // What was decided before somebody asked for the end stays decided.
            (Phase::Settled(Next::Close(closing)), _) => self.close_decided(closing),
            (Phase::Started | Phase::Settled(_) | Phase::Failed(_) | Phase::Recovering(_), Some(closing)) => {
                self.close(closing)
            }
            (Phase::Started, None) => self.iterate(),
            (Phase::Preparing(run), None) => Step::StartTurn(run.clone(), Purpose::Work),
            (Phase::Judging(run, claim), None) => Step::DecideGate(run.clone(), self.judge(*claim)),
            (Phase::Decided(run, Decision::SendBack), None) => Step::StartTurn(run.clone(), Purpose::SendBack),
            (Phase::Decided(run, Decision::Next(_)), None) => Step::CompleteIteration(run.clone()),
            (Phase::Recovering(run), None) if !self.failed_too_often() => {
                Step::StartTurn(run.clone(), Purpose::Recovery)
            }
            (Phase::Settled(Next::Continue | Next::TakeUp) | Phase::Failed(_) | Phase::Recovering(_), None) => {
                self.go_on()
            }
        }
    }

    /// What a turn leads to, by what the agent claims and what the stop hooks say.
    fn judge(&self, claim: Option<Promise>) -> Decision {
        let close = |closing| Decision::Next(Next::Close(closing));
        let complete = || close(Closing { ending: Ending::Completed, reason: None });
        // Whatever the agent claims, it has not heard what a person has said meanwhile.
        let unheard = self.pending.iter().any(|piece| piece.person);
        let claim = claim.filter(|_| !unheard);
        match claim {
            Some(Promise::Blocked) => {
                return close(Closing::because(Ending::Escalated, "the agent says it is blocked"));
            }
            Some(Promise::Escalate) => {
                return close(Closing::because(Ending::Escalated, "the agent asks for a person"));
            }
            Some(Promise::Complete) | None => {}
        }
        let done = claim == Some(Promise::Complete) || self.terms.completion == Completion::Gate;
        match self.verdict {
            Verdict::Block if self.may_send_back() => Decision::SendBack,
            Verdict::Pass | Verdict::Fail | Verdict::Block if unheard => Decision::Next(Next::Continue),
            Verdict::Block => match self.terms.on_retry_limit {
                OnRetryLimit::Complete => complete(),
                OnRetryLimit::Escalate => close(Closing::because(Ending::Escalated, self.still_blocked())),
            },
            Verdict::Escalate => {
                let asks = || "a stop hook asks for a person".to_owned();
                close(Closing::because(Ending::Escalated, self.asking.clone().unwrap_or_else(asks)))
            }
            Verdict::Continue => Decision::Next(Next::Continue),
            Verdict::Fail if self.terms.strict => Decision::Next(Next::Continue),
            Verdict::Pass | Verdict::Fail if done => complete(),
            Verdict::Pass | Verdict::Fail => Decision::Next(Next::Continue),
        }
    }

    /// Which hooks do not let the agent go, in words.
    fn still_blocked(&self) -> String {
        let names: Vec<String> = self.blocking.iter().map(|blocker| format!("`{}`", blocker.hook)).collect();
        let (who, verb) = match names.as_slice() {
            [] => ("stop hooks".to_owned(), "block"),
            [one] => (one.clone(), "blocks"),
            several => (several.join(" and "), "block"),
        };
        match self.retries {
            0 => format!("{who} {verb}, and may not send the agent back"),
            1 => format!("{who} still {verb} after sending the agent back once"),
            times => format!("{who} still {verb} after sending the agent back {times} times"),
        }
    }

    /// Whether the session, and every hook that blocks, allows for another time.
    fn may_send_back(&self) -> bool {
        let sent = |blocker: &Blocker| self.sent_back.get(&blocker.hook).copied().unwrap_or(0);
        self.retries < self.terms.max_hook_retries
            && self.blocking.iter().all(|blocker| blocker.most.is_none_or(|most| sent(blocker) < most))
    }

    fn failed_too_often(&self) -> bool {
        self.failures >= self.terms.max_failures.max(1)
    }

    fn go_on(&self) -> Step {
        self.exhausted().map_or_else(|| self.iterate(), |closing| self.close(&closing))
    }

    /// Why there may be no further iteration.
    pub(crate) fn exhausted(&self) -> Option<Closing> {
        let max_iterations = self.terms.max_iterations;
        if self.failed_too_often() {
            let failures = self.failures;
            return Some(Closing::because(Ending::Error, format!("{failures} iterations failed in a row")));
        }
        if self.interrupted_in_a_row >= Limits::INTERRUPTIONS {
            let reason = format!("{} iterations were interrupted in a row", self.interrupted_in_a_row);
            return Some(Closing::because(Ending::Error, reason));
        }
        if self.iteration - self.interrupted < max_iterations {
            return None;
        }
        let reason = match (max_iterations, self.interrupted) {
            (1, 0) => "one iteration is the limit".to_owned(),
            (most, 0) => format!("{most} iterations are the limit"),
            (most, more) => format!("{most} is the limit, {more} interrupted not counted"),
        };
        Some(Closing::because(Ending::Limit, reason))
    }

    /// Ends it, after its task was left and the agent has heard what is still pending. An agent that cannot work cannot
    /// listen either.
    pub(crate) fn close(&self, closing: &Closing) -> Step {
        if let Some(leave) = self.leaving(closing) {
            return Step::LeaveTask(leave);
        }
        if self.pending.is_empty() || closing.ending == Ending::Error {
            return Step::End(closing.clone());
        }
        Step::StartTurn(self.run(self.iteration), Purpose::Delivery(closing.clone()))
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
