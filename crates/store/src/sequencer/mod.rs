//! The log of a fleet: a service orders messages, and every copy of the project judges them in this order.
//!
//! ```text
//!   machine A: decide ─► LogMessage ─┐                ┌─► copy A: judge, fold ─► SQLite
//!                                    ├─► Sequencer ───┤
//!   machine B: decide ─► LogMessage ─┘   (one order)  └─► copy B: judge, fold ─► SQLite
//! ```
//!
//! Invariants:
//! - A sequencer knows nothing of commands and events. It puts messages into one order, and keeps them.
//! - All copies accept the same messages: the judgement depends on the messages alone, not on the version of the program.
//!
//! Not here: the fold into SQLite (`sqlite/replica.rs`), connections to a service (`fleet`).

mod memory;
mod message;

use std::time::Duration;

pub use memory::{MemorySequencer, SequencerFault};
pub use message::{LogMessage, MESSAGE_FORMAT, MessageError};

/// A message with its place in the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequencedMessage {
    /// Grows from message to message, with gaps.
    pub sequence: u64,
    pub body: Vec<u8>,
}

/// A failure of a sequencer.
#[derive(Debug, thiserror::Error)]
pub enum SequencerError {
    /// The message is not in the order.
    #[error("cannot reach the log of the fleet")]
    Unreachable { source: Box<dyn std::error::Error + Send + Sync> },
    /// The service is there, and does not serve this log.
    #[error("cannot use the log of the fleet")]
    Refused { source: Box<dyn std::error::Error + Send + Sync> },
    /// The message may be in the order, or get there yet.
    #[error("cannot tell whether the fleet's log has the message")]
    OutcomeUnknown { source: Box<dyn std::error::Error + Send + Sync> },
}

/// A service that puts messages into one order and makes them durable.
pub trait Sequencer: Send {
    /// Appends a message and returns its place. A repeated message is appended again, or not.
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError>;

    /// Reads messages after a place in their order, at most `most`. An answer with fewer has all that there are, unless it has more than
    /// 64 KiB.
    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError>;

    /// Makes the service send the messages after a place to this connection as they come, or at least the news that there are some. A
    /// service that refuses can still be read.
    fn subscribe_after(&mut self, _sequence: u64) -> Result<(), SequencerError> {
        Err(SequencerError::Refused { source: "the service sends no messages".into() })
    }

    /// Returns the messages after a place that the service has sent by now. Waits for the first of them, at most for `patience`. If no
    /// news has come, it asks the service nothing. A message may come later than `read_after` returns it. None: the service does not
    /// send all messages after this place, so a caller reads, and subscribes again.
    fn receive_after(
        &mut self,
        _sequence: u64,
        _patience: Duration,
    ) -> Result<Option<Vec<SequencedMessage>>, SequencerError> {
        Ok(None)
    }
}
