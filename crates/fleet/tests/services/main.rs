//! What services offer besides the contract of a store: heartbeats, events for other programs, access, and failures.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod access;
mod connections;
mod events;
mod failover;
mod heartbeats;
mod messages;
mod reports;
#[path = "../../../store/tests/support/mod.rs"]
mod support;

use windlass_fleet::{FleetAccess, FleetService, LogSettings, connect_service};
use windlass_store::SequencerError;
use windlass_testkit::nats_server::NatsServer;
use windlass_testkit::postgres_server::PostgresServer;

const ONE_COPY: LogSettings = LogSettings { replicas: 1, syncs_always: false };

fn start_nats() -> NatsServer {
    NatsServer::start().expect("`scripts/clients` installs nats-server")
}

fn start_postgres() -> PostgresServer {
    PostgresServer::start().expect("`scripts/setup` installs postgresql")
}

fn access_log(address: &str) -> FleetAccess {
    FleetAccess { address: address.parse().unwrap(), credentials: None, certificates: None }
}

fn connect(address: &str) -> Box<dyn FleetService> {
    connect_service(access_log(address)).unwrap()
}

/// Connects to a service, and creates an empty log there.
fn create_log(address: &str) -> Box<dyn FleetService> {
    let mut service = connect(address);
    service.create_log(ONE_COPY).unwrap();
    service
}

/// Returns the text of an error with its cause.
fn describe_error(error: &SequencerError) -> String {
    format!("{error}: {}", std::error::Error::source(error).unwrap())
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, SequencerError>, expected: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, SequencerError::Refused { .. }), "{error:?}");
    assert!(describe_error(&error).contains(expected), "{}", describe_error(&error));
}
