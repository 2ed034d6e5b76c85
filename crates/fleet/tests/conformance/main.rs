//! The contract of every store, on copies of a log in a service.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[macro_use]
#[path = "../../../store/tests/conformance/suite.rs"]
mod suite;

mod backends;
#[path = "../../../store/tests/conformance/commits.rs"]
mod commits;
#[allow(dead_code, reason = "one of its tests is about SQLite alone")]
#[path = "../../../store/tests/conformance/event_reads.rs"]
mod event_reads;
#[path = "../../../store/tests/conformance/event_wait.rs"]
mod event_wait;
#[path = "../../../store/tests/conformance/handles.rs"]
mod handles;
#[path = "../../../store/tests/conformance/races.rs"]
mod races;
#[path = "../../../store/tests/support/mod.rs"]
mod support;

mod nats {
    conformance!(crate::backends::NatsBackend);
}

mod postgres {
    conformance!(crate::backends::PostgresBackend);
}

/// Three servers. Killed ones have tests in `services/failover.rs`.
mod cluster {
    conformance!(crate::backends::ClusterBackend);
}
