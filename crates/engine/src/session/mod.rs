//! A session: one run of the loop, as a row, and the state machine that moves it.
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
//! A session rests only where something outside has to happen: a hook is pending, a turn is in progress, a person is asked,
//! time has to pass, or the session is over.
//! The commit that ends the wait also decides everything up to the next one: [`Session::step`] returns the next step.
//!
//! Not here: the limits of a session (`guards`).

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

/// The state of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Started,
    /// An iteration has begun.
    Preparing(RunId),
    Turn(Turn),
    /// A turn has ended, with this claim of the agent.
    Judging(RunId, Option<Promise>),
    Decided(RunId, Decision),
    /// Stop hooks block the agent, and a person is asked; with the answer, once there is one.
    Asking(RunId, Option<Promise>, Option<GateAnswer>),
    /// The agent is rate limited, or has been told about its failure. It gets no turn before this time.
    Postponed(Timestamp),
    /// An iteration has failed. The agent gets no turn before `GuardState::retry_at`.
    Failed(RunId),
    /// An iteration has failed, and hooks have reports about it.
    Recovering(RunId),
    /// The session is between iterations.
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
    /// The content of the protected files at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<ConfigDigest>,
    /// The present task, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Hold::is_never")]
    pub hold: Hold,
    /// Whether the session itself completed the last task that it held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    #[serde(default, skip_serializing_if = "Work::is_given")]
    pub work: Work,
    #[serde(default, skip_serializing_if = "Grounds::is_in_place")]
    pub grounds: Grounds,
    /// The worktree of its task, once it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// Whether its task ends with a report instead of a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub report: bool,
    /// The event with which the stop gate last passed the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Seq>,
    /// Whether the work was judged done before, and continues at the gate that could not be asked then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
    /// The number of times that the agent had to mend work that it had called done.
    #[serde(default)]
    pub remediations: u32,
    /// The number of times that the work was judged again because the base had moved.
    #[serde(default)]
    pub rechecks: u32,
    /// Whether the stop hooks have to judge the work again before it is submitted: they judged it on another base, or
    /// other hooks did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
    /// The tasks that the session has left for a later run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<TaskId>,
    /// The tasks that were taken from the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Lost>,
    /// The agent's last words, kept until the turn's claim is judged: they may explain why it asks for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plea: Option<String>,
    /// The tasks that the session has left to a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalated: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The agent as it was given: `command:…`.
    pub agent: String,
    pub terms: Terms,
    /// A number that distinguishes the runs of this session from those of another one with the same name.
    pub nonce: u64,
    /// Whether the session continues no earlier conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// The number of `windlass` calls around it: a hook may have started it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nesting: u8,
    /// The process that runs the loop.
    pub owner: OwnerName,
    pub phase: Phase,
    /// The pending hooks that the loop waits for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<EffectId>,
    /// The number of the last iteration that was started.
    pub iteration: u32,
    /// The number of the last iteration on earlier tasks.
    #[serde(default)]
    pub iterations_before: u32,
    /// The number of interrupted iterations, which do not count.
    #[serde(default)]
    pub interrupted: u32,
    /// The number of interrupted iterations since a turn last finished.
    #[serde(default)]
    pub interrupted_in_a_row: u32,
    /// The number of failed iterations in a row.
    #[serde(default)]
    pub failures: u32,
    /// The number of send-backs in this iteration.
    #[serde(default)]
    pub retries: u32,
    /// The number of send-backs per stop hook.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent_back: BTreeMap<String, u32>,
    #[serde(default)]
    pub verdict: Verdict,
    /// The stop hook that asks for a person, with its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<String>,
    /// Whether a stop hook could not run: no work can be judged until a person has repaired it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken_gate: bool,
    /// The stop hooks that block this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<Blocker>,
    /// The stop hooks that a person wants to be ignored, until the work is next judged as done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignores: Vec<String>,
    /// The ignored hooks that would have blocked this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlooked: Vec<String>,
    /// The tasks of the graph that were completed although a hook did not pass, in words, for the end of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<String>,
    /// Whether a check has passed the work of the last turn, or its end says why none has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// The number of completed tasks whose work no hook checked.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub unchecked: u32,
    /// The feedback that no turn carries yet, first in first out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Piece>,
    /// The event with the agent's last output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<Seq>,
    /// Whether this iteration, or the interrupted one that it continues, has had its delivery turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// Feedback that no turn has carried stays with the task when the session leaves it. Sessions of older versions
    /// keep it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_feedback: bool,
    /// The agent's own name of the conversation, if the agent has conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The end that was requested from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Closing>,
    /// The state of the guards.
    #[serde(default)]
    pub watch: Watch,
    /// The last event that changed this row.
    pub version: Seq,
}

fn is_none_of_them(count: &u32) -> bool {
    *count == 0
}

/// The next step of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing is decided before this has happened.
    Wait(Wanted),
    SkipHook(EffectId),
    /// Takes the next task of the graph, or the previous one again.
    TakeTask,
    LeaveTask(Leave),
    /// Has work judged that was done in place.
    Submit(Closing),
    PassSubmission,
    StartMerge,
    FailGate,
    /// Delivers a person's message before the work is accepted.
    HearFirst,
    /// Ends the session without its task: in this way if the task is completed all the same and no other session has
    /// worked on it, else as a session whose task was taken away.
    EndWithout(Closing),
    StartIteration,
    StartTurn(RunId, Purpose),
    DecideGate(RunId, Decision),
    CompleteIteration(RunId),
    /// Interrupts an iteration that is open when the session is stopped.
    InterruptIteration(RunId),
    End(Closing),
}

/// An action outside the engine that the session waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Hook(EffectId),
    Turn(EffectId),
    /// A worktree for the task.
    Workspace,
    /// The work to submit.
    Work,
    /// A person's answer.
    Answer,
    /// A point in time.
    Moment(Timestamp),
    /// A decision of the process that runs the session, after another process has made it possible.
    Decision,
    /// No action: the session is over.
    Nothing,
}

impl Session {
    /// Returns whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.ended().is_some() && self.owed.is_empty()
    }

    pub fn ended(&self) -> Option<Ending> {
        match self.phase {
            Phase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// Returns the turn in progress.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    pub fn run(&self, iteration: u32) -> RunId {
        RunId { session: self.name.clone(), iteration, nonce: self.nonce }
    }

    /// Returns the outside action that the next decision waits for.
    pub fn wanted(&self) -> Wanted {
        match self.step() {
            Step::Wait(wanted) => wanted,
            // The hook has started, or the commit before would have skipped it.
            Step::SkipHook(effect) => Wanted::Hook(effect),
            // Usually a commit decides everything that it makes possible. A person's command leaves that to the owner.
            _ => Wanted::Decision,
        }
    }

    /// Returns the next step that requires no time to pass.
    pub fn step(&self) -> Step {
        self.step_at(None)
    }

    /// Returns the next step at a point in time.
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
            // A decision before the request to end stays in force.
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
            // The session has lost the task, so it neither asks a person about it nor waits.
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

    /// Returns the time before which the agent gets no turn.
    pub fn waits_until(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Postponed(until) => Some(until),
            Phase::Failed(_) | Phase::Recovering(_) => self.watch.retry_at,
            _ => None,
        }
    }

    /// Returns whether another iteration of the same task follows the wait.
    fn has_reason_to_wait(&self) -> bool {
        self.hold != Hold::Left && !self.lacks_workspace() && self.exhausted().is_none()
    }

    /// Returns whether a person's message is still undelivered.
    pub(crate) fn is_unheard(&self) -> bool {
        self.pending.iter().any(|piece| piece.person)
    }

    /// Returns whether a person has sent a message since the work was called done. A message with a person's own
    /// approval does not count.
    pub(crate) fn is_held_back(&self) -> bool {
        self.epoch().is_some() && self.pending.iter().any(|piece| piece.person && Some(piece.at) > self.done_at)
    }

    /// Decides what follows a turn, from the agent's claim and the verdict of the stop hooks. A claim does not count
    /// while a person's message is undelivered.
    pub(crate) fn judge(&self, claim: Option<Promise>) -> Decision {
        let unheard = self.is_unheard();
        self.judge_heard(claim.filter(|_| !unheard), unheard)
    }

    /// Decides the same, given whether a person's message is undelivered.
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
