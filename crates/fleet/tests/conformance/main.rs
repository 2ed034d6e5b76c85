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

/// What several servers could break: the rest is the same as with one.
// A server that follows learns of the last message up to a second later, so how fast a waiter wakes is up to the election.
mod cluster {
    tests! { crate::backends::ClusterBackend:
        acknowledged_is_visible_to_others_and_after_reopening in commits;
        the_same_commit_never_counts_twice in commits;
        many_writers_lose_and_double_nothing in races;
    }
}
