//! Commands of people: about a session that another process runs, and about a task that waits for a person.
//!
//! Invariants:
//! - About a session they record the request and decide nothing further. The session's owner decides what follows, hooks
//!   included.
//! - No agent inside a run answers for a person, and no agent ends a session: neither its own nor another.

use super::{Causing, Deciding};
use crate::command::limits::{Limits, check_bytes, check_list, check_text};
use crate::command::refusal::Refusal;
use crate::delivery::ChangeRef;
use crate::effects::outbox::EffectKind;
use crate::log::event::{Node, payload};
use crate::log::id::{SessionName, TaskId};
use crate::session::voice::Voice;
use crate::session::{Ending, GateAnswer, Hold, Phase, Session};
use crate::task::resolution::Resolution;
use crate::task::{State, Task};
use crate::view::View;

impl Deciding<'_, '_> {
    pub(super) fn cancel_session(&mut self, name: &SessionName, reason: Option<&str>) -> Result<(), Refusal> {
        if self.origin.run.is_some() && self.via.is_none() {
            return Err(Refusal::NoPerson { what: "cancel a session" });
        }
        check_bytes("the reason", reason.unwrap_or_default(), Limits::REASON)?;
        let session = self.open_session(name)?;
        if session.stopping.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is about to end" });
        }
        let reason = reason.map(str::to_owned);
        self.emit_session(&session, payload::SessionStopping { ending: Ending::Cancelled, reason, commits: vec![] })
    }

    pub(super) fn say(&mut self, name: &SessionName, text: &str) -> Result<(), Refusal> {
        check_text("the message", text, Limits::FEEDBACK)?;
        let session = self.open_session(name)?;
        let (voice, source) = self.speaker()?;
        self.emit_session(&session, payload::MessageAdded { source, text: text.to_owned(), voice })?;
        self.cause = Some(Causing::Entry(self.entries.len() - 1));
        self.tell(&session, text.to_owned())
    }

    fn tell(&mut self, session: &Session, text: String) -> Result<(), Refusal> {
        let (voice, source) = self.speaker()?;
        self.emit_session(
            session,
            payload::FeedbackQueued { source, text, reason: None, own: None, passing: false, voice },
        )
    }

    /// Reopens a task and tells the agent why.
    pub(super) fn reopen_because(&mut self, id: TaskId, reason: &str) -> Result<(), Refusal> {
        self.reopen(id, reason)?;
        self.tell_task(id, &format!("The task was reopened: {reason}"))
    }

    /// Queues feedback about a task, in the name of the caller. The session that holds the task receives it, else the next
    /// one that takes the task up.
    pub(super) fn tell_task(&mut self, id: TaskId, text: &str) -> Result<(), Refusal> {
        check_text("the feedback", text, Limits::FEEDBACK)?;
        let holder = self.task(id)?.lease.and_then(|lease| lease.session);
        if let Some(name) = holder {
            let session = self.open_session(&name)?;
            return self.tell(&session, text.to_owned());
        }
        let (voice, source) = self.speaker()?;
        let queued =
            payload::FeedbackQueued { source, text: text.to_owned(), reason: None, own: None, passing: false, voice };
        self.emit_in(Node::Task(id), None, None, queued.into()).map(drop)
    }

    /// Tells the agent that holds the task that a person has changed it. An earlier claim is about the former text.
    pub(super) fn tell_of_change(&mut self, id: TaskId) -> Result<(), Refusal> {
        let person = self.origin.run.is_none() && self.via.is_none() && self.depth <= self.base;
        let task = self.task(id)?;
        let Some(name) = task.lease.as_ref().and_then(|lease| lease.session.clone()).filter(|_| person) else {
            return Ok(());
        };
        let mut text = format!("The task was changed while you worked on it. It is now:\n\n{}", task.content());
        for deliverable in &task.deliverables {
            text.push_str(&format!("\n- {deliverable}"));
        }
        text.truncate(text.floor_char_boundary(Limits::FEEDBACK));
        let session = self.open_session(&name)?;
        self.tell(&session, text)
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
        let session = self.session(name)?;
        match &session.phase {
            Phase::Asking(..) if session.hold == Hold::Left => refuse("has lost its task, and asks no more"),
            Phase::Asking(run, _, None) if session.stopping.is_none() => {
                let run = run.clone();
                self.emit_session(&session, payload::GateAnswered { run, answer })?;
                text.map_or(Ok(()), |text| self.say(name, text))
            }
            _ => refuse("asks nothing"),
        }
    }

    /// Answers a task that waits for a person. The text stays with the task for the next session or person.
    pub(super) fn answer(
        &mut self,
        id: TaskId,
        answer: Resolution,
        text: Option<&str>,
        ignores: &[String],
    ) -> Result<(), Refusal> {
        if self.origin.run.is_some() || self.via.is_some() {
            return Err(Refusal::NoPerson { what: "answer" });
        }
        if let Some(text) = text {
            check_text("the answer", text, Limits::REASON)?;
        }
        check_list("a hook", ignores, Limits::LABELS, Limits::LABEL)?;
        let task = self.task(id)?;
        if answer == Resolution::Reject
            && let Some(session) = self.asking_about(&task)?
        {
            return self.reject(&session, id, text);
        }
        if !answer.answers(task.state) {
            return Err(Refusal::NotAsking { id, answer, state: task.state });
        }
        self.may_touch(&task)?;
        let reason = text.map(str::to_owned);
        let answered = payload::TaskAnswered { answer, text: reason.clone(), ignores: ignores.to_vec() };
        self.emit(Node::Task(id), answered)?;
        self.cause = Some(Causing::Entry(self.entries.len() - 1));
        let why = || reason.clone().unwrap_or_else(|| format!("a person says {answer}"));
        match (answer, task.state) {
            (Resolution::Approve, _) => self.complete(id, text, &[]),
            (Resolution::Reject, _) => {
                self.fail(id, &why())?;
                self.tell_of_rejection(id, text)
            }
            (_, State::Blocked) => self.unblock(id),
            (_, State::Failed) => self.reopen(id, &why()),
            _ => self.settle(id),
        }
    }

    /// Records approved work as a change, so that it can be reviewed and merged.
    pub(super) fn show_work(
        &mut self,
        id: TaskId,
        answer: Resolution,
        work: Option<&ChangeRef>,
    ) -> Result<(), Refusal> {
        let Some(work) = work.filter(|_| answer == Resolution::Approve) else { return Ok(()) };
        let texts = [&work.branch, &work.base, &work.url];
        texts.into_iter().flatten().try_for_each(|text| check_text("a change", text, Limits::DELIVERABLE))?;
        let open = self.task(id)?.change.is_some_and(|change| change.merged.is_none());
        if open { Ok(()) } else { self.emit(Node::Task(id), work.clone()).map(drop) }
    }

    /// Returns the session that holds a task and asks a person about it.
    fn asking_about(&self, task: &Task) -> Result<Option<Session>, Refusal> {
        let Some(name) = task.lease.as_ref().and_then(|lease| lease.session.as_ref()) else { return Ok(None) };
        let asks = |session: &Session| matches!(session.phase, Phase::Asking(_, _, None)) && session.stopping.is_none();
        Ok(self.draft.session(name)?.filter(asks))
    }

    /// Fails the task that a session asks about. The session has nothing left to do, and its owner ends it.
    fn reject(&mut self, session: &Session, id: TaskId, text: Option<&str>) -> Result<(), Refusal> {
        let reason = text.map_or_else(|| format!("a person says {}", Resolution::Reject), str::to_owned);
        let answered =
            payload::TaskAnswered { answer: Resolution::Reject, text: text.map(str::to_owned), ignores: vec![] };
        self.emit(Node::Task(id), answered)?;
        self.cause = Some(Causing::Entry(self.entries.len() - 1));
        let ended = match text {
            Some(words) => format!("a person has rejected {id}: {words}"),
            None => format!("a person has rejected {id}"),
        };
        let ended = ended[..ended.floor_char_boundary(Limits::REASON)].to_owned();
        self.emit_session(
            session,
            payload::SessionStopping { ending: Ending::Cancelled, reason: Some(ended), commits: vec![] },
        )?;
        self.emit(Node::Task(id), payload::TaskFailed { reason })?;
        self.block_waiters(id, &format!("its dependency {id} failed"))?;
        self.tell_of_rejection(id, text)
    }

    /// Keeps the reason of a rejection for the next session of the task.
    fn tell_of_rejection(&mut self, id: TaskId, text: Option<&str>) -> Result<(), Refusal> {
        text.map_or(Ok(()), |text| self.tell_task(id, &format!("The work was rejected: {text}")))
    }

    /// Returns the author of a message. A caller inside a run is never a person, whatever name it gives.
    fn speaker(&self) -> Result<(Voice, String), Refusal> {
        if let Some(via) = self.via {
            let effect = self.draft.effect(via)?.ok_or(Refusal::UnknownEffect(via))?;
            return match effect.kind {
                EffectKind::Hook(hook) => Ok((Voice::Hook, hook.hook)),
                EffectKind::Turn { .. } => Err(Refusal::IllegalEffect { effect: via, why: "is a turn, not a hook" }),
            };
        }
        Ok(match &self.origin.run {
            Some(run) => (Voice::Agent, format!("the agent of session {}", run.session)),
            None => (Voice::Person, self.origin.by.clone()),
        })
    }

    fn open_session(&self, name: &SessionName) -> Result<Session, Refusal> {
        let session = self.session(name)?;
        match session.ended() {
            Some(_) => Err(Refusal::IllegalSession { name: name.clone(), why: "has ended" }),
            None => Ok(session),
        }
    }
}
