//! Heartbeats: ages by the clock of the service, and what it forgets.

use std::time::{Duration, Instant};

use windlass_fleet::{FleetService, OwnerHeartbeat};

use crate::{connect, create_log, start_nats, start_postgres};

const MINUTE: Duration = Duration::from_secs(60);
const FORGET_TIMEOUT: Duration = Duration::from_secs(10);

fn heartbeat(machine: &str, owner: &str, position: u64) -> OwnerHeartbeat {
    let (machine, owner) = (machine.to_owned(), owner.to_owned());
    OwnerHeartbeat {
        machine,
        owner,
        version: "0.1.0".to_owned(),
        config: "c0ffee".to_owned(),
        position,
        chain: "7e".to_owned(),
    }
}

/// Returns the heartbeats, ordered by their owners.
fn list(service: &mut dyn FleetService) -> Vec<(OwnerHeartbeat, Duration)> {
    let mut found = service.list_heartbeats().unwrap().heartbeats;
    found.sort_by(|one, other| one.0.owner.cmp(&other.0.owner));
    found
}

fn check_ages(address: &str) {
    let (mut mill, mut pump) = (create_log(address), connect(address));
    assert_eq!(mill.list_heartbeats().unwrap().heartbeats, []);
    let began = Instant::now();
    mill.record_heartbeat(&heartbeat("mill", "run.1 a*b", 3), MINUTE).unwrap();
    let mut own_age = Duration::ZERO;
    while own_age < Duration::from_millis(20) {
        own_age = pump.list_heartbeats().unwrap().heartbeats[0].1;
        assert!(own_age <= began.elapsed(), "an age is no longer than the time since");
    }
    pump.record_heartbeat(&heartbeat("pump", "run.2", 5), MINUTE).unwrap();
    pump.record_heartbeat(&heartbeat("pump", "run.2", 6), MINUTE).unwrap();
    let found = list(&mut *mill);
    let beats: Vec<_> = found.iter().map(|(beat, _)| beat.clone()).collect();
    assert_eq!(beats, [heartbeat("mill", "run.1 a*b", 3), heartbeat("pump", "run.2", 6)], "the last one of each owner");
    assert!(found[0].1 >= found[1].1 + Duration::from_millis(10), "{found:?}");

    mill.remove_heartbeat("mill", "run.1 a*b").unwrap();
    mill.remove_heartbeat("mill", "never was").unwrap();
    assert_eq!(list(&mut *pump).len(), 1);
}

fn check_forgetting(address: &str) {
    let mut service = create_log(address);
    let began = Instant::now();
    service.record_heartbeat(&heartbeat("mill", "short", 1), Duration::from_millis(900)).unwrap();
    service.record_heartbeat(&heartbeat("mill", "stays", 1), MINUTE).unwrap();
    while list(&mut *service).len() == 2 {
        assert!(began.elapsed() < FORGET_TIMEOUT, "a heartbeat stays for longer than its lifetime");
    }
    assert!(began.elapsed() >= Duration::from_millis(900), "a heartbeat is forgotten too early");
    assert_eq!(list(&mut *service)[0].0.owner, "stays");
    // Another project has its own owners.
    assert_eq!(create_log(&address.replace("/pump", "/other")).list_heartbeats().unwrap().heartbeats, []);
}

#[test]
fn heartbeat_age_comes_from_clock_of_nats() {
    check_ages(&start_nats().log_address("pump"));
}

#[test]
fn heartbeat_age_comes_from_clock_of_postgres() {
    check_ages(&start_postgres().log_address("pump"));
}

#[test]
fn heartbeat_is_forgotten_by_nats_after_its_lifetime() {
    check_forgetting(&start_nats().log_address("pump"));
}

#[test]
fn heartbeat_is_forgotten_by_postgres_after_its_lifetime() {
    check_forgetting(&start_postgres().log_address("pump"));
}

#[test]
fn heartbeat_after_restart_of_nats_creates_its_stream_again() {
    let mut server = start_nats();
    let mut service = create_log(&server.log_address("pump"));
    service.record_heartbeat(&heartbeat("mill", "run.1", 1), MINUTE).unwrap();
    server.restart();
    assert_eq!(service.list_heartbeats().unwrap().heartbeats, [], "heartbeats are in memory");
    service.record_heartbeat(&heartbeat("mill", "run.1", 2), MINUTE).unwrap();
    assert_eq!(list(&mut *service)[0].0.position, 2);
}
