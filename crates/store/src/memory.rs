//! A log in memory: the second backend, which checks the contract and lets tests run without a disk.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windlass_engine::{DecisionScope, EventRecord, MemoryView, Seq, StateView};

use crate::{AppendOutcome, EventFilter, Store, StoreCommit, StoreError};

#[derive(Default)]
struct MemoryLog {
    records: Vec<EventRecord>,
    nonces: Vec<u128>,
    rows: MemoryView,
}

/// A store in memory. Clones share one log, as processes share one file.
#[derive(Clone, Default)]
pub struct MemoryStore {
    log: Arc<(Mutex<MemoryLog>, Condvar)>,
}

impl MemoryStore {
    fn lock_log(&self) -> MutexGuard<'_, MemoryLog> {
        // A commit is folded into a copy of the rows before it touches the log, so a panic leaves the log whole.
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn append_commit(&mut self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        let path = std::path::Path::new("memory");
        let mut log = self.lock_log();
        let seen: Vec<Seq> = log
            .records
            .iter()
            .zip(&log.nonces)
            .filter(|(record, nonce)| record.seq > commit.id.after && **nonce == commit.id.nonce)
            .map(|(record, _)| record.seq)
            .collect();
        if !seen.is_empty() {
            return Ok(AppendOutcome::AlreadyApplied(seen));
        }
        if let Some(moved) =
            find_moved_scope(&log.rows, commit).map_err(|error| StoreError::from_view_error(path, error))?
        {
            return Ok(AppendOutcome::Conflict(moved));
        }
        let head = log.rows.head_position().map_err(|error| StoreError::from_view_error(path, error))?;
        let records: Vec<EventRecord> = (head.0 + 1..)
            .zip(&commit.events)
            .map(|(seq, envelope)| EventRecord { seq: Seq(seq), envelope: envelope.clone() })
            .collect();
        let mut rows = log.rows.clone();
        for record in &records {
            rows.apply_event(record).map_err(|error| StoreError::from_apply_error(path, error))?;
        }
        log.rows = rows;
        let positions = records.iter().map(|record| record.seq).collect();
        log.nonces.extend(records.iter().map(|_| commit.id.nonce));
        log.records.extend(records);
        self.log.1.notify_all();
        Ok(AppendOutcome::Durable(positions))
    }

    fn read_events(&self, filter: &EventFilter, after: Seq, most: usize) -> Result<Vec<EventRecord>, StoreError> {
        let log = self.lock_log();
        let wanted = log.records.iter().filter(|record| record.seq > after && filter.matches_record(record));
        Ok(wanted.take(most).cloned().collect())
    }

    fn wait_for_events(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        let quiet = |log: &mut MemoryLog| log.records.last().is_none_or(|record| record.seq <= after);
        drop(self.log.1.wait_timeout_while(self.lock_log(), patience, quiet));
        Ok(())
    }

    fn open_view(&self) -> Result<Box<dyn StateView + '_>, StoreError> {
        Ok(Box::new(self.lock_log().rows.clone()))
    }
}

/// Returns the first scope whose version differs from the one that the commit's decision saw.
pub(crate) fn find_moved_scope(
    view: &dyn StateView,
    commit: &StoreCommit,
) -> Result<Option<DecisionScope>, windlass_engine::ViewError> {
    for (scope, version) in &commit.reads {
        if view.scope_version(scope)? != *version {
            return Ok(Some(scope.clone()));
        }
    }
    Ok(None)
}
