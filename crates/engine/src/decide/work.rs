//! Assignment of tasks to a session, and the ways in which a session leaves its task.
//!
//! Invariants:
//! - A session takes only a task that is claimable at that moment, in the commit that decides it: two sessions never work on
//!   the same task.
//! - It takes the next task after the pure hooks of this commit have run: they may have made one ready.

use serde_json::Value;

use super::Deciding;
use crate::command::limits::Limits;
use crate::command::refusal::Refusal;
use crate::command::{NewSession, NewTask};
use crate::delivery::Finding;
use crate::log::event::{Event, Node, payload};
use crate::log::id::{Epoch, TaskId};
use crate::session::voice::Voice;
use crate::session::{Closing, Ending, Leave, Session, Work};
use crate::task::{Blocked, State, Task};

impl Deciding<'_, '_> {
    /// Assigns its first task to a session that has just started.
    pub(super) fn give_work(&mut self, new: &NewSession) -> Result<(), Refusal> {
        self.place = Some((new.name.clone(), None));
        let id = match (new.task, &new.goal) {
            (Some(id), _) => {
                let task = self.free_to_take(id)?;
                self.rules.types.admit(&task, &new.agent)?;
                task.id
            }
            (None, Some(goal)) => self.create(&NewTask { goal: goal.clone(), ..NewTask::default() })?,
            (None, None) => return Ok(()),
        };
        let session = self.session(&new.name)?;
        self.hand_to(&session, id)
    }

    /// Returns the task if a session may take it.
    fn free_to_take(&mut self, id: TaskId) -> Result<Task, Refusal> {
        self.expire_if_due(id)?;
        if let Some(lease) = self.task(id)?.lease {
            return Err(Refusal::Held { id, lease: Box::new(lease) });
        }
        self.fit_to_claim(id)
    }

    fn hand_to(&mut self, session: &Session, id: TaskId) -> Result<(), Refusal> {
        let task = self.task(id)?;
        let epoch = Epoch(task.epoch.0 + 1);
        let (owner, session) = (session.owner.clone(), Some(session.name.clone()));
        let report = self.rules.types.asks_for_report(&task);
        self.emit(Node::Task(id), payload::TaskClaimed { owner, epoch, until: None, session, report })?;
        self.emit(Node::Task(id), payload::TaskStarted { context: Value::Null })?;
        // The agent first receives a person's answer since the last work on the task.
        if let Some((source, text)) = task.answer.and_then(|answer| Some((answer.by, answer.text?))) {
            self.emit(
                Node::Task(id),
                payload::FeedbackQueued { source, text, reason: None, own: None, passing: false, voice: Voice::Person },
            )?;
        }
        for Finding { source, text } in task.findings {
            let queued =
                payload::FeedbackQueued { source, text, reason: None, own: None, passing: false, voice: Voice::Hook };
            self.emit(Node::Task(id), queued)?;
        }
        Ok(())
    }

    /// Takes the next task, or the one that the session had. Without a task the session ends.
    pub(super) fn take_task(&mut self, session: &Session) -> Result<(), Refusal> {
        let mut others = None;
        let next = match (session.work, session.task) {
            (Work::Graph, _) => {
                self.expire_leases()?;
                let (agent, left) = (Some(session.agent.as_str()), &session.left);
                self.rules.types.next_for(&self.draft, agent, left, session.grounds).or_else(
                    |refusal| match refusal {
                        Refusal::NothingForAgent { .. } => {
                            others = Some(refusal.to_string());
                            Ok(None)
                        }
                        other => Err(other),
                    },
                )?
            }
            (Work::Given, Some(id)) => Some(id).filter(|_| self.may_be_taken_again(session, id)),
            (Work::Given, None) => None,
        };
        let closing = match (next, session.exhausted()) {
            (Some(id), None) => return self.hand_to(session, id),
            (Some(_), Some(closing)) => self.besides_the_lost(session, closing)?,
            (None, _) => match session.work {
                Work::Graph => {
                    let closing = session.nothing_left();
                    self.besides_the_lost(session, Closing { reason: closing.reason.or(others), ..closing })?
                }
                Work::Given => self.taken_away(session)?,
            },
        };
        self.end_session(session, closing)
    }

    /// Ends a session that has lost its task. The work counts as done only if the task is completed, by any caller.
    pub(super) fn end_without(&mut self, session: &Session, decided: Closing) -> Result<(), Refusal> {
        let task = session.task.map(|id| self.task(id)).transpose()?;
        let by_others = |task: &Task| session.lost.iter().any(|lost| lost.task == task.id && lost.epoch < task.epoch);
        let completed = task.as_ref().is_some_and(|task| task.state == State::Completed && !by_others(task));
        // The session gave the task back by itself; a task that others gave back is among the lost ones.
        let is_back = task.is_some_and(|task| matches!(task.state, State::Created | State::Ready));
        let is_given_back = |asked: &&Closing| asked.ending == Ending::Error && is_back && !session.has_lost_its_task();
        let closing = match session.stopping.as_ref().filter(is_given_back) {
            Some(asked) => asked.clone(),
            None if completed => decided,
            None => self.taken_away(session)?,
        };
        self.end_session(session, closing)
    }

    fn may_be_taken_again(&self, session: &Session, id: TaskId) -> bool {
        let is_fit = |task: &Task| task.state.is_claimable() && self.rules.types.admit(task, &session.agent).is_ok();
        self.task(id).is_ok_and(|task| is_fit(&task))
    }

    /// Returns why a session cannot continue with its task.
    fn taken_away(&self, session: &Session) -> Result<Closing, Refusal> {
        let task = session.task.map(|id| self.task(id)).transpose()?;
        let not_admitted = |task: &Task| match task.state.is_claimable() {
            true => self.rules.types.admit(task, &session.agent).err(),
            false => None,
        };
        if let Some(refusal) = task.as_ref().and_then(not_admitted) {
            return Ok(Closing { ending: Ending::Cancelled, reason: Some(refusal.to_string()) });
        }
        let reason = match task {
            Some(task) => how_it_was_lost(session, &task),
            None => "there is nothing to work on".to_owned(),
        };
        Ok(Closing { ending: Ending::Cancelled, reason: Some(reason) })
    }

    /// Returns the end of a session on the graph. It is no success if one of its tasks was taken from it.
    fn besides_the_lost(&self, session: &Session, closing: Closing) -> Result<Closing, Refusal> {
        let mut lost = Vec::new();
        for one in session.lost.iter().filter(|_| session.work == Work::Graph) {
            lost.push(how_it_was_lost(session, &self.task(one.task)?));
        }
        Ok(match closing.ending {
            _ if lost.is_empty() => closing,
            Ending::Completed => Closing { ending: Ending::Cancelled, reason: Some(lost.join("; ")) },
            ending => {
                Closing { ending, reason: Some(closing.reason.into_iter().chain(lost).collect::<Vec<_>>().join("; ")) }
            }
        })
    }

    /// Leaves the task that the session holds.
    pub(super) fn leave_task(&mut self, session: &Session, leave: Leave) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        let event: Event = match leave {
            Leave::Completed => {
                let task = self.task(id)?;
                let claim = task.claim.filter(|claim| claim.run.session == session.name);
                let claim = claim.or(task.stalled.and_then(|stalled| stalled.claim));
                let (result, artifacts) = claim.map(|claim| (claim.result, claim.artifacts)).unwrap_or_default();
                return self.finish_task(id, payload::TaskCompleted { result, artifacts });
            }
            Leave::Blocked(reason) => return self.leave_blocked(session, reason, &[]),
            Leave::Unfinished(reason) => payload::TaskNeedsContinuation { reason: fit(reason) }.into(),
            Leave::Released(reason) => payload::TaskReleased { reason: fit(reason) }.into(),
        };
        self.emit(Node::Task(id), event)?;
        self.settle(id)
    }

    /// Leaves the task that the session holds to a person, who is told about the commits.
    pub(super) fn leave_blocked(
        &mut self,
        session: &Session,
        reason: String,
        commits: &[String],
    ) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        // Hooks that a person has waived would block again.
        let blocking = session.blocking.iter().map(|blocker| &blocker.hook);
        let hooks = session.overlooked.iter().chain(blocking).cloned().collect();
        let (reason, commits) = (fit(reason), commits.to_vec());
        self.emit(Node::Task(id), Blocked { reason, required_knowledge: vec![], by: None, hooks, commits })?;
        self.settle(id)
    }
}

fn fit(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(Limits::REASON));
    reason
}

/// Returns who has the task that a session lost.
fn how_it_was_lost(session: &Session, task: &Task) -> String {
    match (session.lost.iter().find(|lost| lost.task == task.id), &task.lease) {
        (Some(lost), _) => lost.in_words(task),
        (None, Some(lease)) => format!("{} was taken by {} (epoch {})", task.id, lease.holder(), lease.epoch),
        (None, None) => format!("{} is {} now, and not by this session", task.id, task.state),
    }
}
