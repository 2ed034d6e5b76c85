//! A log in memory: the second backend, which checks the contract and lets tests run without a disk.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windlass_engine::{Memory, Record, Scope, Seq, View};

use crate::{Appended, Commit, Filter, Store, StoreError};

#[derive(Default)]
struct Log {
    records: Vec<Record>,
    nonces: Vec<u128>,
    rows: Memory,
}

/// A store in memory. Clones share one log, as processes share one file.
#[derive(Clone, Default)]
pub struct MemoryStore {
    log: Arc<(Mutex<Log>, Condvar)>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Log> {
        // A commit is folded into a copy of the rows before it touches the log, so a panic leaves the log whole.
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn append(&mut self, commit: &Commit) -> Result<Appended, StoreError> {
        let path = std::path::Path::new("memory");
        let mut log = self.lock();
        let seen: Vec<Seq> = log
            .records
            .iter()
            .zip(&log.nonces)
            .filter(|(record, nonce)| record.seq > commit.id.after && **nonce == commit.id.nonce)
            .map(|(record, _)| record.seq)
            .collect();
        if !seen.is_empty() {
            return Ok(Appended::AlreadyApplied(seen));
        }
        if let Some(moved) = moved(&log.rows, commit).map_err(|error| StoreError::view(path, error))? {
            return Ok(Appended::Conflict(moved));
        }
        let head = log.rows.head().map_err(|error| StoreError::view(path, error))?;
        let records: Vec<Record> = (head.0 + 1..)
            .zip(&commit.events)
            .map(|(seq, envelope)| Record { seq: Seq(seq), envelope: envelope.clone() })
            .collect();
        let mut rows = log.rows.clone();
        for record in &records {
            rows.apply(record).map_err(|error| StoreError::fold(path, error))?;
        }
        log.rows = rows;
        let positions = records.iter().map(|record| record.seq).collect();
        log.nonces.extend(records.iter().map(|_| commit.id.nonce));
        log.records.extend(records);
        self.log.1.notify_all();
        Ok(Appended::At(positions))
    }

    fn read(&self, filter: &Filter, after: Seq, most: usize) -> Result<Vec<Record>, StoreError> {
        let log = self.lock();
        let wanted = log.records.iter().filter(|record| record.seq > after && filter.matches(record));
        Ok(wanted.take(most).cloned().collect())
    }

    fn wait(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        let quiet = |log: &mut Log| log.records.last().is_none_or(|record| record.seq <= after);
        drop(self.log.1.wait_timeout_while(self.lock(), patience, quiet));
        Ok(())
    }

    fn view(&self) -> Result<Box<dyn View + '_>, StoreError> {
        Ok(Box::new(self.lock().rows.clone()))
    }
}

/// Returns the first scope whose version differs from the one that the commit's decision saw.
pub(crate) fn moved(view: &dyn View, commit: &Commit) -> Result<Option<Scope>, windlass_engine::ViewError> {
    for (scope, version) in &commit.reads {
        if view.version(scope)? != *version {
            return Ok(Some(scope.clone()));
        }
    }
    Ok(None)
}
