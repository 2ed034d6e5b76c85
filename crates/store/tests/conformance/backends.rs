//! The backends that must keep the contract.

use std::time::Duration;

use windlass_engine::{EventRecord, Seq, StateView};
use windlass_store::{AppendOutcome, EventFilter, MemoryStore, SqliteStore, Store, StoreCommit, StoreError};

use crate::scene::Place;

/// A log with several handles, each as in another process.
pub trait Backend: Sync {
    type Handle: Store + Send;

    /// Makes a new, empty log.
    fn new() -> Self;

    fn open(&self) -> Self::Handle;

    /// Opens the log again after the last handle is gone.
    fn reopen(&self, last: Self::Handle) -> Self::Handle {
        drop(last);
        self.open()
    }
}

/// SQLite, in a real file.
pub struct OnDisk(Place);

impl Backend for OnDisk {
    type Handle = SqliteStore;

    fn new() -> Self {
        let place = Place::new();
        place.create();
        Self(place)
    }

    fn open(&self) -> SqliteStore {
        self.0.open()
    }
}

/// The log in memory; it lives as long as this value.
pub struct InMemory(MemoryStore);

impl Backend for InMemory {
    type Handle = MemoryStore;

    fn new() -> Self {
        Self(MemoryStore::default())
    }

    fn open(&self) -> MemoryStore {
        self.0.clone()
    }
}

/// SQLite with the default way of executing a command: decide outside, append, decide anew after a conflict.
pub struct DecidedOutside(OnDisk);

impl Backend for DecidedOutside {
    type Handle = Contract<SqliteStore>;

    fn new() -> Self {
        Self(OnDisk::new())
    }

    fn open(&self) -> Contract<SqliteStore> {
        Contract(self.0.open())
    }
}

/// A store of which only the contract is used.
pub struct Contract<S>(pub S);

impl<S: Store> Store for Contract<S> {
    fn append_commit(&mut self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        self.0.append_commit(commit)
    }

    fn read_events(&self, filter: &EventFilter, after: Seq, most: usize) -> Result<Vec<EventRecord>, StoreError> {
        self.0.read_events(filter, after, most)
    }

    fn wait_for_events(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        self.0.wait_for_events(after, patience)
    }

    fn open_view(&self) -> Result<Box<dyn StateView + '_>, StoreError> {
        self.0.open_view()
    }
}
