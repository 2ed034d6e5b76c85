//! The backends under test, each behind [`Backend`].

use std::sync::atomic::{AtomicU32, Ordering};

use windlass_store::{MemorySequencer, MemoryStore, SequencerFault, SqliteStore};

use crate::handles::{Backend, ContractStore, ReplicaHandle};
use crate::support::TempStore;

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

/// Copies of one log behind a sequencer in memory. Each handle is another machine.
pub struct ReplicaBackend {
    sequencer: MemorySequencer,
    machines: AtomicU32,
    /// The faults of every handle.
    faults: Option<fn(u32) -> Option<SequencerFault>>,
}

impl ReplicaBackend {
    fn with_faults(faults: Option<fn(u32) -> Option<SequencerFault>>) -> Self {
        Self { sequencer: MemorySequencer::default(), machines: AtomicU32::new(0), faults }
    }
}

impl Backend for ReplicaBackend {
    type Handle = ReplicaHandle;

    fn new() -> Self {
        Self::with_faults(None)
    }

    fn open(&self) -> ReplicaHandle {
        let machine = self.machines.fetch_add(1, Ordering::Relaxed);
        let mut calls = machine;
        let sequencer = match self.faults {
            Some(choose) => self.sequencer.with_faults(move || {
                calls += 1;
                choose(calls)
            }),
            None => self.sequencer.clone(),
        };
        ReplicaHandle::join_log(sequencer, machine)
    }
}

/// Copies of one log whose service loses, delays and repeats messages.
pub struct FaultyReplicaBackend(ReplicaBackend);

impl Backend for FaultyReplicaBackend {
    type Handle = ReplicaHandle;

    fn new() -> Self {
        Self(ReplicaBackend::with_faults(Some(|call| match call % 11 {
            2 => Some(SequencerFault::LostAcknowledgement),
            5 => Some(SequencerFault::LostMessage),
            7 => Some(SequencerFault::RepeatedMessage),
            9 => Some(SequencerFault::DelayedMessage),
            _ => None,
        })))
    }

    fn open(&self) -> ReplicaHandle {
        self.0.open()
    }
}
