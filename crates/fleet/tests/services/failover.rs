//! A log on three servers of NATS, whose leader is killed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::{Command, EventRecord, StateView as _, TaskId};
use windlass_fleet::LogSettings;
use windlass_store::{ExecuteError, SqliteStore, Store as _, StoreError};
use windlass_testkit::nats_cluster::NatsCluster;

use crate::connect;
use crate::support::{
    TempStore, command_origin, commit_command, create_task, engine_rules, next_nonce, read_chain, read_log, test_time,
};

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
        store.subscribe_to_log();
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

/// Claims tasks until none is left, and returns the acknowledged ones. Like workers, each writer chooses among the first tasks.
fn claim_tasks(store: &mut SqliteStore, writer: usize, count: &AtomicUsize) -> Vec<TaskId> {
    let owner = format!("writer-{writer}");
    let mut claimed = Vec::new();
    loop {
        let (mut first, mut after) = (Vec::new(), None);
        {
            store.catch_up().ok();
            let snapshot = store.begin_snapshot().unwrap();
            while let Some(next) = snapshot.next_claimable(after).unwrap().filter(|_| first.len() < 16) {
                first.push(next.1);
                after = Some(next);
            }
        }
        let Some(id) = first.get(writer % first.len().max(1)).copied() else { return claimed };
        let until = test_time().add_millis(600_000);
        let owner = owner.parse().unwrap();
        let claim = Command::ClaimTask { id: Some(id), owner, until, agent: None };
        match store.execute_command(&engine_rules(), &command_origin(), &claim, next_nonce()) {
            Ok(_) => {
                claimed.push(id);
                count.fetch_add(1, Ordering::Relaxed);
            }
            // Another writer was faster; or the servers elect a leader.
            Err(ExecuteError::Refused(_)) => {}
            Err(ExecuteError::Store(
                StoreError::Unreachable(_) | StoreError::OutcomeUnknown { .. } | StoreError::Contended { .. },
            )) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Eight writers in three directories. `WINDLASS_TEST_CRASH_ALL` has more tasks, and kills more leaders.
#[test]
fn tasks_are_claimed_once_although_leaders_are_killed() {
    #[expect(clippy::disallowed_methods, reason = "environment variables select the cases")]
    let is_long = std::env::var_os("WINDLASS_TEST_CRASH_ALL").is_some();
    let (tasks, kills) = if is_long { (3000, 6) } else { (60, 1) };
    let mut cluster = NatsCluster::start().expect("`scripts/clients` installs nats-server");
    let address = cluster.log_address("claims");
    let places: [TempStore; 3] = std::array::from_fn(|_| TempStore::new());
    let mut first = places[0].create();
    for number in 1..=tasks {
        commit_command(&mut first, &create_task(&format!("task {number}")));
    }
    let mut service = connect(&address);
    service.create_log(LogSettings { replicas: 3, syncs_always: true }).unwrap();
    first.attach_log(service, "first".to_owned());
    first.publish_log(|_| {}).unwrap();
    for place in &places[1..] {
        place.create().join_log().unwrap();
    }
    let count = AtomicUsize::new(0);
    let mut claimed: Vec<TaskId> = thread::scope(|scope| {
        let (count, address, places) = (&count, &address, &places);
        let claim = move |writer: usize| {
            let mut store = places[writer % places.len()].open();
            store.attach_log(connect(address), format!("directory-{}", writer % places.len()));
            claim_tasks(&mut store, writer, count)
        };
        let writers: Vec<_> = (0..8).map(|writer| scope.spawn(move || claim(writer))).collect();
        for kill in 1..=kills {
            let part = tasks * kill / (kills + 1);
            while count.load(Ordering::Relaxed) < part && !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
                thread::yield_now();
            }
            let leader = cluster.find_leader("WL_claims_LOG");
            cluster.kill_server(leader);
            cluster.restart_server(leader);
        }
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    claimed.sort_unstable();
    let twice: Vec<_> = claimed.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "claimed twice: {twice:?}");
    let stores: Vec<SqliteStore> = places
        .iter()
        .map(|place| {
            let mut store = place.open();
            store.attach_log(connect(&address), "reader".to_owned());
            store.catch_up().unwrap();
            store
        })
        .collect();
    // A claim whose acknowledgement was lost is in the log, too.
    assert!(claimed.len() <= tasks);
    for store in &stores {
        assert_eq!(store.begin_snapshot().unwrap().next_claimable(None).unwrap(), None);
        assert_eq!(store.find_wrong_scopes().unwrap(), [""; 0]);
    }
    let chains: Vec<_> = places.iter().map(read_chain).collect();
    assert!(chains.iter().all(|chain| *chain == chains[0]), "all copies have the same chain");
    println!("claims while leaders are killed: {tasks} claims, 0 of them wrong");
}
