//! Commands about sessions and their turns.

use super::Deciding;
use crate::event::{Event, Node, payload};
use crate::id::{OwnerName, RunId, SessionName, TaskId};
use crate::limits::{Limits, check_bytes};
use crate::refusal::Refusal;
use crate::session::{Ending, Session};
use crate::task::State;
use crate::view::View;

impl Deciding<'_, '_> {
    pub(super) fn start_session(
        &mut self,
        name: &SessionName,
        task: Option<TaskId>,
        goal: Option<&str>,
        config: &str,
    ) -> Result<(), Refusal> {
        if self.draft.session(name)?.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "exists already" });
        }
        check_bytes("the goal", goal.unwrap_or_default(), Limits::GOAL)?;
        check_bytes("the configuration", config, Limits::CONFIG)?;
        if let Some(task) = task
            && self.task(task)?.state == State::Deleted
        {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "cannot work on a deleted task" });
        }
        let config = self.record_config(config)?;
        let started = payload::SessionStarted { config, goal: goal.map(str::to_owned) };
        let node = task.map_or(Node::System, Node::Task);
        self.emit_in(node, Some(name.clone()), None, started.into()).map(drop)
    }

    pub(super) fn end_session(
        &mut self,
        name: &SessionName,
        ending: Ending,
        reason: Option<&str>,
    ) -> Result<(), Refusal> {
        check_bytes("the reason", reason.unwrap_or_default(), Limits::REASON)?;
        let session = self.running_session(name)?;
        if session.turn.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is in the middle of a turn" });
        }
        let ended = payload::SessionEnded { ending, reason: reason.map(str::to_owned) };
        self.emit_session(&session, ended)
    }

    pub(super) fn start_iteration(&mut self, name: &SessionName, owner: &OwnerName, nonce: u64) -> Result<(), Refusal> {
        let mut session = self.running_session(name)?;
        if session.turn.is_some() {
            return Err(Refusal::IllegalSession { name: name.clone(), why: "is in the middle of a turn" });
        }
        session.iteration += 1;
        let run = RunId { session: name.clone(), iteration: session.iteration, nonce };
        self.emit_session(&session, payload::IterationStarted { run, owner: owner.clone() })
    }

    pub(super) fn fail_iteration(&mut self, run: &RunId, error: &str) -> Result<(), Refusal> {
        check_bytes("the error", error, Limits::REASON)?;
        self.end_iteration(run, payload::IterationFailed { run: run.clone(), error: error.to_owned() })
    }

    pub(super) fn end_iteration(&mut self, run: &RunId, event: impl Into<Event>) -> Result<(), Refusal> {
        let session = self.running_session(&run.session)?;
        match &session.turn {
            Some((turn, _)) if turn == run => self.emit_session(&session, event),
            _ => Err(Refusal::RunEnded(run.clone())),
        }
    }

    /// The turn that the command comes from. One that is over has no say any more.
    pub(super) fn running_turn(&self) -> Result<Option<RunId>, Refusal> {
        let Some(run) = self.turn.clone().filter(|_| self.depth == 0) else { return Ok(None) };
        match self.draft.session(&run.session)?.and_then(|session| session.turn) {
            Some((turn, _)) if turn == run => Ok(Some(run)),
            _ => Err(Refusal::RunEnded(run)),
        }
    }

    fn running_session(&self, name: &SessionName) -> Result<Session, Refusal> {
        let session = self.draft.session(name)?.ok_or_else(|| Refusal::UnknownSession(name.clone()))?;
        match session.ended {
            None => Ok(session),
            Some(_) => Err(Refusal::IllegalSession { name: name.clone(), why: "has ended" }),
        }
    }

    fn emit_session(&mut self, session: &Session, event: impl Into<Event>) -> Result<(), Refusal> {
        let node = session.task.map_or(Node::System, Node::Task);
        let iteration = Some(session.iteration).filter(|iteration| *iteration > 0);
        self.emit_in(node, Some(session.name.clone()), iteration, event.into()).map(drop)
    }
}
