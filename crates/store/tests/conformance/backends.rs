//! The backends under test, each behind the trait [`Backend`].

use std::time::Duration;

use windlass_engine::{EventRecord, Seq, StateView};
use windlass_store::{AppendOutcome, EventFilter, MemoryStore, SqliteStore, Store, StoreCommit, StoreError};

use crate::support::TempStore;

/// A log with several handles. Each handle stands for another process.
pub trait Backend: Sync {
    type Handle: Store + Send;

    /// Creates a new, empty log.
    fn new() -> Self;

    fn open(&self) -> Self::Handle;

    /// Drops the last handle, and opens the log again.
    fn reopen(&self, last: Self::Handle) -> Self::Handle {
        drop(last);
        self.open()
    }
}

/// SQLite in a file on the disk.
pub struct SqliteBackend(TempStore);

impl Backend for SqliteBackend {
    type Handle = SqliteStore;

    fn new() -> Self {
        let temp_store = TempStore::new();
        temp_store.create();
        Self(temp_store)
    }

    fn open(&self) -> SqliteStore {
        self.0.open()
    }
}

/// A log in memory, which lives as long as this value.
pub struct MemoryBackend(MemoryStore);

impl Backend for MemoryBackend {
    type Handle = MemoryStore;

    fn new() -> Self {
        Self(MemoryStore::default())
    }

    fn open(&self) -> MemoryStore {
        self.0.clone()
    }
}

/// SQLite with the default implementation of [`Store::execute_command`]: decide, append, and decide again after a conflict.
pub struct DefaultExecuteBackend(SqliteBackend);

impl Backend for DefaultExecuteBackend {
    type Handle = ContractStore<SqliteStore>;

    fn new() -> Self {
        Self(SqliteBackend::new())
    }

    fn open(&self) -> ContractStore<SqliteStore> {
        ContractStore(self.0.open())
    }
}

/// A store that forwards only the required methods of [`Store`] and inherits the default ones.
pub struct ContractStore<S>(pub S);

impl<S: Store> Store for ContractStore<S> {
    fn append_commit(&mut self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        self.0.append_commit(commit)
    }

    fn read_events(&self, filter: &EventFilter, after: Seq, limit: usize) -> Result<Vec<EventRecord>, StoreError> {
        self.0.read_events(filter, after, limit)
    }

    fn wait_for_events(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        self.0.wait_for_events(after, patience)
    }

    fn open_view(&self) -> Result<Box<dyn StateView + '_>, StoreError> {
        self.0.open_view()
    }
}
