//! Commands about the turn in progress: the agent's answer, or its failure.

use core::time::Duration;

use super::{CauseRef, DecisionContext};
use crate::command::limits::{EngineLimits, check_nonblank_text, check_text_size};
use crate::command::refusal::Refusal;
use crate::command::{TurnAnswer, TurnFailureReport};
use crate::log::event::payload;
use crate::log::id::{RunId, SessionName};
use crate::log::time::Timestamp;
use crate::session::message_author::MessageAuthor;
use crate::session::promise::{Promise, excerpt_last_words};
use crate::session::turn_failure::TurnFailure;
use crate::session::usage::AgentUsage;
use crate::session::{AgentTurn, CompletionMode, ConversationStart, Session, TurnPurpose, WorkSource};

/// Waits after a rate limit: the shortest one, and the one for an agent that names no time. Both double with every rate
/// limit in a row.
const MIN_POSTPONE_WAIT: Duration = Duration::from_millis(250);
const DEFAULT_POSTPONE_WAIT: Duration = Duration::from_mins(1);
const MAX_DEFAULT_WAIT: Duration = Duration::from_mins(30);

impl DecisionContext<'_, '_> {
    pub(super) fn open_conversation(
        &mut self,
        run: &RunId,
        conversation: &str,
        anew: Option<&str>,
    ) -> Result<(), Refusal> {
        check_nonblank_text("the conversation", conversation, EngineLimits::CONVERSATION_ID_BYTES)?;
        check_text_size("the reason", anew.unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        let (session, _) = self.require_reported_turn(run)?;
        let opening = match (&session.conversation, anew) {
            (None, _) => ConversationStart::New,
            (Some(before), None) if before == conversation => ConversationStart::Loaded,
            (Some(_), _) => ConversationStart::Anew,
        };
        let reason = anew.filter(|_| opening == ConversationStart::Anew).map(str::to_owned);
        let (run, conversation) = (run.clone(), conversation.to_owned());
        self.emit_session_event(&session, payload::ConversationOpened { run, conversation, opening, reason })
    }

    pub(super) fn finish_turn(&mut self, run: &RunId, answer: &TurnAnswer) -> Result<(), Refusal> {
        check_text_size("the output", &answer.output, EngineLimits::OUTPUT_BYTES)?;
        check_text_size("the record", answer.record.as_deref().unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        let (session, turn) = self.require_reported_turn(run)?;
        let (run, TurnAnswer { output, promise, uncounted, leaky, record, usage, tree }) =
            (run.clone(), answer.clone());
        // A claim by a command counts like one at the end of the output. A tag in the output that the agent is stuck
        // outweighs it.
        let promise = promise.or_else(|| turn.claimed.then_some(Promise::Complete));
        self.claimed_promise = promise;
        if !turn.feedback.is_empty() {
            let feedback = turn.feedback.iter().map(|piece| piece.at).collect();
            self.emit_session_event(&session, payload::FeedbackDelivered { run: run.clone(), feedback })?;
        }
        match turn.purpose {
            TurnPurpose::UnjudgedDelivery(_) | TurnPurpose::Recovery => {
                let claim =
                    promise.and_then(Promise::reason_for_person).filter(|_| turn.purpose == TurnPurpose::Recovery);
                let reason = claim.map(|claim| match excerpt_last_words(&output) {
                    Some(words) => format!("{claim}: {words}"),
                    None => claim.to_owned(),
                });
                self.emit_session_event(&session, payload::DeliveryFinished { run, output, usage, leaky })?;
                // The work of this turn is not judged, but a request for a person counts.
                if let Some(reason) = reason {
                    self.escalate_agent_request(&session.name, reason)?;
                }
            }
            TurnPurpose::Work | TurnPurpose::SendBack | TurnPurpose::Delivery => {
                let unchanged = tree.is_some() && tree == session.watch.tree;
                let finished =
                    payload::TurnFinished { run: run.clone(), output, leaky, record, usage, tree, unchanged };
                self.emit_session_event(&session, finished)?;
                if let Some(promise) = promise {
                    self.emit_session_event(&session, payload::PromiseDetected { run, promise })?;
                } else if let Some(why) = uncounted.filter(|_| session.terms.completion == CompletionMode::Promise) {
                    self.emit_session_event(&session, build_uncounted_feedback(why))?;
                }
            }
        }
        self.decide_next_steps(&session.name)
    }

    /// Leaves the task of a session to a person, unless the agent still has to receive a person's message.
    fn escalate_agent_request(&mut self, name: &SessionName, reason: String) -> Result<(), Refusal> {
        let session = self.require_session(name)?;
        let has_work = session.held_epoch().is_some() || session.work == WorkSource::Given;
        match has_work && session.stopping.is_none() && !session.has_unheard_person() {
            true => self.escalate_task(&session, reason, &[]),
            false => Ok(()),
        }
    }

    pub(super) fn fail_turn(&mut self, run: &RunId, failing: &TurnFailureReport) -> Result<(), Refusal> {
        check_failure_report(failing)?;
        let (session, turn) = self.require_reported_turn(run)?;
        let (run, TurnFailureReport { error, fault, record, usage, leaky }) = (run.clone(), failing.clone());
        match turn.purpose {
            TurnPurpose::UnjudgedDelivery(_) | TurnPurpose::Recovery => {
                self.emit_session_event(&session, payload::DeliveryFailed { run, error, fault, usage, leaky })?
            }
            TurnPurpose::Work | TurnPurpose::SendBack | TurnPurpose::Delivery => {
                let until = self.compute_retry_time(&session, &turn, failing);
                let failed = payload::IterationFailed { run, error, fault, record, usage, leaky, until };
                self.emit_session_event(&session, failed)?;
            }
        }
        self.decide_next_steps(&session.name)
    }

    /// Returns when the agent is retried after a failure, if it is. After the first full conversation there is no wait: the
    /// next one is new.
    fn compute_retry_time(
        &self,
        session: &Session,
        turn: &AgentTurn,
        failing: &TurnFailureReport,
    ) -> Option<Timestamp> {
        let mut failed = session.clone();
        failed.count_failure(self.origin.at);
        failed.watch.add_turn_usage(failing.usage);
        // A person's pending message gets one more iteration.
        failed.pending.extend(turn.feedback.clone());
        let is_first_full = failing.fault == TurnFailure::OutOfTokens && failed.failures == 1;
        if is_first_full || failed.find_exhausted_limit().is_some() {
            return None;
        }
        Some(add_duration(self.origin.at, session.terms.retry_wait_after(failed.failures)))
    }

    /// Postpones a turn for the time that the agent names, or for a growing time. A turn that only delivers feedback fails
    /// instead.
    pub(super) fn postpone_turn(
        &mut self,
        run: &RunId,
        failing: &TurnFailureReport,
        until: Option<Timestamp>,
    ) -> Result<(), Refusal> {
        check_failure_report(failing)?;
        let (session, turn) = self.require_reported_turn(run)?;
        if !turn.purpose.is_judged_by_hooks() {
            return self.fail_turn(run, failing);
        }
        let wait = match until {
            Some(until) => {
                until.elapsed_since(self.origin.at).max(double_duration(MIN_POSTPONE_WAIT, session.watch.postponed))
            }
            None => double_duration(DEFAULT_POSTPONE_WAIT, session.watch.postponed).min(MAX_DEFAULT_WAIT),
        };
        let (run, until) = (run.clone(), add_duration(self.origin.at, wait.min(EngineLimits::MAX_AGENT_WAIT)));
        let TurnFailureReport { error, record, usage, .. } = failing.clone();
        self.emit_session_event(&session, payload::IterationPostponed { run, error, until, record, usage })?;
        self.decide_next_steps(&session.name)
    }

    pub(super) fn interrupt_turn(
        &mut self,
        run: &RunId,
        record: Option<String>,
        usage: AgentUsage,
    ) -> Result<(), Refusal> {
        check_text_size("the record", record.as_deref().unwrap_or_default(), EngineLimits::REASON_BYTES)?;
        let (session, turn) = self.require_reported_turn(run)?;
        let run = run.clone();
        match turn.purpose {
            TurnPurpose::UnjudgedDelivery(_) | TurnPurpose::Recovery => {
                self.emit_session_event(&session, payload::DeliveryInterrupted { run })?
            }
            TurnPurpose::Work | TurnPurpose::SendBack | TurnPurpose::Delivery => {
                self.emit_session_event(&session, payload::IterationInterrupted { run, record, usage })?;
            }
        }
        self.decide_next_steps(&session.name)
    }

    /// Returns the turn that is being reported. It is the cause of everything that follows.
    fn require_reported_turn(&mut self, run: &RunId) -> Result<(Session, AgentTurn), Refusal> {
        let (session, turn) = self.require_turn(run)?;
        self.cause = Some(CauseRef::At(turn.effect.seq));
        Ok((session, turn))
    }

    /// Returns the turn that the command comes from. A turn that is over is refused.
    pub(super) fn running_turn(&self) -> Result<Option<RunId>, Refusal> {
        let Some(run) = self.turn.clone().filter(|_| self.depth <= self.command_depth) else { return Ok(None) };
        self.require_turn(&run).map(|_| Some(run))
    }

    /// Returns a turn in progress and its session.
    fn require_turn(&self, run: &RunId) -> Result<(Session, AgentTurn), Refusal> {
        let session = self.require_session(&run.session)?;
        match session.current_turn() {
            Some(turn) if turn.run == *run => Ok((session.clone(), turn.clone())),
            _ => Err(Refusal::RunEnded(run.clone())),
        }
    }
}

/// Returns the feedback that tells the agent why its claim does not count.
fn build_uncounted_feedback(why: &str) -> payload::FeedbackQueued {
    payload::FeedbackQueued {
        source: "windlass".to_owned(),
        text: why.to_owned(),
        voice: MessageAuthor::Windlass,
        reason: None,
        own: None,
        passing: false,
    }
}

fn check_failure_report(failing: &TurnFailureReport) -> Result<(), Refusal> {
    check_text_size("the error", &failing.error, EngineLimits::REASON_BYTES)?;
    check_text_size("the record", failing.record.as_deref().unwrap_or_default(), EngineLimits::REASON_BYTES)
}

fn add_duration(now: Timestamp, wait: Duration) -> Timestamp {
    now.add_millis(i64::try_from(wait.as_millis()).expect("a week is not long"))
}

fn double_duration(first: Duration, times: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times))
}
