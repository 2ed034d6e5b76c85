//! Connections that do not open, and those that break.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio_postgres::{Client, Config, NoTls};
use windlass_store::{SequencedMessage, SequencerError};
use windlass_testkit::nats_cluster::find_free_ports;
use windlass_testkit::nats_server::NatsServer;
use windlass_testkit::postgres_server::{DATABASE_USER, PostgresServer};

use crate::{ONE_COPY, assert_refused, connect, create_log, start_nats, start_postgres};

/// The longest time that a call may take when no server is there.
const LONGEST_CALL: Duration = Duration::from_secs(8);

/// Checks that a call to a server that is away ends soon, and with certainty.
#[track_caller]
fn assert_unreachable(address: &str) {
    let began = Instant::now();
    let error = connect(address).publish(b"one").unwrap_err();
    assert!(matches!(error, SequencerError::Unreachable { .. }), "{error:?}");
    assert!(began.elapsed() < LONGEST_CALL, "{:?}", began.elapsed());
}

#[test]
fn server_that_is_away_is_unreachable() {
    let port = find_free_ports(1)[0];
    assert_unreachable(&format!("nats://127.0.0.1:{port}/pump"));
    assert_unreachable(&format!("postgres://me@127.0.0.1:{port}/agents/pump"));
    assert_unreachable("postgres://me@%2Fnonexistent/agents/pump");
}

#[test]
fn server_that_stays_silent_is_unreachable() {
    // It takes connections, and says nothing.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    thread::scope(|scope| {
        scope.spawn(|| assert_unreachable(&format!("nats://127.0.0.1:{port}/pump")));
        scope.spawn(|| assert_unreachable(&format!("postgres://me@127.0.0.1:{port}/agents/pump")));
    });
}

#[test]
fn server_of_nats_that_is_old_is_refused() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let stub = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let info = r#"{"server_id":"old","version":"2.9.10","max_payload":1048576,"headers":true,"jetstream":true}"#;
        write!(stream, "INFO {info}\r\n").unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            if line.starts_with("PING") {
                stream.write_all(b"PONG\r\n").unwrap();
            }
        }
    });
    let mut service = connect(&format!("nats://127.0.0.1:{port}/pump"));
    assert_refused(service.publish(b"one"), "the server has version 2.9.10; it has to be 2.12 or newer");
    drop(service);
    stub.join().unwrap();
}

#[test]
fn log_that_does_not_exist_is_refused() {
    let (nats, postgres) = (start_nats(), start_postgres());
    for (address, expected) in [
        (nats.log_address("pump"), "the servers have no log of the project `pump`"),
        (postgres.log_address("pump"), "the database has no log of the project `pump`"),
    ] {
        for _ in 0..2 {
            assert_refused(connect(&address).publish(b"one"), expected);
            assert_refused(connect(&address).read_after(0, 1), expected);
            create_log(&address.replace("/pump", "/other"));
        }
    }
}

#[test]
fn server_of_nats_without_streams_is_refused() {
    let server = NatsServer::start_without_streams().expect("`scripts/clients` installs nats-server");
    let address = server.log_address("pump");
    assert_refused(connect(&address).publish(b"one"), "without JetStream");
    assert_refused(connect(&address).read_after(0, 1), "without JetStream");
    assert_refused(connect(&address).inspect_service(), "without JetStream");
    assert_refused(connect(&address).create_log(ONE_COPY), "without JetStream");
}

#[test]
fn connection_to_nats_opens_again_after_restart() {
    let mut server = start_nats();
    let mut service = create_log(&server.log_address("pump"));
    service.publish(b"one").unwrap();
    service.subscribe_after(1).unwrap();
    server.stop();
    let error = service.publish(b"two").unwrap_err();
    assert!(matches!(error, SequencerError::Unreachable { .. } | SequencerError::OutcomeUnknown { .. }), "{error:?}");
    let error = service.read_after(0, 10).unwrap_err();
    assert!(matches!(error, SequencerError::Unreachable { .. }), "{error:?}");
    server.restart();
    assert_eq!(service.publish(b"two").unwrap(), 2);
    assert_eq!(service.read_after(0, 10).unwrap().len(), 2);
}

#[test]
fn server_of_nats_that_stops_in_the_middle_has_unknown_outcome() {
    let server = start_nats();
    let mut service = create_log(&server.log_address("pump"));
    service.publish(b"one").unwrap();
    let id = Pid::from_raw(i32::try_from(server.process_id()).unwrap()).unwrap();
    kill_process(id, Signal::STOP).unwrap();
    waitid(WaitId::Pid(id), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
    let began = Instant::now();
    let error = service.publish(b"two").unwrap_err();
    assert!(matches!(error, SequencerError::OutcomeUnknown { .. }), "{error:?}");
    assert!(began.elapsed() < LONGEST_CALL, "{:?}", began.elapsed());
    kill_process(id, Signal::CONT).unwrap();
    assert_eq!(service.publish(b"two").unwrap(), 2);
    assert_eq!(service.read_after(0, 10).unwrap().len(), 2, "the server has it once");
}

#[test]
fn connection_to_postgres_opens_again_after_restart() {
    let mut server = start_postgres();
    let mut service = create_log(&server.log_address("pump"));
    service.publish(b"one").unwrap();
    service.subscribe_after(1).unwrap();
    server.stop();
    let error = service.publish(b"two").unwrap_err();
    assert!(matches!(error, SequencerError::Unreachable { .. } | SequencerError::OutcomeUnknown { .. }), "{error:?}");
    server.restart();
    assert_eq!(service.publish(b"two").unwrap(), 2);
    assert_eq!(service.read_after(0, 10).unwrap().len(), 2);
}

/// Opens a session that is no service.
async fn open_session(server: &PostgresServer) -> Client {
    let mut config = Config::new();
    config.host(server.socket_directory()).user(DATABASE_USER).dbname("postgres");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Ends the session that waits for the lock of the project, once there is one.
async fn end_waiting_session(client: &Client) {
    let query = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    while client.query(query, &[]).await.unwrap().is_empty() {}
}

#[test]
fn session_of_postgres_that_ends_during_commit_has_unknown_outcome() {
    let server = start_postgres();
    let address = server.log_address("pump");
    let mut service = create_log(&address);
    service.publish(b"one").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(open_session(&server));
    let lock = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('windlass.pump', 0))";
    runtime.block_on(client.batch_execute(lock)).unwrap();
    let publish = thread::spawn(move || (service.publish(b"two"), service));
    runtime.block_on(end_waiting_session(&client));
    let (outcome, mut service) = publish.join().unwrap();
    let error = outcome.unwrap_err();
    assert!(matches!(error, SequencerError::OutcomeUnknown { .. }), "{error:?}");
    runtime.block_on(client.batch_execute("COMMIT")).unwrap();
    assert_eq!(service.publish(b"two").unwrap(), 2);
    assert_eq!(connect(&address).read_after(0, 10).unwrap().len(), 2);
}

#[test]
fn waiter_is_woken_by_message_of_its_project() {
    let (nats, postgres) = (start_nats(), start_postgres());
    for address in [nats.log_address("pump"), postgres.log_address("pump")] {
        let (mut service, mut writer) = (create_log(&address), connect(&address));
        let mut other = create_log(&address.replace("/pump", "/other"));
        service.subscribe_after(0).unwrap();
        let began = Instant::now();
        let waiter = thread::spawn(move || service.receive_after(0, LONGEST_CALL * 4).unwrap().unwrap());
        other.publish(b"of another project").unwrap();
        writer.publish(b"one").unwrap();
        assert_eq!(waiter.join().unwrap(), [SequencedMessage { sequence: 1, body: b"one".to_vec() }]);
        assert!(began.elapsed() < LONGEST_CALL, "{:?}", began.elapsed());
    }
}
