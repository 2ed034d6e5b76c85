//! Commands of people: about a session that another process runs, and about a task that waits for a person.
//!
//! Invariants:
//! - About a session they record the request and decide nothing further. The session's owner decides what follows, hooks
//!   included.
//! - No agent inside a run answers for a person, and no agent ends a session: neither its own nor another.

use super::{CauseRef, DecisionContext};
use crate::command::limits::{EngineLimits, check_nonblank_text, check_text_list, check_text_size};
use crate::command::refusal::Refusal;
use crate::delivery::ChangeRef;
use crate::effects::outbox::EffectKind;
use crate::log::event::{EventSubject, payload};
use crate::log::id::{SessionName, TaskId};
use crate::session::message_author::MessageAuthor;
use crate::session::{GateAnswer, Session, SessionEndKind, SessionPhase, TaskHold};
use crate::task::resolution::TaskResolution;
use crate::task::{Task, TaskState};
use crate::view::StateView;

impl DecisionContext<'_, '_> {
    pub(super) fn cancel_session(&mut self, name: &SessionName, reason: Option<&str>) -> Result<(), Refusal> {
        if self.origin.run.is_some() && self.via.is_none() {
            return Err(Refusal::NoPerson { what: "cancel a session" });
        }
        check_text_size("the reason", reason.unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        let session = self.require_open_session(name)?;
        if session.stopping.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is about to end" });
        }
        let reason = reason.map(str::to_owned);
        self.emit_session_event(
            &session,
            payload::SessionStopping { ending: SessionEndKind::Cancelled, reason, commits: vec![] },
        )
    }

    pub(super) fn send_message(&mut self, name: &SessionName, text: &str) -> Result<(), Refusal> {
        check_nonblank_text("the message", text, EngineLimits::FEEDBACK_BYTES)?;
        let session = self.require_open_session(name)?;
        let (voice, source) = self.message_author()?;
        self.emit_session_event(&session, payload::MessageAdded { source, text: text.to_owned(), voice })?;
        self.cause = Some(CauseRef::Entry(self.entries.len() - 1));
        self.queue_feedback(&session, text.to_owned())
    }

    fn queue_feedback(&mut self, session: &Session, text: String) -> Result<(), Refusal> {
        let (voice, source) = self.message_author()?;
        self.emit_session_event(
            session,
            payload::FeedbackQueued { source, text, reason: None, own: None, passing: false, voice },
        )
    }

    /// Reopens a task and tells the agent why.
    pub(super) fn reopen_with_reason(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        self.reopen_task(id, reason)?;
        self.queue_task_feedback(id, &format!("The task was reopened: {reason}"))
    }

    /// Queues feedback about a task, in the name of the caller. The session that holds the task receives it, else the next
    /// one that takes the task up.
    pub(super) fn queue_task_feedback(&mut self, id: TaskId, text: &str) -> Result<(), Refusal> {
        check_nonblank_text("the feedback", text, EngineLimits::FEEDBACK_BYTES)?;
        let holder = self.require_task(id)?.lease.and_then(|lease| lease.session);
        if let Some(name) = holder {
            let session = self.require_open_session(&name)?;
            return self.queue_feedback(&session, text.to_owned());
        }
        let (voice, source) = self.message_author()?;
        let queued =
            payload::FeedbackQueued { source, text: text.to_owned(), reason: None, own: None, passing: false, voice };
        self.emit_event_in(EventSubject::Task(id), None, None, queued.into()).map(drop)
    }

    /// Tells the agent that holds the task that a person has changed it. An earlier claim is about the former text.
    pub(super) fn announce_task_change(&mut self, id: TaskId) -> Result<(), Refusal> {
        let person = self.origin.run.is_none() && self.via.is_none() && self.depth <= self.command_depth;
        let task = self.require_task(id)?;
        let Some(name) = task.lease.as_ref().and_then(|lease| lease.session.clone()).filter(|_| person) else {
            return Ok(());
        };
        let mut text = format!("The task was changed while you worked on it. It is now:\n\n{}", task.goal_and_body());
        for deliverable in &task.deliverables {
            text.push_str(&format!("\n- {deliverable}"));
        }
        text.truncate(text.floor_char_boundary(EngineLimits::FEEDBACK_BYTES));
        let session = self.require_open_session(&name)?;
        self.queue_feedback(&session, text)
    }

    /// Answers a session whose stop hooks keep blocking, optionally with a message for the agent.
    pub(super) fn answer_gate(
        &mut self,
        name: &SessionName,
        answer: GateAnswer,
        text: Option<&str>,
    ) -> Result<(), Refusal> {
        let refuse = |why| Err(Refusal::IllegalSession { name: name.clone(), why });
        if self.origin.run.is_some() || self.via.is_some() {
            return refuse("asks a person, not an agent or a hook");
        }
        let session = self.require_session(name)?;
        match &session.phase {
            SessionPhase::Asking(..) if session.hold == TaskHold::Left => {
                refuse("has lost its task, and no longer asks a question")
            }
            SessionPhase::Asking(run, _, None) if session.stopping.is_none() => {
                let run = run.clone();
                self.emit_session_event(&session, payload::GateAnswered { run, answer })?;
                text.map_or(Ok(()), |text| self.send_message(name, text))
            }
            _ => refuse("asks no question"),
        }
    }

    /// Answers a task that waits for a person. The text stays with the task for the next session or person.
    pub(super) fn answer_task(
        &mut self,
        id: TaskId,
        answer: TaskResolution,
        text: Option<&str>,
        ignores: &[String],
    ) -> Result<(), Refusal> {
        if self.origin.run.is_some() || self.via.is_some() {
            return Err(Refusal::NoPerson { what: "answer" });
        }
        if let Some(text) = text {
            check_nonblank_text("the answer", text, EngineLimits::REASON_BYTES)?;
        }
        check_text_list("a hook", ignores, EngineLimits::LABEL_COUNT, EngineLimits::LABEL_BYTES)?;
        let task = self.require_task(id)?;
        if answer == TaskResolution::Reject
            && let Some(session) = self.find_asking_session(&task)?
        {
            return self.reject_held_task(&session, id, text);
        }
        if !answer.applies_to_state(task.state) {
            return Err(Refusal::NotAsking { id, answer, state: task.state });
        }
        self.check_lease_holder(&task)?;
        let reason = text.map(str::to_owned);
        let answered = payload::TaskAnswered { answer, text: reason.clone(), ignores: ignores.to_vec() };
        self.emit_event(EventSubject::Task(id), answered)?;
        self.cause = Some(CauseRef::Entry(self.entries.len() - 1));
        let why = || reason.clone().unwrap_or_else(|| format!("a person says {answer}"));
        match (answer, task.state) {
            (TaskResolution::Approve, _) => self.complete_task(id, text, &[]),
            (TaskResolution::Reject, _) => {
                self.fail_task(id, &why())?;
                self.queue_rejection(id, text)
            }
            (_, TaskState::Blocked) => self.unblock_task(id),
            (_, TaskState::Failed) => self.reopen_task(id, &why()),
            _ => self.settle_task_state(id),
        }
    }

    /// Records approved work as a change, so that it can be reviewed and merged.
    pub(super) fn record_approved_work(
        &mut self,
        id: TaskId,
        answer: TaskResolution,
        work: Option<&ChangeRef>,
    ) -> Result<(), Refusal> {
        let Some(work) = work.filter(|_| answer == TaskResolution::Approve) else { return Ok(()) };
        let texts = [&work.branch, &work.base, &work.url];
        texts
            .into_iter()
            .flatten()
            .try_for_each(|text| check_nonblank_text("a change", text, EngineLimits::DELIVERABLE_BYTES))?;
        let open = self.require_task(id)?.change.is_some_and(|change| change.merged.is_none());
        if open { Ok(()) } else { self.emit_event(EventSubject::Task(id), work.clone()).map(drop) }
    }

    /// Returns the session that holds a task and asks a person about it.
    fn find_asking_session(&self, task: &Task) -> Result<Option<Session>, Refusal> {
        let Some(name) = task.lease.as_ref().and_then(|lease| lease.session.as_ref()) else { return Ok(None) };
        let asks =
            |session: &Session| matches!(session.phase, SessionPhase::Asking(_, _, None)) && session.stopping.is_none();
        Ok(self.draft.find_session(name)?.filter(asks))
    }

    /// Fails the task that a session asks about. The session has nothing left to do, and its owner ends it.
    fn reject_held_task(&mut self, session: &Session, id: TaskId, text: Option<&str>) -> Result<(), Refusal> {
        let reason = text.map_or_else(|| format!("a person says {}", TaskResolution::Reject), str::to_owned);
        let answered =
            payload::TaskAnswered { answer: TaskResolution::Reject, text: text.map(str::to_owned), ignores: vec![] };
        self.emit_event(EventSubject::Task(id), answered)?;
        self.cause = Some(CauseRef::Entry(self.entries.len() - 1));
        let ended = match text {
            Some(words) => format!("a person has rejected {id}: {words}"),
            None => format!("a person has rejected {id}"),
        };
        let ended = ended[..ended.floor_char_boundary(EngineLimits::REASON_BYTES)].to_owned();
        self.emit_session_event(
            session,
            payload::SessionStopping { ending: SessionEndKind::Cancelled, reason: Some(ended), commits: vec![] },
        )?;
        self.emit_event(EventSubject::Task(id), payload::TaskFailed { reason })?;
        self.block_open_waiters(id, &format!("its dependency {id} failed"))?;
        self.queue_rejection(id, text)
    }

    /// Keeps the reason of a rejection for the next session of the task.
    fn queue_rejection(&mut self, id: TaskId, text: Option<&str>) -> Result<(), Refusal> {
        text.map_or(Ok(()), |text| self.queue_task_feedback(id, &format!("The work was rejected: {text}")))
    }

    /// Returns the author of a message. A caller inside a run is never a person, whatever name it gives.
    fn message_author(&self) -> Result<(MessageAuthor, String), Refusal> {
        if let Some(via) = self.via {
            let effect = self.draft.find_effect(via)?.ok_or(Refusal::UnknownEffect(via))?;
            return match effect.kind {
                EffectKind::Hook(hook) => Ok((MessageAuthor::Hook, hook.hook)),
                EffectKind::Turn { .. } => Err(Refusal::IllegalEffect { effect: via, why: "is a turn, not a hook" }),
            };
        }
        Ok(match &self.origin.run {
            Some(run) => (MessageAuthor::Agent, format!("the agent of session {}", run.session)),
            None => (MessageAuthor::Person, self.origin.by.clone()),
        })
    }

    fn require_open_session(&self, name: &SessionName) -> Result<Session, Refusal> {
        let session = self.require_session(name)?;
        match session.ending_kind() {
            Some(_) => Err(Refusal::IllegalSession { name: name.clone(), why: "has ended" }),
            None => Ok(session),
        }
    }
}
