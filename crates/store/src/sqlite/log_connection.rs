//! The connection of a copy to the fleet's log: how it is read, and how long an outage is waited for.
//!
//! Invariants:
//! - A read begins with the last folded message; if that is long, only every few seconds. If the log has another one there, or
//!   lacks it for longer than servers lag, the copy stops: the service has lost messages, or another log is behind it.
//! - A subscriber relies on what the service sends only for a second after a read, and reads again after that.
//! - A service that sends no messages is read for each command.

use std::time::{Duration, Instant};

use windlass_engine::Digest;

use super::SqliteStore;
use super::scopes::CopyCursor;
use crate::StoreError;
use crate::sequencer::{SequencedMessage, Sequencer, SequencerError};

/// How often a subscriber reads the log itself.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// How long a subscription that has ended is not replaced.
const RESUBSCRIBE_INTERVAL: Duration = Duration::from_secs(1);
/// The length up to which an answer of the service has all messages. A longer one may end early.
const LONG_ANSWER_BYTES: usize = 64 * 1024;
/// The length up to which the last folded message is read again with each read.
const SHORT_MESSAGE_BYTES: usize = 16 * 1024;
/// How long a connection is trusted to have a longer one, or one that it does not return.
const VERIFY_INTERVAL: Duration = Duration::from_secs(5);
/// How long a command waits for a log that cannot be reached.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(30);
/// The shortest and the longest wait between two attempts to reach the log.
const MIN_OUTAGE_WAIT: Duration = Duration::from_millis(5);
const MAX_OUTAGE_WAIT: Duration = Duration::from_secs(1);
/// How often a message is read again that a server may lack for a moment although another one has it.
pub(super) const MAX_LAG_READS: usize = 100;
pub(super) const LAG_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The connection of a copy to its log.
pub(super) struct LogConnection {
    sequencer: Box<dyn Sequencer>,
    /// The name of this machine.
    pub machine: String,
    /// Whether a call goes on waiting for a log that was away for this long.
    keeps_waiting: OutagePolicy,
    /// Whether the service is to send new messages, so that a command soon after another one asks nothing before it decides.
    is_subscriber: bool,
    read_interval: Duration,
    /// When the service was last asked to send messages.
    subscribed_at: Option<Instant>,
    /// Whether the service refuses to send messages.
    is_subscription_refused: bool,
    /// The last folded message that was found in the log, as far as the connection is known to be the same.
    verified: Option<VerifiedMessage>,
    /// When all that the log had was read last.
    read_at: Option<Instant>,
}

/// A folded message that was found in the log where it was.
#[derive(Debug, Clone, Copy)]
struct VerifiedMessage {
    sequence: u64,
    length: usize,
    at: Instant,
}

/// Decides whether a call goes on waiting for a log that was away for this long.
type OutagePolicy = Box<dyn FnMut(Duration) -> bool + Send>;

/// Messages that were read.
pub(super) struct LogAnswer {
    pub messages: Vec<SequencedMessage>,
    /// Whether the log had no more of them.
    pub is_whole: bool,
}

impl LogAnswer {
    fn new(messages: Vec<SequencedMessage>, most: usize) -> Self {
        let length: usize = messages.iter().map(|message| message.body.len()).sum();
        Self { is_whole: messages.len() < most && length <= LONG_ANSWER_BYTES, messages }
    }
}

impl SqliteStore {
    /// Makes later commits of a copy go through the fleet's log.
    pub fn attach_log(&mut self, sequencer: Box<dyn Sequencer>, machine: String) {
        let keeps_waiting = Box::new(|away| away < OUTAGE_PATIENCE);
        let log = LogConnection {
            sequencer,
            machine,
            keeps_waiting,
            is_subscriber: false,
            read_interval: READ_INTERVAL,
            subscribed_at: None,
            is_subscription_refused: false,
            verified: None,
            read_at: None,
        };
        self.log = Some(log.into());
    }

    /// Makes the service send new messages from the next command on. A command within a second of the last read is decided without a
    /// question to it. This is for processes that live long.
    pub fn subscribe_to_log(&mut self) {
        self.subscribe_with_interval(READ_INTERVAL);
    }

    /// Does the same with another time between two reads.
    pub fn subscribe_with_interval(&mut self, read_interval: Duration) {
        if let Some(log) = &mut self.log {
            let log = log.get_mut();
            (log.is_subscriber, log.read_interval) = (true, read_interval);
        }
    }

    /// Returns whether commands rely on what the service sends.
    pub(super) fn is_subscriber(&self) -> bool {
        self.log.as_ref().is_some_and(|log| {
            let log = log.borrow();
            log.is_subscriber && !log.is_subscription_refused
        })
    }

    /// Makes later commits ask `keeps_waiting` how long they wait for a log that cannot be reached, instead of 30 seconds.
    pub fn set_outage_policy(&mut self, keeps_waiting: impl FnMut(Duration) -> bool + Send + 'static) {
        if let Some(log) = &mut self.log {
            log.get_mut().keeps_waiting = Box::new(keeps_waiting);
        }
    }

    /// Returns whether a connection to the fleet's log is attached.
    pub fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// Repeats a call as long as the log cannot be reached. A message with an unknown outcome is published again: its nonce tells
    /// whether the log has it already.
    pub(super) fn wait_out_outage<T>(&self, call: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let (began, mut wait) = (Instant::now(), MIN_OUTAGE_WAIT);
        loop {
            match call() {
                Err(StoreError::Unreachable(
                    SequencerError::Unreachable { .. } | SequencerError::OutcomeUnknown { .. },
                )) if self.keeps_waiting(began.elapsed()) => {
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(MAX_OUTAGE_WAIT);
                }
                done => return done,
            }
        }
    }

    fn keeps_waiting(&self, away: Duration) -> bool {
        self.log.as_ref().is_some_and(|log| (log.borrow_mut().keeps_waiting)(away))
    }

    pub(super) fn with_sequencer<T>(
        &self,
        call: impl FnOnce(&mut dyn Sequencer) -> Result<T, SequencerError>,
    ) -> Result<T, SequencerError> {
        let Some(log) = &self.log else {
            return Err(SequencerError::Unreachable { source: "no connection to it is open".into() });
        };
        let mut log = log.borrow_mut();
        let done = call(&mut *log.sequencer);
        if done.is_err() {
            // Another service may answer the next call.
            (log.verified, log.read_at) = (None, None);
        }
        done
    }

    /// Returns whether the last folded message has to be looked for in the log. A long one is not read again all the time.
    fn must_verify(&self, cursor: CopyCursor) -> bool {
        let verified = self.log.as_ref().and_then(|log| log.borrow().verified);
        verified.is_none_or(|verified| {
            verified.sequence != cursor.sequence
                || verified.length <= SHORT_MESSAGE_BYTES
                || verified.at.elapsed() >= VERIFY_INTERVAL
        })
    }

    /// Returns the messages after the cursor that the service has sent by now. Waits for the first of them, at most for `patience`.
    /// None if the log has to be read, because the service does not send them all, or because the last read is too old.
    pub(super) fn receive_messages(&self, patience: Duration) -> Result<Option<Vec<SequencedMessage>>, StoreError> {
        let Some(log) = &self.log else { return Ok(None) };
        let is_read_fresh = |log: &LogConnection| log.read_at.is_some_and(|at| at.elapsed() < log.read_interval);
        if !is_read_fresh(&log.borrow()) {
            return Ok(None);
        }
        let cursor = self.copy_cursor()?.sequence;
        let received = self.with_sequencer(|sequencer| sequencer.receive_after(cursor, patience));
        let received = received.map_err(StoreError::Unreachable)?;
        if received.is_none() {
            // The connection may be another one.
            log.borrow_mut().verified = None;
        }
        Ok(received)
    }

    /// Makes the service send the messages after the cursor. Returns false if it refuses, or was asked just now.
    pub(super) fn subscribe_to_messages(&self) -> Result<bool, StoreError> {
        let Some(log) = &self.log else { return Ok(false) };
        let is_recent = log.borrow().subscribed_at.is_some_and(|at| at.elapsed() < RESUBSCRIBE_INTERVAL);
        if is_recent || log.borrow().is_subscription_refused {
            return Ok(false);
        }
        log.borrow_mut().subscribed_at = Some(Instant::now());
        let cursor = self.copy_cursor()?.sequence;
        match self.with_sequencer(|sequencer| sequencer.subscribe_after(cursor)) {
            Err(SequencerError::Refused { .. }) => {
                log.borrow_mut().is_subscription_refused = true;
                Ok(false)
            }
            subscribed => subscribed.map(|()| true).map_err(StoreError::Unreachable),
        }
    }

    /// Notes that the copy has all that the log had a moment ago.
    pub(super) fn note_fresh_copy(&self) {
        if let Some(log) = &self.log {
            log.borrow_mut().read_at = Some(Instant::now());
        }
    }

    /// Reads the messages that follow in the log.
    pub(super) fn read_messages(&self, most: usize) -> Result<LogAnswer, StoreError> {
        let answer = self.read_verified_messages(most)?;
        if answer.is_whole {
            self.note_fresh_copy();
        }
        Ok(answer)
    }

    /// Reads the messages that follow in the log. The read begins with the last folded message, which has to be where it was:
    /// otherwise the service has lost messages, or another log is behind it.
    fn read_verified_messages(&self, most: usize) -> Result<LogAnswer, StoreError> {
        let cursor = self.copy_cursor()?;
        let read = |after, most| {
            self.with_sequencer(|sequencer| sequencer.read_after(after, most)).map_err(StoreError::Unreachable)
        };
        if cursor.sequence == 0 || !self.must_verify(cursor) {
            return Ok(LogAnswer::new(read(cursor.sequence, most)?, most));
        }
        let mut answer = LogAnswer::new(read(cursor.before, most + 1)?, most + 1);
        let verified = self.log.as_ref().and_then(|log| log.borrow().verified);
        let was_verified = verified.is_some_and(|verified| verified.at.elapsed() < VERIFY_INTERVAL);
        if answer.messages.is_empty() && was_verified {
            // A server of a cluster may learn of the last message a second later. This connection has just found one.
            return Ok(answer);
        }
        for _ in 0..MAX_LAG_READS {
            if !answer.messages.is_empty() {
                break;
            }
            std::thread::sleep(LAG_POLL_INTERVAL);
            answer = LogAnswer::new(read(cursor.before, most + 1)?, most + 1);
        }
        let is_known =
            |last: &SequencedMessage| last.sequence == cursor.sequence && Digest::of_bytes(&last.body) == cursor.digest;
        if !answer.messages.first().is_some_and(is_known) {
            return Err(StoreError::Forked { path: self.path.clone(), after: self.head()? });
        }
        let length = answer.messages.remove(0).body.len();
        if let Some(log) = &self.log {
            log.borrow_mut().verified = Some(VerifiedMessage { sequence: cursor.sequence, length, at: Instant::now() });
        }
        if answer.messages.is_empty() && !answer.is_whole {
            answer = LogAnswer::new(read(cursor.sequence, most)?, most);
        }
        Ok(answer)
    }
}
