//! A log on three servers of NATS, whose leader is killed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::EventRecord;
use windlass_fleet::LogSettings;
use windlass_store::{ExecuteError, SqliteStore, Store as _, StoreError};
use windlass_testkit::nats_cluster::NatsCluster;

use crate::connect;
use crate::support::{TempStore, command_origin, create_task, engine_rules, next_nonce, read_log};

const WRITER_COUNT: usize = 4;
/// How many commits are acknowledged before the leader is killed, and after.
const COMMITS_BEFORE: usize = 40;
const COMMITS_AFTER: usize = 40;
const LONGEST_FAILOVER: Duration = Duration::from_secs(60);

/// The copy of one machine.
struct MachineCopy {
    store: SqliteStore,
    place: TempStore,
}

impl MachineCopy {
    fn join_log(address: &str, machine: &str) -> Self {
        let place = TempStore::new();
        let mut store = place.create();
        store.join_log().unwrap();
        store.attach_log(connect(address), machine.to_owned());
        store.catch_up().unwrap();
        Self { store, place }
    }

    /// Returns the links of the chain.
    fn read_chain(&self) -> Vec<Vec<u8>> {
        let connection = self.place.open_connection();
        let mut query = connection.prepare("SELECT chain FROM events ORDER BY seq").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

/// Commits until enough is acknowledged, and returns what was acknowledged to this writer. A commit that the service does not take
/// is followed by another one.
fn write_tasks(copy: &mut MachineCopy, writer: usize, count: &AtomicUsize) -> Vec<EventRecord> {
    let (began, mut acknowledged) = (Instant::now(), Vec::new());
    let mut attempt = 0;
    while count.load(Ordering::Relaxed) < COMMITS_BEFORE + COMMITS_AFTER {
        attempt += 1;
        let command = create_task(&format!("task {attempt} of writer {writer}"));
        match copy.store.execute_command(&engine_rules(), &command_origin(), &command, next_nonce()) {
            Ok(events) => {
                acknowledged.extend(events);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(ExecuteError::Store(
                StoreError::Unreachable(_) | StoreError::OutcomeUnknown { .. } | StoreError::Contended { .. },
            )) => {}
            Err(error) => panic!("{error:?}"),
        }
        assert!(began.elapsed() < LONGEST_FAILOVER, "the servers do not go on");
    }
    acknowledged
}

#[test]
fn log_on_three_servers_keeps_acknowledged_commits_when_leader_is_killed() {
    let mut cluster = NatsCluster::start().expect("`scripts/clients` installs nats-server");
    let address = cluster.log_address("pump");
    connect(&address).create_log(LogSettings { replicas: 3, syncs_always: true }).unwrap();
    assert_eq!(connect(&address).inspect_service().unwrap().weaknesses, [""; 0]);
    let mut copies: Vec<_> =
        (0..WRITER_COUNT).map(|writer| MachineCopy::join_log(&address, &format!("machine-{writer}"))).collect();
    let count = AtomicUsize::new(0);
    let mut acknowledged: Vec<EventRecord> = thread::scope(|scope| {
        let count = &count;
        let writers: Vec<_> = (0..)
            .zip(&mut copies)
            .map(|(writer, copy)| scope.spawn(move || write_tasks(copy, writer, count)))
            .collect();
        while count.load(Ordering::Relaxed) < COMMITS_BEFORE {
            assert!(!writers.iter().any(thread::ScopedJoinHandle::is_finished), "a writer has failed");
            thread::yield_now();
        }
        let leader = cluster.find_leader("WL_pump_LOG");
        cluster.kill_server(leader);
        let acknowledged = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        let weaknesses = connect(&address).inspect_service().unwrap().weaknesses;
        assert!(weaknesses.len() == 1 && weaknesses[0].ends_with(&format!(": n{leader}.")), "{weaknesses:?}");
        cluster.restart_server(leader);
        acknowledged
    });
    copies.push(MachineCopy::join_log(&address, "machine-new"));
    copies.iter().for_each(|copy| _ = copy.store.catch_up().unwrap());
    let log = read_log(&copies[0].store);
    acknowledged.sort_by_key(|record| record.seq);
    assert!(acknowledged.len() >= COMMITS_BEFORE + COMMITS_AFTER);
    let lost = acknowledged.iter().find(|record| log.binary_search_by_key(&record.seq, |found| found.seq).is_err());
    assert_eq!(lost, None, "an acknowledged event is not in the log");
    let changed = acknowledged.iter().find(|record| !log.contains(record));
    assert_eq!(changed, None, "an acknowledged event differs from the log");
    let chain = copies[0].read_chain();
    assert_eq!(chain.len(), log.len());
    for copy in &copies {
        assert!(copy.read_chain() == chain, "all copies have the same chain");
        assert_eq!(copy.store.find_wrong_scopes().unwrap(), [""; 0]);
    }
}
