//! Commands about the turn in progress: the agent's answer, or its failure.

use core::time::Duration;

use super::{Causing, Deciding};
use crate::command::limits::{Limits, check_bytes, check_text};
use crate::command::refusal::Refusal;
use crate::command::{Answer, Failing};
use crate::log::event::payload;
use crate::log::id::{RunId, SessionName};
use crate::log::time::Timestamp;
use crate::session::fault::Fault;
use crate::session::promise::{Promise, last_words};
use crate::session::usage::Usage;
use crate::session::voice::Voice;
use crate::session::{Completion, Opening, Purpose, Session, Turn, Work};

/// Waits after a rate limit: the shortest one, and the one for an agent that names no time. Both double with every rate
/// limit in a row.
const LEAST_WAIT: Duration = Duration::from_millis(250);
const USUAL_WAIT: Duration = Duration::from_mins(1);
const LONGEST_GUESS: Duration = Duration::from_mins(30);

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
        let (run, Answer { output, promise, uncounted, leaky, record, usage, tree }) = (run.clone(), answer.clone());
        // A claim by a command counts like one at the end of the output. A tag in the output that the agent is stuck
        // outweighs it.
        let promise = promise.or_else(|| turn.claimed.then_some(Promise::Complete));
        self.claims = promise;
        if !turn.feedback.is_empty() {
            let feedback = turn.feedback.iter().map(|piece| piece.at).collect();
            self.emit_session(&session, payload::FeedbackDelivered { run: run.clone(), feedback })?;
        }
        match turn.purpose {
            Purpose::UnjudgedDelivery(_) | Purpose::Recovery => {
                let plea = promise.and_then(Promise::plea).filter(|_| turn.purpose == Purpose::Recovery);
                let reason = plea.map(|plea| match last_words(&output) {
                    Some(words) => format!("{plea}: {words}"),
                    None => plea.to_owned(),
                });
                self.emit_session(&session, payload::DeliveryFinished { run, output, usage, leaky })?;
                // The work of this turn is not judged, but a request for a person counts.
                if let Some(reason) = reason {
                    self.heed_plea(&session.name, reason)?;
                }
            }
            Purpose::Work | Purpose::SendBack | Purpose::Delivery => {
                let unchanged = tree.is_some() && tree == session.watch.tree;
                let finished =
                    payload::TurnFinished { run: run.clone(), output, leaky, record, usage, tree, unchanged };
                self.emit_session(&session, finished)?;
                if let Some(promise) = promise {
                    self.emit_session(&session, payload::PromiseDetected { run, promise })?;
                } else if let Some(why) = uncounted.filter(|_| session.terms.completion == Completion::Promise) {
                    self.emit_session(&session, explanation(why))?;
                }
            }
        }
        self.advance(&session.name)
    }

    /// Leaves the task of a session to a person, unless the agent still has to receive a person's message.
    fn heed_plea(&mut self, name: &SessionName, reason: String) -> Result<(), Refusal> {
        let session = self.session(name)?;
        let has_work = session.epoch().is_some() || session.work == Work::Given;
        match has_work && session.stopping.is_none() && !session.is_unheard() {
            true => self.escalate(&session, reason, &[]),
            false => Ok(()),
        }
    }

    pub(super) fn fail_turn(&mut self, run: &RunId, failing: &Failing) -> Result<(), Refusal> {
        check_failing(failing)?;
        let (session, turn) = self.reported(run)?;
        let (run, Failing { error, fault, record, usage, leaky }) = (run.clone(), failing.clone());
        match turn.purpose {
            Purpose::UnjudgedDelivery(_) | Purpose::Recovery => {
                self.emit_session(&session, payload::DeliveryFailed { run, error, fault, usage, leaky })?
            }
            Purpose::Work | Purpose::SendBack | Purpose::Delivery => {
                let until = self.retry_at(&session, &turn, failing);
                let failed = payload::IterationFailed { run, error, fault, record, usage, leaky, until };
                self.emit_session(&session, failed)?;
            }
        }
        self.advance(&session.name)
    }

    /// Returns when the agent is retried after a failure, if it is. After the first full conversation there is no wait: the
    /// next one is new.
    fn retry_at(&self, session: &Session, turn: &Turn, failing: &Failing) -> Option<Timestamp> {
        let mut failed = session.clone();
        failed.count_failure(self.origin.at);
        failed.watch.spend(failing.usage);
        // A person's pending message gets one more iteration.
        failed.pending.extend(turn.feedback.clone());
        let is_first_full = failing.fault == Fault::OutOfTokens && failed.failures == 1;
        if is_first_full || failed.exhausted().is_some() {
            return None;
        }
        Some(after(self.origin.at, session.terms.wait_after(failed.failures)))
    }

    /// Postpones a turn for the time that the agent names, or for a growing time. A turn that only delivers feedback fails
    /// instead.
    pub(super) fn postpone_turn(
        &mut self,
        run: &RunId,
        failing: &Failing,
        until: Option<Timestamp>,
    ) -> Result<(), Refusal> {
        check_failing(failing)?;
        let (session, turn) = self.reported(run)?;
        if !turn.purpose.is_judged() {
            return self.fail_turn(run, failing);
        }
        let wait = match until {
            Some(until) => until.since(self.origin.at).max(doubled(LEAST_WAIT, session.watch.postponed)),
            None => doubled(USUAL_WAIT, session.watch.postponed).min(LONGEST_GUESS),
        };
        let (run, until) = (run.clone(), after(self.origin.at, wait.min(Limits::LONGEST_WAIT)));
        let Failing { error, record, usage, .. } = failing.clone();
        self.emit_session(&session, payload::IterationPostponed { run, error, until, record, usage })?;
        self.advance(&session.name)
    }

    pub(super) fn interrupt_turn(&mut self, run: &RunId, record: Option<String>, usage: Usage) -> Result<(), Refusal> {
        check_bytes("the record", record.as_deref().unwrap_or_default(), Limits::REASON)?;
        let (session, turn) = self.reported(run)?;
        let run = run.clone();
        match turn.purpose {
            Purpose::UnjudgedDelivery(_) | Purpose::Recovery => {
                self.emit_session(&session, payload::DeliveryInterrupted { run })?
            }
            Purpose::Work | Purpose::SendBack | Purpose::Delivery => {
                self.emit_session(&session, payload::IterationInterrupted { run, record, usage })?;
            }
        }
        self.advance(&session.name)
    }

    /// Returns the turn that is being reported. It is the cause of everything that follows.
    fn reported(&mut self, run: &RunId) -> Result<(Session, Turn), Refusal> {
        let (session, turn) = self.turn(run)?;
        self.cause = Some(Causing::At(turn.effect.seq));
        Ok((session, turn))
    }

    /// Returns the turn that the command comes from. A turn that is over is refused.
    pub(super) fn running_turn(&self) -> Result<Option<RunId>, Refusal> {
        let Some(run) = self.turn.clone().filter(|_| self.depth <= self.base) else { return Ok(None) };
        self.turn(&run).map(|_| Some(run))
    }

    /// Returns a turn in progress and its session.
    fn turn(&self, run: &RunId) -> Result<(Session, Turn), Refusal> {
        let session = self.session(&run.session)?;
        match session.turn() {
            Some(turn) if turn.run == *run => Ok((session.clone(), turn.clone())),
            _ => Err(Refusal::RunEnded(run.clone())),
        }
    }
}

/// Returns the feedback that tells the agent why its claim does not count.
fn explanation(why: &str) -> payload::FeedbackQueued {
    payload::FeedbackQueued {
        source: "windlass".to_owned(),
        text: why.to_owned(),
        voice: Voice::Windlass,
        reason: None,
        own: None,
        passing: false,
    }
}

fn check_failing(failing: &Failing) -> Result<(), Refusal> {
    check_bytes("the error", &failing.error, Limits::REASON)?;
    check_bytes("the record", failing.record.as_deref().unwrap_or_default(), Limits::REASON)
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.plus_millis(i64::try_from(wait.as_millis()).expect("a week is not long"))
}

fn doubled(first: Duration, times: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times))
}
