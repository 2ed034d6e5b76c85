//! A session: one run of the loop, as a row, and the state machine that moves it.
//!
//! ```text
//! started ─► preparing ─► turn ─► judging ─► decided ─► settled ─► pipeline ─► ended
//!               ▲          ▲  │ interrupted │ ▲ send back   │ │
//!               │          ├──┼─────────────┘ asking        │ │
//!               │          └──┼─────────────────────────────┼─┘ delivery
//!               │   failed ◄──┤ recovering: prompted at once│
//!               │postponed ◄──┤ rate limited, or retry delay│
//!               └─────────────┴─────────────────────────────┘ next iteration
//! ```
//!
//! A session rests only where something outside has to happen: a hook is pending, a turn is in progress, a person is asked,
//! time has to pass, or the session is over.
//! The commit that ends the wait also decides everything up to the next one: [`Session::next_step`] returns the next step.
//!
//! Not here: the limits of a session (`guards`).

mod agent_turn;
mod assignment;
mod delivery_step;
pub(crate) mod ending;
pub(crate) mod feedback;
pub(crate) mod guard_state;
mod guards;
pub(crate) mod message_author;
pub(crate) mod output_fingerprint;
pub(crate) mod promise;
pub(crate) mod prompt;
mod task_hold;
mod terms;
pub(crate) mod turn_failure;
pub(crate) mod usage;
pub(crate) mod verdict;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::guard_state::GuardState;
use self::promise::Promise;
use crate::delivery::{DeliveryPipeline, Workspace, WorkspaceMode};
use crate::effects::hook_batch::is_zero;
use crate::log::id::{ConfigDigest, EffectId, OwnerName, RunId, Seq, SessionName, TaskId};
use crate::log::time::Timestamp;
pub use agent_turn::{AgentTurn, ConversationStart, TurnPurpose};
pub(crate) use assignment::is_claimable_after_loss;
pub use ending::{SessionEnd, SessionEndKind};
pub use feedback::FeedbackRef;
pub use task_hold::{LostTask, TaskExit, TaskHold, WorkSource};
pub use terms::{CompletionMode, RetryLimitAction, SessionTerms};
pub use verdict::{AfterIteration, BlockingHook, GateAnswer, GateDecision, GateVerdict};

/// The state of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionPhase {
    Started,
    /// An iteration has begun.
    Preparing(RunId),
    Turn(AgentTurn),
    /// A turn has ended, with this claim of the agent.
    Judging(RunId, Option<Promise>),
    Decided(RunId, GateDecision),
    /// Stop hooks block the agent, and a person is asked; with the answer, once there is one.
    Asking(RunId, Option<Promise>, Option<GateAnswer>),
    /// The agent is rate limited, or has been told about its failure. It gets no turn before this time.
    Postponed(Timestamp),
    /// An iteration has failed. The agent gets no turn before `GuardState::retry_at`.
    Failed(RunId),
    /// An iteration has failed, and hooks have reports about it.
    Recovering(RunId),
    /// The session is between iterations.
    Settled(AfterIteration),
    /// The work is done, and on its way through the gates.
    Pipeline(Box<DeliveryPipeline>),
    /// A session of an older version has delivered its feedback.
    Closing(SessionEnd),
    Ended(SessionEndKind),
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
    #[serde(default, skip_serializing_if = "TaskHold::is_never")]
    pub hold: TaskHold,
    /// Whether the session itself completed the last task that it held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    #[serde(default, skip_serializing_if = "WorkSource::is_given")]
    pub work: WorkSource,
    #[serde(rename = "grounds", default, skip_serializing_if = "WorkspaceMode::is_in_place")]
    pub workspace_mode: WorkspaceMode,
    /// The worktree of its task, once it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// Whether its task ends with a report instead of a change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub report: bool,
    /// The event with which the stop gate last passed the work.
    #[serde(rename = "doneAt", default, skip_serializing_if = "Option::is_none")]
    pub judged_done_at: Option<Seq>,
    /// Whether the work was judged done before, and continues at the gate that could not be asked then.
    #[serde(rename = "resumes", default, skip_serializing_if = "std::ops::Not::not")]
    pub resumes_at_gate: bool,
    /// The number of times that the agent had to fix work that it had called done.
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
    #[serde(rename = "left", default, skip_serializing_if = "Vec::is_empty")]
    pub released_tasks: Vec<TaskId>,
    /// The tasks that were taken from the session.
    #[serde(rename = "lost", default, skip_serializing_if = "Vec::is_empty")]
    pub lost_tasks: Vec<LostTask>,
    /// The agent's last words, kept until the turn's claim is judged: they may explain why it asks for a person.
    #[serde(rename = "plea", default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// The tasks that the session has left to a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalated: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The agent as it was given: `command:…`.
    pub agent: String,
    pub terms: SessionTerms,
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
    pub phase: SessionPhase,
    /// The pending hooks that the loop waits for, in order.
    #[serde(rename = "owed", default, skip_serializing_if = "Vec::is_empty")]
    pub pending_hooks: Vec<EffectId>,
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
    /// The number of send-backs of each stop hook in this iteration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent_back: BTreeMap<String, u32>,
    #[serde(default)]
    pub verdict: GateVerdict,
    /// The stop hook that asks for a person, with its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<String>,
    /// Whether a stop hook could not run: no work can be judged until a person has repaired it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken_gate: bool,
    /// The stop hooks that block this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<BlockingHook>,
    /// The stop hooks that a person wants to be ignored, until the work is next judged as done.
    #[serde(rename = "ignores", default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_hooks: Vec<String>,
    /// The ignored hooks that would have blocked this turn.
    #[serde(rename = "overlooked", default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_blocks: Vec<String>,
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
    pub pending: Vec<FeedbackRef>,
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
    pub stopping: Option<SessionEnd>,
    /// The state of the guards.
    #[serde(default)]
    pub watch: GuardState,
    /// The event that started the session.
    pub started: Seq,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The last event that changed this row. Once the session is over, the last event that names the session.
    pub version: Seq,
}

fn is_none_of_them(count: &u32) -> bool {
    *count == 0
}

/// The next step of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStep {
    /// Nothing is decided before this has happened.
    Wait(NextAction),
    SkipHook(EffectId),
    /// Takes the next task of the graph, or the previous one again.
    TakeTask,
    LeaveTask(TaskExit),
    /// Has work judged that was done in place.
    Submit(SessionEnd),
    PassSubmission,
    StartMerge,
    FailGate,
    /// Delivers a person's message before the work is accepted.
    DeliverMessageFirst,
    /// Ends the session without its task: in this way if the task is completed all the same and no other session has
    /// worked on it, else as a session whose task was taken away.
    EndWithoutTask(SessionEnd),
    StartIteration,
    StartTurn(RunId, TurnPurpose),
    DecideGate(RunId, GateDecision),
    CompleteIteration(RunId),
    /// Interrupts an iteration that is open when the session is stopped.
    InterruptIteration(RunId),
    End(SessionEnd),
}

/// An action outside the engine that the session waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextAction {
    Hook(EffectId),
    Turn(EffectId),
    /// A worktree for the task.
    Workspace,
    /// The work to submit.
    Work,
    /// A person's answer.
    Answer,
    /// A point in time.
    WaitUntil(Timestamp),
    /// A decision of the process that runs the session, after another process has made it possible.
    Decision,
    /// No action: the session is over.
    Nothing,
}

impl Session {
    /// Returns whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.ending_kind().is_some() && self.pending_hooks.is_empty()
    }

    pub fn ending_kind(&self) -> Option<SessionEndKind> {
        match self.phase {
            SessionPhase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// Returns the turn in progress.
    pub fn current_turn(&self) -> Option<&AgentTurn> {
        match &self.phase {
            SessionPhase::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    pub fn run_id_for(&self, iteration: u32) -> RunId {
        RunId { session: self.name.clone(), iteration, nonce: self.nonce }
    }

    /// Returns the outside action that the next decision waits for.
    pub fn next_action(&self) -> NextAction {
        match self.next_step() {
            SessionStep::Wait(wanted) => wanted,
            // The hook has started, or the commit before would have skipped it.
            SessionStep::SkipHook(effect) => NextAction::Hook(effect),
            // Usually a commit decides everything that it makes possible. A person's command leaves that to the owner.
            _ => NextAction::Decision,
        }
    }

    /// Returns the next step that requires no time to pass.
    pub fn next_step(&self) -> SessionStep {
        self.next_step_at(None)
    }

    /// Returns the next step at a point in time.
    pub(crate) fn next_step_at(&self, now: Option<Timestamp>) -> SessionStep {
        if let Some(hook) = self.pending_hooks.first() {
            let skipped = self.stopping.is_some() && self.ending_kind().is_none()
                || self.may_skip_hook(*hook)
                || self.may_skip_unstarted_hook(*hook);
            return if skipped { SessionStep::SkipHook(*hook) } else { SessionStep::Wait(NextAction::Hook(*hook)) };
        }
        match (&self.phase, &self.stopping) {
            (SessionPhase::Turn(turn), _) => SessionStep::Wait(NextAction::Turn(turn.effect)),
            (SessionPhase::Ended(_), _) => SessionStep::Wait(NextAction::Nothing),
            (SessionPhase::Closing(closing), _) => SessionStep::End(closing.clone()),
            (
                SessionPhase::Preparing(run)
                | SessionPhase::Judging(run, _)
                | SessionPhase::Decided(run, _)
                | SessionPhase::Asking(run, ..),
                Some(_),
            ) => SessionStep::InterruptIteration(run.clone()),
            (SessionPhase::Pipeline(pipeline), _) => self.advance_pipeline(pipeline),
            (SessionPhase::Settled(AfterIteration::GiveUp(reason)), _) => self.give_up_task(reason),
            // A decision before the request to end stays in force.
            (SessionPhase::Settled(AfterIteration::Close(closing)), _) => self.apply_decided_ending(closing),
            (
                SessionPhase::Started
                | SessionPhase::Settled(_)
                | SessionPhase::Failed(_)
                | SessionPhase::Recovering(_)
                | SessionPhase::Postponed(_),
                Some(closing),
            ) => self.end_or_leave_task(closing),
            (SessionPhase::Started, None) => self.next_iteration_step(),
            (SessionPhase::Preparing(run), None) => SessionStep::StartTurn(run.clone(), TurnPurpose::Work),
            (SessionPhase::Judging(run, claim), None) => SessionStep::DecideGate(run.clone(), self.judge_turn(*claim)),
            (SessionPhase::Decided(run, GateDecision::SendBack), None) => {
                SessionStep::StartTurn(run.clone(), TurnPurpose::SendBack)
            }
            (SessionPhase::Decided(run, GateDecision::Next(_)), None) => SessionStep::CompleteIteration(run.clone()),
            // The session has lost the task, so it neither asks a person about it nor waits.
            (SessionPhase::Asking(run, ..), None) if self.hold == TaskHold::Left => {
                SessionStep::InterruptIteration(run.clone())
            }
            (SessionPhase::Asking(run, claim, Some(answer)), None) => {
                SessionStep::DecideGate(run.clone(), self.apply_gate_answer(*claim, *answer))
            }
            (SessionPhase::Asking(_, _, None) | SessionPhase::Decided(_, GateDecision::Ask), None) => {
                SessionStep::Wait(NextAction::Answer)
            }
            (SessionPhase::Recovering(run), None) if self.may_start_recovery() => {
                SessionStep::StartTurn(run.clone(), TurnPurpose::Recovery)
            }
            (SessionPhase::Postponed(_) | SessionPhase::Failed(_) | SessionPhase::Recovering(_), None) => {
                match self.wait_deadline() {
                    Some(until) if self.will_iterate_after_wait() && now.is_none_or(|now| now < until) => {
                        SessionStep::Wait(NextAction::WaitUntil(until))
                    }
                    _ => self.continue_or_end(),
                }
            }
            (SessionPhase::Settled(AfterIteration::Continue | AfterIteration::TakeUp), None) => self.continue_or_end(),
        }
    }

    /// Returns the time before which the agent gets no turn.
    pub fn wait_deadline(&self) -> Option<Timestamp> {
        match self.phase {
            SessionPhase::Postponed(until) => Some(until),
            SessionPhase::Failed(_) | SessionPhase::Recovering(_) => self.watch.retry_at,
            _ => None,
        }
    }

    /// Returns whether another iteration of the same task follows the wait.
    fn will_iterate_after_wait(&self) -> bool {
        self.hold != TaskHold::Left && !self.lacks_workspace() && self.find_exhausted_limit().is_none()
    }

    /// Returns whether a person's message is still undelivered.
    pub(crate) fn has_unheard_person(&self) -> bool {
        self.pending.iter().any(|piece| piece.person)
    }

    /// Returns whether a person has sent a message since the work was called done. A message with a person's own
    /// approval does not count.
    pub(crate) fn is_held_by_person(&self) -> bool {
        self.held_epoch().is_some()
            && self.pending.iter().any(|piece| piece.person && Some(piece.at) > self.judged_done_at)
    }

    /// Decides what follows a turn, from the agent's claim and the verdict of the stop hooks. A claim does not count
    /// while a person's message is undelivered.
    pub(crate) fn judge_turn(&self, claim: Option<Promise>) -> GateDecision {
        let unheard = self.has_unheard_person();
        self.judge_turn_with(claim.filter(|_| !unheard), unheard)
    }

    /// Decides the same, given whether a person's message is undelivered.
    pub(crate) fn judge_turn_with(&self, claim: Option<Promise>, unheard: bool) -> GateDecision {
        let close = |closing| GateDecision::Next(AfterIteration::Close(closing));
        let complete = || close(SessionEnd { ending: SessionEndKind::Completed, reason: self.describe_waived_hooks() });
        if let Some(plea) = claim.and_then(Promise::reason_for_person) {
            return close(SessionEnd::with_reason(SessionEndKind::Escalated, plea));
        }
        let done = claim == Some(Promise::Complete) || self.terms.completion == CompletionMode::Gate;
        let decision = match self.verdict {
            GateVerdict::Block if self.may_send_back() => GateDecision::SendBack,
            GateVerdict::Pass | GateVerdict::Fail | GateVerdict::Block if unheard => {
                GateDecision::Next(AfterIteration::Continue)
            }
            GateVerdict::Block => self.decide_at_retry_limit(claim),
            GateVerdict::Escalate => {
                let asks = || "a stop hook asks for a person".to_owned();
                close(SessionEnd::with_reason(SessionEndKind::Escalated, self.asking.clone().unwrap_or_else(asks)))
            }
            verdict if self.wants_another_iteration(verdict) => GateDecision::Next(AfterIteration::Continue),
            _ if done => complete(),
            _ => GateDecision::Next(AfterIteration::Continue),
        };
        self.apply_guards(decision)
    }
}

#[cfg(test)]
pub(crate) mod tests;
