//! The durable log, and the projections folded from it.
//!
//! ```text
//!              decide                    fold
//!   command ───────────► commit ──► log ──────► rows ──► views
//!              ▲                     │
//!              └──── what it read ───┘   a commit whose reads changed is a conflict, and is decided anew
//! ```
//!
//! Invariants, for every backend (`tests/conformance` states them as tests):
//! - A commit is all or nothing, and acknowledged means durable.
//! - The same commit never counts twice.
//! - Positions are global and grow. They need not be dense, but those of one commit follow each other: events of a
//!   commit name their causes by counting back.
//! - An appended event never changes. Rows are a private cache that the log can rebuild.
//!
//! Not here: the meaning of events (`engine`), their display (`cli`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod error;
pub mod failpoint;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod memory;
mod sequencer;
mod sqlite;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use windlass_engine::{
    Command, CommandOrigin, CommitId, DecisionScope, EngineRules, EventEnvelope, EventRecord, EventType, Refusal, Seq,
    SessionName, StateView, TaskId, decide,
};

pub use error::{ExecuteError, StoreError};
pub use memory::MemoryStore;
pub use sequencer::{
    LogMessage, MESSAGE_FORMAT, MemorySequencer, MessageError, SequencedMessage, Sequencer, SequencerError,
    SequencerFault,
};
pub use sqlite::{
    EventProblem, Lifetime, RepairReport, RowMismatch, SalvageReport, SqliteStore, StoreReport, StoreSnapshot,
    StoreSurvey, StoreTransaction, TaskFilter, log_path, rename_new,
};

/// Events to append together, and the scopes on which their decision depended.
#[derive(Debug, Clone)]
pub struct StoreCommit {
    pub id: CommitId,
    /// The scopes that the decision read, with the versions that it saw.
    pub reads: BTreeMap<DecisionScope, u64>,
    pub events: Vec<EventEnvelope>,
}

/// The result of appending a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The commit is durable, with its events at these positions.
    Durable(Vec<Seq>),
    /// This scope changed since the decision: decide anew.
    Conflict(DecisionScope),
    /// It was appended before, at these positions.
    AlreadyApplied(Vec<Seq>),
    /// The disk did not report the outcome. Append the same commit again to find out.
    Unknown,
}

/// Selects events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Any of these types; all if empty.
    pub types: Vec<EventType>,
    pub task: Option<TaskId>,
    pub session: Option<SessionName>,
}

impl EventFilter {
    pub fn matches_record(&self, record: &EventRecord) -> bool {
        (self.types.is_empty() || self.types.contains(&record.kind()))
            && self.task.is_none_or(|task| record.envelope.node.task_id() == Some(task))
            && self.session.as_ref().is_none_or(|session| record.envelope.session.as_ref() == Some(session))
    }
}

/// A backend that keeps the log.
pub trait Store {
    fn append_commit(&mut self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError>;

    /// Reads the events after a position that match the filter, oldest first, at most `most`.
    fn read_events(&self, filter: &EventFilter, after: Seq, most: usize) -> Result<Vec<EventRecord>, StoreError>;

    /// Waits until events follow a position, from any process, or until `patience` ends.
    fn wait_for_events(&self, after: Seq, patience: Duration) -> Result<(), StoreError>;

    /// Returns a view of the present state. The state does not change while the view is held, and until then every read of this
    /// handle may see that state.
    fn open_view(&self) -> Result<Box<dyn StateView + '_>, StoreError>;

    /// Decides a command and appends its events. The nonce distinguishes this attempt from every other one.
    fn execute_command(
        &mut self,
        rules: &EngineRules,
        origin: &CommandOrigin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<EventRecord>, ExecuteError> {
        decide_and_append(self, rules, origin, command, nonce)
    }

    /// Appends until the outcome is known. `None` is a conflict.
    fn append_until_known(&mut self, commit: &StoreCommit) -> Result<Option<Vec<Seq>>, StoreError> {
        for _ in 0..3 {
            match self.append_commit(commit)? {
                AppendOutcome::Durable(positions) | AppendOutcome::AlreadyApplied(positions) => {
                    return Ok(Some(positions));
                }
                AppendOutcome::Conflict(_) => return Ok(None),
                AppendOutcome::Unknown => {}
            }
        }
        Err(StoreError::OutcomeUnknown { source: None })
    }
}

/// How long a command is decided again after conflicts.
const CONFLICT_PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait between two decisions of a command.
const MAX_CONFLICT_WAIT: Duration = Duration::from_millis(50);

/// Decides a command on a view and appends its events; after a conflict, decides it again.
fn decide_and_append<S: Store + ?Sized>(
    store: &mut S,
    rules: &EngineRules,
    origin: &CommandOrigin,
    command: &Command,
    nonce: u128,
) -> Result<Vec<EventRecord>, ExecuteError> {
    // From the first conflict on: an outage before it is no contention.
    let mut began: Option<Instant> = None;
    let mut wait = Duration::from_millis(1);
    loop {
        let commit = {
            let view = store.open_view()?;
            let decided = decide(&*view, rules, origin, command)?;
            StoreCommit {
                id: CommitId { after: view.head_position().map_err(Refusal::View)?, nonce },
                reads: decided.scopes_read().map_err(Refusal::View)?,
                events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
            }
        };
        if let Some(positions) = store.append_until_known(&commit)? {
            let records = positions.into_iter().zip(commit.events);
            return Ok(records.map(|(seq, envelope)| EventRecord { seq, envelope }).collect());
        }
        if began.get_or_insert_with(Instant::now).elapsed() >= CONFLICT_PATIENCE {
            return Err(StoreError::Contended { seconds: CONFLICT_PATIENCE.as_secs() }.into());
        }
        // The nonce is random, so writers that met once do not meet again.
        let part = u32::try_from(nonce.rotate_right(wait.subsec_nanos()) & 0xff).unwrap_or(0) + 1;
        std::thread::sleep(wait * part / 256);
        wait = (wait * 2).min(MAX_CONFLICT_WAIT);
    }
}
