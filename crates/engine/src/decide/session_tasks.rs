//! Assignment of tasks to a session, and the ways in which a session leaves its task.
//!
//! Invariants:
//! - A session takes only a task that is claimable at that moment, in the commit that decides it: two sessions never work on
//!   the same task.
//! - It takes the next task after the pure hooks of this commit have run: they may have made one ready.

use serde_json::Value;

use super::DecisionContext;
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::command::{NewSession, NewTask};
use crate::delivery::GateFinding;
use crate::log::event::{Event, EventSubject, payload};
use crate::log::id::{Epoch, TaskId};
use crate::session::message_author::MessageAuthor;
use crate::session::{Session, SessionEnd, SessionEndKind, TaskExit, WorkSource};
use crate::task::{BlockDetails, Task, TaskState};

impl DecisionContext<'_, '_> {
    /// Assigns its first task to a session that has just started.
    pub(super) fn assign_first_task(&mut self, new: &NewSession) -> Result<(), Refusal> {
        self.session_scope = Some((new.name.clone(), None));
        let id = match (new.task, &new.goal) {
            (Some(id), _) => {
                let task = self.require_free_task(id)?;
                self.rules.types.check_agent_allowed(&task, &new.agent)?;
                task.id
            }
            (None, Some(goal)) => self.create_task(&NewTask { goal: goal.clone(), ..NewTask::default() })?,
            (None, None) => return Ok(()),
        };
        let session = self.require_session(&new.name)?;
        self.assign_task_to_session(&session, id)
    }

    /// Returns the task if a session may take it.
    fn require_free_task(&mut self, id: TaskId) -> Result<Task, Refusal> {
        self.expire_lease_if_due(id)?;
        if let Some(lease) = self.require_task(id)?.lease {
            return Err(Refusal::Held { id, lease: Box::new(lease) });
        }
        self.require_claimable_task(id)
    }

    fn assign_task_to_session(&mut self, session: &Session, id: TaskId) -> Result<(), Refusal> {
        let task = self.require_task(id)?;
        let epoch = Epoch(task.epoch.0 + 1);
        let (owner, session) = (session.owner.clone(), Some(session.name.clone()));
        let report = self.rules.types.requires_report(&task);
        self.emit_event(EventSubject::Task(id), payload::TaskClaimed { owner, epoch, until: None, session, report })?;
        self.emit_event(EventSubject::Task(id), payload::TaskStarted { context: Value::Null })?;
        // The agent first receives a person's answer since the last work on the task.
        if let Some((source, text)) = task.answer.and_then(|answer| Some((answer.by, answer.text?))) {
            self.emit_event(
                EventSubject::Task(id),
                payload::FeedbackQueued {
                    source,
                    text,
                    reason: None,
                    own: None,
                    passing: false,
                    voice: MessageAuthor::Person,
                },
            )?;
        }
        for GateFinding { source, text } in task.findings {
            let queued = payload::FeedbackQueued {
                source,
                text,
                reason: None,
                own: None,
                passing: false,
                voice: MessageAuthor::Hook,
            };
            self.emit_event(EventSubject::Task(id), queued)?;
        }
        Ok(())
    }

    /// Takes the next task, or the one that the session had. Without a task the session ends.
    pub(super) fn take_next_task(&mut self, session: &Session) -> Result<(), Refusal> {
        let mut others = None;
        let next = match (session.work, session.task) {
            (WorkSource::Graph, _) => {
                self.expire_due_leases()?;
                let (agent, left) = (Some(session.agent.as_str()), &session.released_tasks);
                self.rules.types.next_task_for(&self.draft, agent, left, session.workspace_mode).or_else(|refusal| {
                    match refusal {
                        Refusal::NothingForAgent { .. } => {
                            others = Some(refusal.to_string());
                            Ok(None)
                        }
                        other => Err(other),
                    }
                })?
            }
            (WorkSource::Given, Some(id)) => Some(id).filter(|_| self.can_retake_task(session, id)),
            (WorkSource::Given, None) => None,
        };
        let closing = match (next, session.find_exhausted_limit()) {
            (Some(id), None) => return self.assign_task_to_session(session, id),
            (Some(_), Some(closing)) => self.include_lost_tasks(session, closing)?,
            (None, _) => match session.work {
                WorkSource::Graph => {
                    let closing = session.end_without_open_tasks();
                    self.include_lost_tasks(session, SessionEnd { reason: closing.reason.or(others), ..closing })?
                }
                WorkSource::Given => self.closing_for_taken_task(session)?,
            },
        };
        self.end_session(session, closing)
    }

    /// Ends a session that has lost its task. The work counts as done only if the task is completed, by any caller.
    pub(super) fn end_session_without_task(&mut self, session: &Session, decided: SessionEnd) -> Result<(), Refusal> {
        let task = session.task.map(|id| self.require_task(id)).transpose()?;
        let by_others =
            |task: &Task| session.lost_tasks.iter().any(|lost| lost.task == task.id && lost.epoch < task.epoch);
        let completed = task.as_ref().is_some_and(|task| task.state == TaskState::Completed && !by_others(task));
        // The session gave the task back by itself; a task that others gave back is among the lost ones.
        let is_back = task.is_some_and(|task| matches!(task.state, TaskState::Created | TaskState::Ready));
        let is_given_back =
            |asked: &&SessionEnd| asked.ending == SessionEndKind::Error && is_back && !session.has_lost_task();
        let closing = match session.stopping.as_ref().filter(is_given_back) {
            Some(asked) => asked.clone(),
            None if completed => decided,
            None => self.closing_for_taken_task(session)?,
        };
        self.end_session(session, closing)
    }

    fn can_retake_task(&self, session: &Session, id: TaskId) -> bool {
        let is_fit = |task: &Task| {
            task.state.is_claimable() && self.rules.types.check_agent_allowed(task, &session.agent).is_ok()
        };
        self.require_task(id).is_ok_and(|task| is_fit(&task))
    }

    /// Returns why a session cannot continue with its task.
    fn closing_for_taken_task(&self, session: &Session) -> Result<SessionEnd, Refusal> {
        let task = session.task.map(|id| self.require_task(id)).transpose()?;
        let not_admitted = |task: &Task| match task.state.is_claimable() {
            true => self.rules.types.check_agent_allowed(task, &session.agent).err(),
            false => None,
        };
        if let Some(refusal) = task.as_ref().and_then(not_admitted) {
            return Ok(SessionEnd { ending: SessionEndKind::Cancelled, reason: Some(refusal.to_string()) });
        }
        let reason = match task {
            Some(task) => describe_lost_task(session, &task),
            None => "there is no task to work on".to_owned(),
        };
        Ok(SessionEnd { ending: SessionEndKind::Cancelled, reason: Some(reason) })
    }

    /// Returns the end of a session on the graph. It is no success if one of its tasks was taken from it.
    fn include_lost_tasks(&self, session: &Session, closing: SessionEnd) -> Result<SessionEnd, Refusal> {
        let mut lost = Vec::new();
        for one in session.lost_tasks.iter().filter(|_| session.work == WorkSource::Graph) {
            lost.push(describe_lost_task(session, &self.require_task(one.task)?));
        }
        Ok(match closing.ending {
            _ if lost.is_empty() => closing,
            SessionEndKind::Completed => {
                SessionEnd { ending: SessionEndKind::Cancelled, reason: Some(lost.join("; ")) }
            }
            ending => SessionEnd {
                ending,
                reason: Some(closing.reason.into_iter().chain(lost).collect::<Vec<_>>().join("; ")),
            },
        })
    }

    /// Leaves the task that the session holds.
    pub(super) fn leave_task(&mut self, session: &Session, leave: TaskExit) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        let event: Event = match leave {
            TaskExit::Completed => {
                let task = self.require_task(id)?;
                let claim = task.claim.filter(|claim| claim.run.session == session.name);
                let claim = claim.or(task.stalled.and_then(|stalled| stalled.claim));
                let (result, artifacts) = claim.map(|claim| (claim.result, claim.artifacts)).unwrap_or_default();
                return self.finish_task(id, payload::TaskCompleted { result, artifacts });
            }
            TaskExit::Blocked(reason) => return self.leave_task_blocked(session, reason, &[]),
            TaskExit::Unfinished(reason) => payload::TaskNeedsContinuation { reason: truncate_reason(reason) }.into(),
            TaskExit::Released(reason) => payload::TaskReleased { reason: truncate_reason(reason) }.into(),
        };
        self.emit_event(EventSubject::Task(id), event)?;
        self.settle_task_state(id)
    }

    /// Leaves the task that the session holds to a person, who is told about the commits.
    pub(super) fn leave_task_blocked(
        &mut self,
        session: &Session,
        reason: String,
        commits: &[String],
    ) -> Result<(), Refusal> {
        let Some(id) = session.task else { return Ok(()) };
        // Hooks that a person has waived would block again.
        let blocking = session.blocking.iter().map(|blocker| &blocker.hook);
        let hooks = session.ignored_blocks.iter().chain(blocking).cloned().collect();
        let (reason, commits) = (truncate_reason(reason), commits.to_vec());
        self.emit_event(
            EventSubject::Task(id),
            BlockDetails { reason, required_knowledge: vec![], by: None, hooks, commits },
        )?;
        self.settle_task_state(id)
    }
}

fn truncate_reason(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(EngineLimits::REASON_BYTES));
    reason
}

/// Returns who has the task that a session lost.
fn describe_lost_task(session: &Session, task: &Task) -> String {
    match (session.lost_tasks.iter().find(|lost| lost.task == task.id), &task.lease) {
        (Some(lost), _) => lost.describe_loss(task),
        (None, Some(lease)) => format!("{} was taken by {} (epoch {})", task.id, lease.holder_name(), lease.epoch),
        (None, None) => format!("{} is {} now, changed outside this session", task.id, task.state),
    }
}
