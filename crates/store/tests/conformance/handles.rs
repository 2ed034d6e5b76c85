//! A log under test, and the handles on it.

use std::time::Duration;

use windlass_engine::{Command, CommandOrigin, EngineRules, EventRecord, Seq, StateView};
use windlass_store::{
    AppendOutcome, EventFilter, ExecuteError, Sequencer, SqliteStore, Store, StoreCommit, StoreError,
};

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

/// The copy of one machine. It catches up before each read, as a command does.
pub struct ReplicaHandle {
    store: SqliteStore,
    _directory: TempStore,
}

impl ReplicaHandle {
    /// Joins a log with an empty store.
    pub fn join_log(log: impl Sequencer + 'static, machine: u32) -> Self {
        let temp_store = TempStore::new();
        let mut store = temp_store.create();
        store.join_log().unwrap();
        store.attach_log(Box::new(log), format!("machine-{machine}"));
        if machine % 2 == 1 {
            store.subscribe_to_log();
        }
        store.catch_up().unwrap();
        Self { store, _directory: temp_store }
    }
}

impl Store for ReplicaHandle {
    fn append_commit(&mut self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        self.store.append_commit(commit)
    }

    fn read_events(&self, filter: &EventFilter, after: Seq, limit: usize) -> Result<Vec<EventRecord>, StoreError> {
        self.store.catch_up()?;
        self.store.read_events(filter, after, limit)
    }

    fn wait_for_events(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        self.store.wait_for_events(after, patience)
    }

    fn open_view(&self) -> Result<Box<dyn StateView + '_>, StoreError> {
        self.store.catch_up()?;
        self.store.open_view()
    }

    fn execute_command(
        &mut self,
        rules: &EngineRules,
        origin: &CommandOrigin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<EventRecord>, ExecuteError> {
        self.store.execute_command(rules, origin, command, nonce)
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
