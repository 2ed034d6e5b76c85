//! The durable log, and the projections folded from it.
//!
//! ```text
//!              decide                    fold
//!   command ───────────► commit ──► log ──────► rows ──► views
//!              ▲                     │
//!              └──── what it read ───┘   a commit whose reads moved is a conflict, and is decided anew
//! ```
//!
//! Invariants, for every backend (`tests/conformance.rs` states them as tests):
//! - A commit is all or nothing, and acknowledged means durable.
//! - The same commit never counts twice.
//! - Positions are global and grow. They need not be dense, but those of one commit follow each other: events of a
//!   commit name their causes by counting back.
//! - An appended event never changes. Rows are a private cache that the log can rebuild.
//!
//! Not here: what the events mean (`engine`), who shows them (`cli`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod error;
pub mod failpoint;
mod memory;
mod sqlite;

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_engine::{
    Command, CommitId, Envelope, EventType, Origin, Record, Refusal, Rules, Scope, Seq, SessionName, TaskId, View,
    decide,
};

pub use error::{ExecuteError, StoreError};
pub use memory::MemoryStore;
pub use sqlite::{
    Found, Lifetime, Mismatch, Report, Salvage, Snapshot, Sqlite, StoreSurvey, TaskFilter, Transaction, log_path,
    rename_new,
};

/// Events to be appended together, and what the decision for them depended on.
#[derive(Debug, Clone)]
pub struct Commit {
    pub id: CommitId,
    /// The scopes that were looked at, with the versions that were seen.
    pub reads: BTreeMap<Scope, u64>,
    pub events: Vec<Envelope>,
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// It is durable, and this is where its events are.
    At(Vec<Seq>),
    /// This scope moved since the decision: decide anew.
    Conflict(Scope),
    /// It was appended before, at these positions.
    AlreadyApplied(Vec<Seq>),
    /// The disk did not say. Append the same commit again to find out.
    Unknown,
}

/// Which events a reader wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these types; all if empty.
    pub types: Vec<EventType>,
    pub task: Option<TaskId>,
    pub session: Option<SessionName>,
}

impl Filter {
    pub fn matches(&self, record: &Record) -> bool {
        (self.types.is_empty() || self.types.contains(&record.kind()))
            && self.task.is_none_or(|task| record.envelope.node.task() == Some(task))
            && self.session.as_ref().is_none_or(|session| record.envelope.session.as_ref() == Some(session))
    }
}

/// One way of keeping the log.
pub trait Store {
    fn append(&mut self, commit: &Commit) -> Result<Appended, StoreError>;

    /// The events after a position that the filter wants, oldest first, at most so many.
    fn read(&self, filter: &Filter, after: Seq, most: usize) -> Result<Vec<Record>, StoreError>;

    /// Returns when there are events after a position, whoever appended them, or when patience ends.
    fn wait(&self, after: Seq, patience: Duration) -> Result<(), StoreError>;

    /// The present state. It stays as it is while it is held, and until then this handle may see nothing newer, in
    /// whatever way it looks.
    fn view(&self) -> Result<Box<dyn View + '_>, StoreError>;

    /// Decides a command and appends its events. The nonce tells this attempt from every other one.
    fn execute(
        &mut self,
        rules: &Rules,
        origin: &Origin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<Record>, ExecuteError> {
        loop {
            let commit = {
                let view = self.view()?;
                let decided = decide(&*view, rules, origin, command)?;
                Commit {
                    id: CommitId { after: view.head().map_err(Refusal::View)?, nonce },
                    reads: decided.reads().map_err(Refusal::View)?,
                    events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
                }
            };
            if let Some(positions) = self.insist(&commit)? {
                let records = positions.into_iter().zip(commit.events);
                return Ok(records.map(|(seq, envelope)| Record { seq, envelope }).collect());
            }
        }
    }

    /// Appends until the outcome is known. `None` is a conflict.
    fn insist(&mut self, commit: &Commit) -> Result<Option<Vec<Seq>>, StoreError> {
        for _ in 0..3 {
            match self.append(commit)? {
                Appended::At(positions) | Appended::AlreadyApplied(positions) => return Ok(Some(positions)),
                Appended::Conflict(_) => return Ok(None),
                Appended::Unknown => {}
            }
        }
        Err(StoreError::OutcomeUnknown { source: None })
    }
}
