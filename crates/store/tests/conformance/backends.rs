//! The backends that must keep the contract.

use std::time::Duration;

use windlass_engine::{Record, Seq, View};
use windlass_store::{Appended, Commit, Filter, MemoryStore, Sqlite, Store, StoreError};

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
    type Handle = Sqlite;

    fn new() -> Self {
        let place = Place::new();
        place.create();
        Self(place)
    }

    fn open(&self) -> Sqlite {
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
    type Handle = Contract<Sqlite>;

    fn new() -> Self {
        Self(OnDisk::new())
    }

    fn open(&self) -> Contract<Sqlite> {
        Contract(self.0.open())
    }
}

/// A store of which only the contract is used.
pub struct Contract<S>(pub S);

impl<S: Store> Store for Contract<S> {
    fn append(&mut self, commit: &Commit) -> Result<Appended, StoreError> {
        self.0.append(commit)
    }

    fn read(&self, filter: &Filter, after: Seq, most: usize) -> Result<Vec<Record>, StoreError> {
        self.0.read(filter, after, most)
    }

    fn wait(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        self.0.wait(after, patience)
    }

    fn view(&self) -> Result<Box<dyn View + '_>, StoreError> {
        self.0.view()
    }
}
