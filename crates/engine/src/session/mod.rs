//! A session: one run of the loop, as a row, and the list of decisions that moves it.
//!
//! ```text
//! started ─► preparing ─► turn ─► judging ─► decided ─► settled ─► pipeline ─► ended
//!               ▲          ▲  │ interrupted │ ▲ send back   │ │
//!               │          ├──┼─────────────┘ asking        │ │
//!               │          └──┼─────────────────────────────┼─┘ delivery
//!               │   failed ◄──┤ recovering: told at once    │
//!               │postponed ◄──┤ asked too often, or told    │
//!               └─────────────┴─────────────────────────────┘ next iteration
//! ```
//!
//! A session rests only where something outside has to happen: a hook is owed, the agent has the word, a person is asked,
//! time has to pass, or it is over.
//! Everything in between is decided in the commit that ended what was waited for: [`Session::step`] says what comes next.
//!
//! Not here: what keeps it from going on for ever (`guards`).

mod agent_turn;
mod assignment;
pub(crate) mod closing;
pub(crate) mod fault;
pub(crate) mod feedback;
mod guards;
pub(crate) mod own_words;
mod phase;
pub(crate) mod promise;
pub(crate) mod prompt;
mod terms;
pub(crate) mod usage;
pub(crate) mod verdict;
pub(crate) mod voice;
pub(crate) mod watch;
mod work;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::promise::Promise;
use self::watch::Watch;
use crate::delivery::{Grounds, Pipeline, Workspace};
use crate::effects::hook_batch::is_zero;
use crate::log::id::{ConfigDigest, EffectId, OwnerName, RunId, Seq, SessionName, TaskId};
use crate::log::time::Timestamp;
pub use agent_turn::{Opening, Purpose, Turn};
pub(crate) use assignment::is_left_to_others;
pub use closing::{Closing, Ending};
pub use feedback::Piece;
pub use terms::{Completion, OnRetryLimit, Terms};
pub use verdict::{Blocker, Decision, GateAnswer, Next, Verdict};
pub use work::{Hold, Leave, Lost, Work};

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
    /// Stop hooks do not let the agent go, and a person is asked about it; with the answer, once it is there.
    Asking(RunId, Option<Promise>, Option<GateAnswer>),
    /// The agent was asked too often, or was told about its failure. It is left alone until then.
    Postponed(Timestamp),
    /// An iteration has failed. The agent is left alone until `Watch::retry_at`.
    Failed(RunId),
    /// It has failed, and hooks have something to say about it.
    Recovering(RunId),
    /// Between iterations.
    Settled(Next),
    /// The work is done, and on its way through the gates.
    Pipeline(Box<Pipeline>),
    /// A session of an older version has delivered its feedback.
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
    /// Whether it has itself completed the task that it held last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    #[serde(default, skip_serializing_if = "Work::is_given")]
    pub work: Work,
    #[serde(default, skip_serializing_if = "Grounds::is_in_place")]
    pub grounds: Grounds,
    /// Where its task is worked on, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// Its task ends with a report, and without a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub report: bool,
    /// When the stop gate last let the work pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Seq>,
    /// The work on its task was judged done before, and goes on at the gate that could not be asked then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
    /// How often the agent was sent to mend what it had called done.
    #[serde(default)]
    pub remediations: u32,
    /// How often its work was judged again because the base had moved.
    #[serde(default)]
    pub rechecks: u32,
    /// The stop hooks have to judge the work again before it is submitted: they judged it on another base, or were others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
    /// The tasks that it has left for a later run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<TaskId>,
    /// The tasks that were taken from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Lost>,
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
    /// It goes on with no conversation of a session before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// How many calls of `windlass` it lies within: a hook may have started it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nesting: u8,
    /// Whoever runs the loop.
    pub owner: OwnerName,
    pub phase: Phase,
    /// Hooks that the loop waits for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<EffectId>,
    /// The number of the last iteration that was started.
    pub iteration: u32,
    /// The number of the last one on the tasks before the present one.
    #[serde(default)]
    pub iterations_before: u32,
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
    /// A stop hook could not run: nothing can be judged until a person has mended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken_gate: bool,
    /// The stop hooks that block this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<Blocker>,
    /// Stop hooks that a person wants not to be counted, until the work is next judged as done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignores: Vec<String>,
    /// Those of them that would have kept the agent after this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlooked: Vec<String>,
    /// How tasks of the graph were completed although a hook did not pass, in words: the end of the session says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<String>,
    /// Whether a check has let the work of the last turn pass, or its end says why none has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// How many tasks it has completed whose work nothing checked.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub unchecked: u32,
    /// Feedback that no turn carries yet, first in first out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Piece>,
    /// The event that holds what the agent said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<Seq>,
    /// The present iteration has had its delivery turn, or the one that it takes up has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// Feedback that no turn has carried stays with the task that the session leaves. Sessions of older versions take it along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_feedback: bool,
    /// The agent's own name for the conversation that it works in, where it keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Somebody has asked for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Closing>,
    /// What the guards remember.
    #[serde(default)]
    pub watch: Watch,
    /// The last event that changed this row.
    pub version: Seq,
}

fn is_none_of_them(count: &u32) -> bool {
    *count == 0
}

/// What is decided next about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing, before this is done.
    Wait(Wanted),
    SkipHook(EffectId),
    /// The next task of the graph, or the one that it had.
    TakeTask,
    LeaveTask(Leave),
    /// Has work judged that was done in place.
    Submit(Closing),
    PassSubmission,
    StartMerge,
    FailGate,
    /// Has the agent hear a person before the work is accepted.
    HearFirst,
    /// So it ends if its task, which it has no more, is completed all the same, and nobody else has worked on it; else as
    /// one whose task was taken away.
    EndWithout(Closing),
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
    Hook(EffectId),
    Turn(EffectId),
    /// A worktree for its task.
    Workspace,
    /// What there is to be submitted.
    Work,
    /// A person's answer.
    Answer,
    /// That it is as late as that.
    Moment(Timestamp),
    /// That what somebody else has made possible is decided by whoever runs it.
    Decision,
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
            Step::SkipHook(effect) => Wanted::Hook(effect),
            // Mostly what can be decided is, in the commit that made it possible. A person's word only makes it so.
            _ => Wanted::Decision,
        }
    }

    /// What comes next, as far as no time has to pass for it.
    pub fn step(&self) -> Step {
        self.step_at(None)
    }

    /// The list of decisions, as things stand at a moment.
    pub(crate) fn step_at(&self, now: Option<Timestamp>) -> Step {
        if let Some(hook) = self.owed.first() {
            let skipped =
                self.stopping.is_some() && self.ended().is_none() || self.needs_no(*hook) || self.need_not_begin(*hook);
            return if skipped { Step::SkipHook(*hook) } else { Step::Wait(Wanted::Hook(*hook)) };
        }
        match (&self.phase, &self.stopping) {
            (Phase::Turn(turn), _) => Step::Wait(Wanted::Turn(turn.effect)),
            (Phase::Ended(_), _) => Step::Wait(Wanted::Nothing),
            (Phase::Closing(closing), _) => Step::End(closing.clone()),
            (
                Phase::Preparing(run) | Phase::Judging(run, _) | Phase::Decided(run, _) | Phase::Asking(run, ..),
                Some(_),
            ) => Step::InterruptIteration(run.clone()),
            (Phase::Pipeline(pipeline), _) => self.pass_on(pipeline),
            (Phase::Settled(Next::GiveUp(reason)), _) => self.give_up(reason),
            // What was decided before somebody asked for the end stays decided.
            (Phase::Settled(Next::Close(closing)), _) => self.close_decided(closing),
            (
                Phase::Started | Phase::Settled(_) | Phase::Failed(_) | Phase::Recovering(_) | Phase::Postponed(_),
                Some(closing),
            ) => self.close(closing),
            (Phase::Started, None) => self.iterate(),
            (Phase::Preparing(run), None) => Step::StartTurn(run.clone(), Purpose::Work),
            (Phase::Judging(run, claim), None) => Step::DecideGate(run.clone(), self.judge(*claim)),
            (Phase::Decided(run, Decision::SendBack), None) => Step::StartTurn(run.clone(), Purpose::SendBack),
            (Phase::Decided(run, Decision::Next(_)), None) => Step::CompleteIteration(run.clone()),
            // About a task that it has no more nobody needs to be asked, and nothing is waited for.
            (Phase::Asking(run, ..), None) if self.hold == Hold::Left => Step::InterruptIteration(run.clone()),
            (Phase::Asking(run, claim, Some(answer)), None) => {
                Step::DecideGate(run.clone(), self.answered(*claim, *answer))
            }
            (Phase::Asking(_, _, None) | Phase::Decided(_, Decision::Ask), None) => Step::Wait(Wanted::Answer),
            (Phase::Recovering(run), None) if self.may_recover() => Step::StartTurn(run.clone(), Purpose::Recovery),
            (Phase::Postponed(_) | Phase::Failed(_) | Phase::Recovering(_), None) => match self.waits_until() {
                Some(until) if self.has_reason_to_wait() && now.is_none_or(|now| now < until) => {
                    Step::Wait(Wanted::Moment(until))
                }
                _ => self.go_on(),
            },
            (Phase::Settled(Next::Continue | Next::TakeUp), None) => self.go_on(),
        }
    }

    /// Until when the agent is left alone.
    pub fn waits_until(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Postponed(until) => Some(until),
            Phase::Failed(_) | Phase::Recovering(_) => self.watch.retry_at,
            _ => None,
        }
    }

    /// Whether another iteration of the same task follows the wait.
    fn has_reason_to_wait(&self) -> bool {
        self.hold != Hold::Left && !self.lacks_workspace() && self.exhausted().is_none()
    }

    /// Whether a person has said something that the agent has not heard.
    pub(crate) fn is_unheard(&self) -> bool {
        self.pending.iter().any(|piece| piece.person)
    }

    /// Whether a person has said something since the work was called done. Whoever let it pass themselves is not meant.
    pub(crate) fn is_held_back(&self) -> bool {
        self.epoch().is_some() && self.pending.iter().any(|piece| piece.person && Some(piece.at) > self.done_at)
    }

    /// What a turn leads to, by what the agent claims and what the stop hooks say. Whatever the agent claims, it has not
    /// heard what a person has said meanwhile.
    pub(crate) fn judge(&self, claim: Option<Promise>) -> Decision {
        let unheard = self.is_unheard();
        self.judge_heard(claim.filter(|_| !unheard), unheard)
    }

    /// The same, where it is known whether a person has yet to be heard.
    pub(crate) fn judge_heard(&self, claim: Option<Promise>, unheard: bool) -> Decision {
        let close = |closing| Decision::Next(Next::Close(closing));
        let complete = || close(Closing { ending: Ending::Completed, reason: self.let_pass() });
        if let Some(plea) = claim.and_then(Promise::plea) {
            return close(Closing::because(Ending::Escalated, plea));
        }
        let done = claim == Some(Promise::Complete) || self.terms.completion == Completion::Gate;
        let decision = match self.verdict {
            Verdict::Block if self.may_send_back() => Decision::SendBack,
            Verdict::Pass | Verdict::Fail | Verdict::Block if unheard => Decision::Next(Next::Continue),
            Verdict::Block => self.at_retry_limit(claim),
            Verdict::Escalate => {
                let asks = || "a stop hook asks for a person".to_owned();
                close(Closing::because(Ending::Escalated, self.asking.clone().unwrap_or_else(asks)))
            }
            verdict if self.wants_another_iteration(verdict) => Decision::Next(Next::Continue),
            _ if done => complete(),
            _ => Decision::Next(Next::Continue),
        };
        self.guarded(decision)
    }
}

#[cfg(test)]
pub(crate) mod tests;
