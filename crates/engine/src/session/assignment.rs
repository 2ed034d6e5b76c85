//! The task of a session: how the session takes, holds and leaves it.
//!
//! Invariants:
//! - A session holds one task at most, under the lease of its own epoch, and none when it has ended.
//! - A session completes a task only after the gate has passed it. In all other cases the task stays open, or waits for a
//!   person.
//!
//! Not here: the choice of the next task (`decide/session_tasks.rs`, which reads the graph).

use super::{
    AfterIteration, FeedbackRef, GateVerdict, LostTask, NextAction, Session, SessionEnd, SessionEndKind, SessionPhase,
    SessionStep, TaskExit, TaskHold, WorkSource,
};
use crate::log::id::{Epoch, TaskId};
use crate::task::{TaskConversation, TaskState};

/// The maximum number of tasks with waived hooks that the end of a session names.
const MAX_NAMED_WAIVERS: usize = 5;

impl Session {
    /// Returns the epoch under which the session holds its task.
    pub fn held_epoch(&self) -> Option<Epoch> {
        match self.hold {
            TaskHold::Held(epoch) => Some(epoch),
            TaskHold::Never | TaskHold::Left => None,
        }
    }

    /// Starts another iteration, if there is a task to work on.
    pub(crate) fn next_iteration_step(&self) -> SessionStep {
        match (self.hold, self.work) {
            (TaskHold::Held(_), _) if self.lacks_workspace() => SessionStep::Wait(NextAction::Workspace),
            // A person's message needs a turn of the agent first.
            (TaskHold::Held(_), _) if self.resumes_at_gate && !self.has_unheard_person() => {
                SessionStep::Wait(NextAction::Work)
            }
            (TaskHold::Held(_), _) | (TaskHold::Never, WorkSource::Given) => SessionStep::StartIteration,
            (TaskHold::Never, WorkSource::Graph) | (TaskHold::Left, _) => SessionStep::TakeTask,
        }
    }

    /// Returns whether the session holds a task and has no workspace for it.
    pub(crate) fn lacks_workspace(&self) -> bool {
        self.held_epoch().is_some() && !self.workspace_mode.is_in_place() && self.workspace.is_none()
    }

    /// Returns the step after the gate has decided the end. When the session takes tasks from the graph, the end
    /// concerns one task only, unless the gate cannot judge other tasks either.
    pub(super) fn apply_decided_ending(&self, closing: &SessionEnd) -> SessionStep {
        let of_task = self.work == WorkSource::Graph
            && match closing.ending {
                SessionEndKind::Completed => true,
                SessionEndKind::Escalated => !self.broken_gate,
                _ => false,
            };
        if self.work == WorkSource::Given && self.has_lost_task() && self.stopping.is_none() {
            return SessionStep::EndWithoutTask(closing.clone());
        }
        let gone = self.work == WorkSource::Given && self.hold == TaskHold::Left && !self.finished;
        if gone && closing.ending == SessionEndKind::Completed {
            // A person's message was still undelivered, and no iteration was left for it.
            let left = self.task.is_some_and(|id| self.released_tasks.contains(&id));
            let unheard =
                || SessionEnd::with_reason(SessionEndKind::Limit, "the agent could no longer get a person's message");
            return match &self.stopping {
                Some(asked) if self.has_left_task_itself() => self.end_or_leave_task(asked),
                None if left => self.end_or_leave_task(&self.find_exhausted_limit().unwrap_or_else(unheard)),
                _ => SessionStep::EndWithoutTask(closing.clone()),
            };
        }
        let is_done = closing.ending == SessionEndKind::Completed;
        match &self.stopping {
            // The work is done, and a hook that saw the end asks for a person.
            Some(asked) if is_done && asked.ending == SessionEndKind::Escalated => self.end_or_leave_task(asked),
            None if self.is_held_by_person() && is_done => self.continue_or_end(),
            None if is_done && self.may_deliver_feedback() => self.start_delivery_turn(),
            _ if self.held_epoch().is_some() && is_done => self.submit_work(closing),
            _ if self.held_epoch().is_some() || !of_task => self.end_or_leave_task(closing),
            Some(asked) => self.end_or_leave_task(asked),
            None => SessionStep::TakeTask,
        }
    }

    /// Returns whether the session has left the task itself, for a later run or for a person.
    fn has_left_task_itself(&self) -> bool {
        self.task.is_some_and(|id| self.released_tasks.contains(&id) || self.escalated.contains(&id))
    }

    /// Returns whether the session works on a task, or did so without completing it.
    pub fn has_worked_on(&self, id: TaskId) -> bool {
        let lost = self.lost_tasks.iter().map(|lost| lost.task);
        self.task
            .into_iter()
            .chain(lost)
            .chain(self.released_tasks.iter().chain(&self.escalated).copied())
            .any(|other| other == id)
    }

    /// Returns whether the task was taken away, so that another session can work on it.
    pub(crate) fn has_lost_task(&self) -> bool {
        self.hold == TaskHold::Left && self.lost_tasks.iter().any(|lost| Some(lost.task) == self.task)
    }

    /// Returns how the session leaves its task when it ends in this way. Only the gates complete a task.
    pub(crate) fn task_exit_for(&self, closing: &SessionEnd) -> Option<TaskExit> {
        self.held_epoch()?;
        let decided =
            matches!(&self.phase, SessionPhase::Settled(AfterIteration::Close(decided)) if decided == closing);
        let reason = |usual: &str| closing.reason.clone().unwrap_or_else(|| usual.to_owned());
        Some(match closing.ending {
            SessionEndKind::Escalated => TaskExit::Blocked(match self.last_words.as_ref().filter(|_| decided) {
                Some(plea) => format!("{}: {plea}", reason("a person is needed")),
                None => reason("a person is needed"),
            }),
            SessionEndKind::Cancelled => TaskExit::Unfinished(reason("the session was cancelled")),
            // A problem of the process that runs the session is no fault of the task.
            SessionEndKind::Error if self.stopping.as_ref() == Some(closing) => {
                TaskExit::Released(reason("the agent could not work"))
            }
            SessionEndKind::Error => TaskExit::Unfinished(reason("the agent could not work")),
            SessionEndKind::Limit => TaskExit::Unfinished(reason("the session reached its limit")),
            SessionEndKind::Completed => {
                TaskExit::Unfinished(reason("the session was ended before the work was judged"))
            }
        })
    }

    /// Returns the end of a session without further tasks: completed, unless it left a task to a person or to the next
    /// run.
    pub(crate) fn end_without_open_tasks(&self) -> SessionEnd {
        match self.escalated.as_slice() {
            [] if !self.released_tasks.is_empty() => {
                let left: Vec<String> = self.released_tasks.iter().map(ToString::to_string).collect();
                SessionEnd::with_reason(
                    SessionEndKind::Limit,
                    format!("not finished, and left for the next run: {}", left.join(", ")),
                )
            }
            [] => SessionEnd { ending: SessionEndKind::Completed, reason: None },
            [one] => SessionEnd::with_reason(SessionEndKind::Escalated, format!("{one} needs a person")),
            [some @ .., last] => {
                let some: Vec<String> = some.iter().map(ToString::to_string).collect();
                SessionEnd::with_reason(
                    SessionEndKind::Escalated,
                    format!("{} and {last} need a person", some.join(", ")),
                )
            }
        }
    }

    /// Takes a task and resets all counts of the previous one.
    pub(crate) fn take_up_task(&mut self, task: TaskId, epoch: Epoch) {
        self.retries = 0;
        self.sent_back.clear();
        self.failures = 0;
        self.watch.reset_repetitions();
        (self.last_turn, self.delivered) = (None, false);
        self.verdict = GateVerdict::Pass;
        self.blocking.clear();
        self.ignored_blocks.clear();
        (self.asking, self.last_words) = (None, None);
        if self.phase != SessionPhase::Started {
            self.phase = SessionPhase::Settled(AfterIteration::Continue);
        }
        // The same task keeps its conversation; another task gets a new one.
        if self.task != Some(task) {
            (self.conversation, self.iterations_before) = (None, self.iteration);
        }
        (self.judged_done_at, self.checked) = (None, false);
        (self.workspace, self.resumes_at_gate, self.remediations, self.rechecks) = (None, false, 0, 0);
        self.escalated.retain(|other| *other != task);
        self.released_tasks.retain(|other| *other != task);
        self.lost_tasks.retain(|lost| lost.task != task);
        (self.task, self.hold) = (Some(task), TaskHold::Held(epoch));
    }

    /// Returns the number of the iteration, counted on the present task alone.
    pub fn iteration_on_task(&self) -> u32 {
        self.iteration.saturating_sub(self.iterations_before)
    }

    /// Continues the last conversation about the task, if it belongs to the same agent and the session is not `fresh`.
    /// Sessions of older versions always started a new one, as their logs say.
    pub(crate) fn resume_conversation(&mut self, last: Option<&TaskConversation>) {
        let may_go_on = self.keeps_feedback && !self.fresh && self.conversation.is_none();
        let same = last.filter(|last| may_go_on && last.agent == self.agent);
        if let Some(last) = same {
            self.conversation = Some(last.name.clone());
            self.watch.used_in_conversation = last.used;
        }
    }

    /// Returns the conversation that the next session of the task continues. A conversation in which the circuit
    /// breaker tripped is not continued.
    pub(crate) fn resumable_conversation(&self) -> Option<TaskConversation> {
        let name = self.conversation.clone().filter(|_| !self.has_tripped_breaker())?;
        Some(TaskConversation { agent: self.agent.clone(), name, used: self.watch.used_in_conversation })
    }

    /// Gives up the hold on the task. Returns the feedback that stays with the task.
    pub(crate) fn release_task(&mut self, task: TaskId, state: TaskState, by_itself: bool) -> Vec<FeedbackRef> {
        let held = self.held_epoch();
        self.hold = TaskHold::Left;
        self.finished = by_itself && state == TaskState::Completed;
        self.unchecked += u32::from(self.finished && !self.checked);
        if self.finished && self.work == WorkSource::Graph {
            self.record_waiver(task);
        }
        match state {
            TaskState::Blocked => self.escalated.push(task),
            TaskState::NeedsContinuation if by_itself => self.released_tasks.push(task),
            _ if !by_itself && is_claimable_after_loss(state) => {
                let branch = self.workspace.as_ref().map(|workspace| workspace.branch.clone());
                self.lost_tasks.extend(held.map(|epoch| LostTask { task, epoch, branch }));
            }
            _ => {}
        }
        self.take_undelivered_feedback()
    }

    /// Records why a task was completed although a hook did not pass. A session with one given task says so in its own
    /// end.
    fn record_waiver(&mut self, task: TaskId) {
        let closing = match &self.phase {
            SessionPhase::Pipeline(pipeline) => &pipeline.closing,
            SessionPhase::Settled(AfterIteration::Close(closing)) => closing,
            _ => return,
        };
        let Some(reason) = &closing.reason else { return };
        match self.waivers.len() {
            ..MAX_NAMED_WAIVERS => self.waivers.push(format!("{task}: {reason}")),
            MAX_NAMED_WAIVERS => self.waivers.push("other tasks were accepted in the same way".to_owned()),
            _ => {}
        }
    }

    /// Takes the feedback that no finished turn has delivered, in order. Feedback about one iteration only is dropped:
    /// the next iteration gets its own.
    pub(crate) fn take_undelivered_feedback(&mut self) -> Vec<FeedbackRef> {
        if !self.keeps_feedback {
            return Vec::new();
        }
        let carried = match &mut self.phase {
            SessionPhase::Turn(turn) => std::mem::take(&mut turn.feedback),
            _ => Vec::new(),
        };
        let mut undelivered: Vec<FeedbackRef> =
            carried.into_iter().map(|piece| FeedbackRef { possibly_seen: true, ..piece }).collect();
        undelivered.append(&mut self.pending);
        undelivered.retain(|piece| !piece.passing);
        undelivered
    }
}

/// Returns whether another session can work on a task that is in this state after it was taken from a session.
pub(crate) fn is_claimable_after_loss(state: TaskState) -> bool {
    matches!(state, TaskState::Created | TaskState::NeedsContinuation)
}
