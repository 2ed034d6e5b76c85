//! What a service says of itself.

use std::time::Duration;

use windlass_fleet::{FleetService, LogSettings, ServiceKind, ServiceLog};
use windlass_testkit::postgres_server::PostgresServer;

use crate::{connect, start_nats};

/// Checks the parts that all services have, and returns the weaknesses before and after the creation of the log.
fn check_report(service: &mut dyn FleetService, name: &str, settings: LogSettings) -> [Vec<String>; 2] {
    let before = service.inspect_service().unwrap();
    assert!(before.name.starts_with(name), "{}", before.name);
    assert_eq!(before.log, None);
    service.create_log(settings).unwrap();
    service.create_log(settings).unwrap();
    service.publish(b"one").unwrap();
    let after = service.inspect_service().unwrap();
    let replicas = (name == "NATS").then_some(settings.replicas);
    assert_eq!(after.log, Some(ServiceLog { messages: 1, last_sequence: 1, replicas }));
    // The service is on this machine.
    for report in [&before, &after] {
        assert!(report.clock_skew_millis.abs() < 1000, "{report:?}");
        assert!(report.round_trip < Duration::from_secs(1) && !report.round_trip.is_zero(), "{report:?}");
    }
    [before.weaknesses, after.weaknesses]
}

#[test]
fn report_of_nats_names_copies_and_unknown_sync() {
    let server = start_nats();
    let settings = LogSettings { replicas: 1, syncs_always: false };
    let [before, after] = check_report(&mut *connect(&server.log_address("pump")), "NATS", settings);
    assert!(before.is_empty(), "{before:?}");
    assert_eq!(after, settings.list_weaknesses(ServiceKind::Nats), "they are known before the log is created");
    assert!(after[0].starts_with("1 server keeps the log.") && after[1].contains("sync_interval: always"), "{after:?}");

    let settings = LogSettings { replicas: 1, syncs_always: true };
    let [_, after] = check_report(&mut *connect(&server.log_address("synced")), "NATS", settings);
    assert_eq!(after.len(), 1, "the log remembers what its creator said: {after:?}");
    assert!(LogSettings { replicas: 3, syncs_always: true }.list_weaknesses(ServiceKind::Nats).is_empty());
}

#[test]
fn report_of_postgres_names_missing_standby() {
    let server = PostgresServer::start_on(5432, "", |_| {}).expect("`scripts/setup` installs postgresql");
    let settings = LogSettings { replicas: 1, syncs_always: false };
    let [before, after] = check_report(&mut *connect(&server.log_address("pump")), "PostgreSQL", settings);
    assert_eq!(before, after);
    assert!(before.len() == 1 && before[0].contains("synchronous_standby_names"), "{before:?}");
}

#[test]
fn report_of_postgres_names_settings_that_lose_commits() {
    let configuration = "fsync = off\nsynchronous_commit = off\n";
    let server = PostgresServer::start_on(5432, configuration, |_| {}).expect("`scripts/setup` installs postgresql");
    let report = connect(&server.log_address("pump")).inspect_service().unwrap();
    assert_eq!(report.weaknesses.len(), 3, "{report:?}");
}
