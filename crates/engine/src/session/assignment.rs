//! The task of a session: how the session takes, holds and leaves it.
//!
//! Invariants:
//! - A session holds one task at most, under the lease of its own epoch, and none when it has ended.
//! - A session completes a task only after the gate has passed it. In all other cases the task stays open, or waits for a
//!   person.
//!
//! Not here: the choice of the next task (`decide/session_tasks.rs`, which reads the graph).

use super::{Closing, Ending, Hold, Leave, Lost, Next, Phase, Piece, Session, Step, Verdict, Wanted, Work};
use crate::log::id::{Epoch, TaskId};
use crate::task::{State, TaskConversation};

/// The maximum number of tasks with waived hooks that the end of a session names.
const MAX_NAMED_WAIVERS: usize = 5;

impl Session {
    /// Returns the epoch under which the session holds its task.
    pub fn epoch(&self) -> Option<Epoch> {
        match self.hold {
            Hold::Held(epoch) => Some(epoch),
            Hold::Never | Hold::Left => None,
        }
    }

    /// Starts another iteration, if there is a task to work on.
    pub(crate) fn iterate(&self) -> Step {
        match (self.hold, self.work) {
            (Hold::Held(_), _) if self.lacks_workspace() => Step::Wait(Wanted::Workspace),
            // A person's message needs a turn of the agent first.
            (Hold::Held(_), _) if self.resumes && !self.is_unheard() => Step::Wait(Wanted::Work),
            (Hold::Held(_), _) | (Hold::Never, Work::Given) => Step::StartIteration,
            (Hold::Never, Work::Graph) | (Hold::Left, _) => Step::TakeTask,
        }
    }

    /// Returns whether the session holds a task and has no workspace for it.
    pub(crate) fn lacks_workspace(&self) -> bool {
        self.epoch().is_some() && !self.grounds.is_in_place() && self.workspace.is_none()
    }

    /// Returns the step after the gate has decided the end. When the session takes tasks from the graph, the end
    /// concerns one task only, unless the gate cannot judge other tasks either.
    pub(super) fn close_decided(&self, closing: &Closing) -> Step {
        let of_task = self.work == Work::Graph
            && match closing.ending {
                Ending::Completed => true,
                Ending::Escalated => !self.broken_gate,
                _ => false,
            };
        if self.work == Work::Given && self.has_lost_its_task() && self.stopping.is_none() {
            return Step::EndWithout(closing.clone());
        }
        let gone = self.work == Work::Given && self.hold == Hold::Left && !self.finished;
        if gone && closing.ending == Ending::Completed {
            // A person's message was still undelivered, and no iteration was left for it.
            let left = self.task.is_some_and(|id| self.left.contains(&id));
            let unheard = || Closing::because(Ending::Limit, "the agent could not hear a person any more");
            return match &self.stopping {
                Some(asked) if self.has_left_its_task() => self.close(asked),
                None if left => self.close(&self.exhausted().unwrap_or_else(unheard)),
                _ => Step::EndWithout(closing.clone()),
            };
        }
        let is_done = closing.ending == Ending::Completed;
        match &self.stopping {
            // The work is done, and a hook that saw the end asks for a person.
            Some(asked) if is_done && asked.ending == Ending::Escalated => self.close(asked),
            None if self.is_held_back() && is_done => self.go_on(),
            None if is_done && self.may_deliver() => self.deliver(),
            _ if self.epoch().is_some() && is_done => self.submit(closing),
            _ if self.epoch().is_some() || !of_task => self.close(closing),
            Some(asked) => self.close(asked),
            None => Step::TakeTask,
        }
    }

    /// Returns whether the session has left the task itself, for a later run or for a person.
    fn has_left_its_task(&self) -> bool {
        self.task.is_some_and(|id| self.left.contains(&id) || self.escalated.contains(&id))
    }

    /// Returns whether the session works on a task, or did so without completing it.
    pub fn has_taken_up(&self, id: TaskId) -> bool {
        let lost = self.lost.iter().map(|lost| lost.task);
        self.task
            .into_iter()
            .chain(lost)
            .chain(self.left.iter().chain(&self.escalated).copied())
            .any(|other| other == id)
    }

    /// Returns whether the task was taken away, so that another session can work on it.
    pub(crate) fn has_lost_its_task(&self) -> bool {
        self.hold == Hold::Left && self.lost.iter().any(|lost| Some(lost.task) == self.task)
    }

    /// Returns how the session leaves its task when it ends in this way. Only the gates complete a task.
    pub(crate) fn leaving(&self, closing: &Closing) -> Option<Leave> {
        self.epoch()?;
        let decided = matches!(&self.phase, Phase::Settled(Next::Close(decided)) if decided == closing);
        let reason = |usual: &str| closing.reason.clone().unwrap_or_else(|| usual.to_owned());
        Some(match closing.ending {
            Ending::Escalated => Leave::Blocked(match self.plea.as_ref().filter(|_| decided) {
                Some(plea) => format!("{}: {plea}", reason("a person is needed")),
                None => reason("a person is needed"),
            }),
            Ending::Cancelled => Leave::Unfinished(reason("the session was cancelled")),
            // A problem of the process that runs the session is no fault of the task.
            Ending::Error if self.stopping.as_ref() == Some(closing) => {
                Leave::Released(reason("the agent could not work"))
            }
            Ending::Error => Leave::Unfinished(reason("the agent could not work")),
            Ending::Limit => Leave::Unfinished(reason("the session came to its limit")),
            Ending::Completed => Leave::Unfinished(reason("the session was ended before the work was judged")),
        })
    }

    /// Returns the end of a session without further tasks: completed, unless it left a task to a person or to the next
    /// run.
    pub(crate) fn nothing_left(&self) -> Closing {
        match self.escalated.as_slice() {
            [] if !self.left.is_empty() => {
                let left: Vec<String> = self.left.iter().map(ToString::to_string).collect();
                Closing::because(Ending::Limit, format!("not finished, and left for the next run: {}", left.join(", ")))
            }
            [] => Closing { ending: Ending::Completed, reason: None },
            [one] => Closing::because(Ending::Escalated, format!("{one} needs a person")),
            [some @ .., last] => {
                let some: Vec<String> = some.iter().map(ToString::to_string).collect();
                Closing::because(Ending::Escalated, format!("{} and {last} need a person", some.join(", ")))
            }
        }
    }

    /// Takes a task and resets all counts of the previous one.
    pub(crate) fn take_up(&mut self, task: TaskId, epoch: Epoch) {
        self.retries = 0;
        self.sent_back.clear();
        self.failures = 0;
        self.watch.begin_anew();
        (self.last_turn, self.delivered) = (None, false);
        self.verdict = Verdict::Pass;
        self.blocking.clear();
        self.overlooked.clear();
        (self.asking, self.plea) = (None, None);
        if self.phase != Phase::Started {
            self.phase = Phase::Settled(Next::Continue);
        }
        // The same task keeps its conversation; another task gets a new one.
        if self.task != Some(task) {
            (self.conversation, self.iterations_before) = (None, self.iteration);
        }
        (self.done_at, self.checked) = (None, false);
        (self.workspace, self.resumes, self.remediations, self.rechecks) = (None, false, 0, 0);
        self.escalated.retain(|other| *other != task);
        self.left.retain(|other| *other != task);
        self.lost.retain(|lost| lost.task != task);
        (self.task, self.hold) = (Some(task), Hold::Held(epoch));
    }

    /// Returns the number of the iteration, counted on the present task alone.
    pub fn iteration_on_task(&self) -> u32 {
        self.iteration.saturating_sub(self.iterations_before)
    }

    /// Continues the last conversation about the task, if it belongs to the same agent and the session is not `fresh`.
    /// Sessions of older versions always started a new one, as their logs say.
    pub(crate) fn go_on_talking(&mut self, last: Option<&TaskConversation>) {
        let may_go_on = self.keeps_feedback && !self.fresh && self.conversation.is_none();
        let same = last.filter(|last| may_go_on && last.agent == self.agent);
        if let Some(last) = same {
            self.conversation = Some(last.name.clone());
            self.watch.used_in_conversation = last.used;
        }
    }

    /// Returns the conversation that the next session of the task continues. A conversation in which the circuit
    /// breaker tripped is not continued.
    pub(crate) fn last_conversation(&self) -> Option<TaskConversation> {
        let name = self.conversation.clone().filter(|_| !self.failed_too_often())?;
        Some(TaskConversation { agent: self.agent.clone(), name, used: self.watch.used_in_conversation })
    }

    /// Gives up the hold on the task. Returns the feedback that stays with the task.
    pub(crate) fn put_down(&mut self, task: TaskId, state: State, by_itself: bool) -> Vec<Piece> {
        let held = self.epoch();
        self.hold = Hold::Left;
        self.finished = by_itself && state == State::Completed;
        self.unchecked += u32::from(self.finished && !self.checked);
        if self.finished && self.work == Work::Graph {
            self.note_waiver(task);
        }
        match state {
            State::Blocked => self.escalated.push(task),
            State::NeedsContinuation if by_itself => self.left.push(task),
            _ if !by_itself && is_left_to_others(state) => {
                let branch = self.workspace.as_ref().map(|workspace| workspace.branch.clone());
                self.lost.extend(held.map(|epoch| Lost { task, epoch, branch }));
            }
            _ => {}
        }
        self.take_unheard()
    }

    /// Records why a task was completed although a hook did not pass. A session with one given task says so in its own
    /// end.
    fn note_waiver(&mut self, task: TaskId) {
        let closing = match &self.phase {
            Phase::Pipeline(pipeline) => &pipeline.closing,
            Phase::Settled(Next::Close(closing)) => closing,
            _ => return,
        };
        let Some(reason) = &closing.reason else { return };
        match self.waivers.len() {
            ..MAX_NAMED_WAIVERS => self.waivers.push(format!("{task}: {reason}")),
            MAX_NAMED_WAIVERS => self.waivers.push("other tasks were let pass as well".to_owned()),
            _ => {}
        }
    }

    /// Takes the feedback that no finished turn has delivered, in order. Feedback about one iteration only is dropped:
    /// the next iteration gets its own.
    pub(crate) fn take_unheard(&mut self) -> Vec<Piece> {
        if !self.keeps_feedback {
            return Vec::new();
        }
        let carried = match &mut self.phase {
            Phase::Turn(turn) => std::mem::take(&mut turn.feedback),
            _ => Vec::new(),
        };
        let mut unheard: Vec<Piece> = carried.into_iter().map(|piece| Piece { possibly_seen: true, ..piece }).collect();
        unheard.append(&mut self.pending);
        unheard.retain(|piece| !piece.passing);
        unheard
    }
}

/// Returns whether another session can work on a task that is in this state after it was taken from a session.
pub(crate) fn is_left_to_others(state: State) -> bool {
    matches!(state, State::Created | State::NeedsContinuation)
}
