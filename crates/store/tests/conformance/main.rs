//! The contract of every backend, as tests.
//!
//! To add a backend, implement [`Backend`](handles::Backend) and add a module with [`conformance!`]. The tests are independent of the backend.
//! `default_execute` is SQLite without its own `execute_command`, so that the tests cover both implementations of this method.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[macro_use]
mod suite;

mod backends;
mod commits;
mod event_reads;
mod event_wait;
mod handles;
mod races;
#[path = "../support/mod.rs"]
mod support;

mod sqlite {
    use crate::backends::SqliteBackend;
    use crate::handles::Backend as _;

    conformance!(SqliteBackend);

    #[test]
    fn back_is_forth_reversed() {
        let backend = SqliteBackend::new();
        crate::event_reads::back_is_forth_reversed(backend.open());
    }
}

mod memory {
    conformance!(crate::backends::MemoryBackend);
}

mod default_execute {
    conformance!(crate::backends::DefaultExecuteBackend);
}

mod replica {
    conformance!(crate::backends::ReplicaBackend);
}

mod replica_with_faults {
    conformance!(crate::backends::FaultyReplicaBackend);
}
