//! Commands about the turn that runs: what the agent answered, or why it did not.

use super::{Causing, Deciding};
use crate::command::Answer;
use crate::event::payload;
use crate::id::RunId;
use crate::limits::{Limits, check_bytes, check_text};
use crate::promise::Promise;
use crate::refusal::Refusal;
use crate::session::{Opening, Purpose, Session, Turn};

impl Deciding<'_, '_> {
    pub(super) fn open_conversation(
        &mut self,
        run: &RunId,
        conversation: &str,
        anew: Option<&str>,
    ) -> Result<(), Refusal> {
        check_text("the conversation", conversation, Limits::CONVERSATION)?;
        check_bytes("the reason", anew.unwrap_or_default(), Limits::REASON)?;
        let (session, _) = self.reported(run)?;
        let opening = match (&session.conversation, anew) {
            (None, _) => Opening::New,
            (Some(before), None) if before == conversation => Opening::Loaded,
            (Some(_), _) => Opening::Anew,
        };
        let reason = anew.filter(|_| opening == Opening::Anew).map(str::to_owned);
        let (run, conversation) = (run.clone(), conversation.to_owned());
        self.emit_session(&session, payload::ConversationOpened { run, conversation, opening, reason })
    }

    pub(super) fn finish_turn(&mut self, run: &RunId, answer: &Answer) -> Result<(), Refusal> {
        check_bytes("the output", &answer.output, Limits::OUTPUT)?;
        check_bytes("the record", answer.record.as_deref().unwrap_or_default(), Limits::REASON)?;
        let (session, turn) = self.reported(run)?;
        let (run, Answer { output, promise, leaky, record }) = (run.clone(), answer.clone());
        // What was said by a command counts like the words at the end; that the agent is stuck counts for more.
        let promise = promise.or_else(|| turn.claimed.then_some(Promise::Complete));
        self.claims = promise;
        if !turn.feedback.is_empty() {
            let feedback = turn.feedback.iter().map(|piece| piece.at).collect();
            self.emit_session(&session, payload::FeedbackDelivered { run: run.clone(), feedback })?;
        }
        match turn.purpose {
            Purpose::Delivery(_) | Purpose::Recovery => {
                self.emit_session(&session, payload::DeliveryFinished { run, output })?
            }
            Purpose::Work | Purpose::SendBack => {
                self.emit_session(&session, payload::TurnFinished { run: run.clone(), output, leaky, record })?;
                if let Some(promise) = promise {
                    self.emit_session(&session, payload::PromiseDetected { run, promise })?;
                }
            }
        }
        self.advance(&session.name)
    }

    pub(super) fn fail_turn(&mut self, run: &RunId, error: &str) -> Result<(), Refusal> {
        check_bytes("the error", error, Limits::REASON)?;
        let (session, turn) = self.reported(run)?;
        let (run, error) = (run.clone(), error.to_owned());
        match turn.purpose {
            Purpose::Delivery(_) | Purpose::Recovery => {
                self.emit_session(&session, payload::DeliveryFailed { run, error })?
            }
            Purpose::Work | Purpose::SendBack => {
                self.emit_session(&session, payload::IterationFailed { run, error })?;
            }
        }
        self.advance(&session.name)
    }

    pub(super) fn interrupt_turn(&mut self, run: &RunId) -> Result<(), Refusal> {
        let (session, turn) = self.reported(run)?;
        let run = run.clone();
        match turn.purpose {
            Purpose::Delivery(_) | Purpose::Recovery => {
                self.emit_session(&session, payload::DeliveryInterrupted { run })?
            }
            Purpose::Work | Purpose::SendBack => {
                self.emit_session(&session, payload::IterationInterrupted { run })?;
            }
        }
        self.advance(&session.name)
    }

    /// A turn whose end is told. It is what led to everything that follows.
    fn reported(&mut self, run: &RunId) -> Result<(Session, Turn), Refusal> {
        let (session, turn) = self.turn(run)?;
        self.cause = Some(Causing::At(turn.debt.seq));
        Ok((session, turn))
    }

    /// The turn that the command comes from. One that is over has no say any more.
    pub(super) fn running_turn(&self) -> Result<Option<RunId>, Refusal> {
        let Some(run) = self.turn.clone().filter(|_| self.depth <= self.base) else { return Ok(None) };
        self.turn(&run).map(|_| Some(run))
    }

    /// A turn that runs, and its session.
    fn turn(&self, run: &RunId) -> Result<(Session, Turn), Refusal> {
        let session = self.session(&run.session)?;
        match session.turn() {
            Some(turn) if turn.run == *run => Ok((session.clone(), turn.clone())),
            _ => Err(Refusal::RunEnded(run.clone())),
        }
    }
}
