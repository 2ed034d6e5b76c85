//! Copies of a log in NATS JetStream behind networks that break. In the end all copies have the same log, and it has each
//! acknowledged commit once.
//!
//! Random numbers decide when networks break and heal; a failing case names its seed, and `WINDLASS_TEST_SEED=7` repeats the decisions.
//! `WINDLASS_TEST_CRASH_ALL` runs more cases.

#![expect(clippy::disallowed_methods, reason = "environment variables select the cases")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "../../../store/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windlass_engine::{Command, CommitId, EventSubject, NewTask};
use windlass_fleet::{FleetAccess, FleetService, LogSettings, connect_service};
use windlass_store::{AppendOutcome, LogMessage, SqliteStore, Store as _, StoreCommit};
use windlass_testkit::nats_server::NatsServer;
use windlass_testkit::{FaultyProxy, MemoryProject, SeededRandom};

use support::outcomes::{CommandOutcome, check_outcomes, check_same_copies};
use support::{
    TempStore, claim_task, command_origin, commit_command, complete_task, create_dependent_task, create_task,
    engine_rules, holder_origin, next_nonce, rename_task,
};

const MACHINE_COUNT: usize = 3;
const COMMANDS_PER_MACHINE: usize = 40;
/// The commits of the distant writer.
const DISTANT_COMMITS: u32 = 8;

#[test]
fn copies_behind_broken_networks_have_each_acknowledged_commit_once() {
    let seeds = match (std::env::var("WINDLASS_TEST_SEED"), std::env::var_os("WINDLASS_TEST_CRASH_ALL")) {
        (Ok(seed), _) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        (Err(_), Some(_)) => 0..100_u64,
        (Err(_), None) => 0..2,
    };
    for seed in seeds.clone() {
        check_broken_networks(seed);
    }
    println!("copies behind broken networks: {} histories, 0 of them wrong", seeds.end - seeds.start);
}

/// A command of one machine overtakes those of another one that is 40 ms away, but does not make them conflicts.
#[test]
fn distant_writer_makes_progress_beside_busy_one() {
    let server = start_server();
    let proxy = FaultyProxy::start(server.port()).unwrap();
    let places = [TempStore::new(), TempStore::new()];
    let mut distant = join_log(&places[0], proxy.port());
    let mut busy = join_log(&places[1], server.port());
    for goal in ["of the distant writer", "of the busy one"] {
        commit_command(&mut busy, &create_task(goal));
    }
    proxy.set_delay(Duration::from_millis(20));
    let is_over = AtomicBool::new(false);
    let (began, busy_commits) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let number = busy_commits.fetch_add(1, Ordering::Relaxed);
                commit_command(&mut busy, &rename_task(2, &format!("busy {number}")));
                began.store(true, Ordering::Relaxed);
            }
        });
        while !began.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        for number in 0..DISTANT_COMMITS {
            commit_command(&mut distant, &rename_task(1, &format!("distant {number}")));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let busy_commits = busy_commits.into_inner();
    assert!(busy_commits > DISTANT_COMMITS, "the other writer was not busy: {busy_commits} commits");
    for copy in [distant, busy] {
        copy.catch_up().unwrap();
    }
    check_same_copies("a distant writer", &[&places[0], &places[1]]);
    // Each command is one message: none was a conflict.
    assert_eq!(read_messages(server.port()).len() as u32, 2 + DISTANT_COMMITS + busy_commits);
}

/// The log has a commit of several messages completely or not at all.
#[test]
fn long_commit_is_whole_although_connection_breaks_within_it() {
    let server = start_server();
    let proxy = FaultyProxy::start(server.port()).unwrap();
    let places = [TempStore::new(), TempStore::new()];
    let mut store = join_log(&places[0], proxy.port());
    commit_command(&mut store, &create_task("short"));
    for kilobytes in [1000, 1900] {
        proxy.cut_connections_after(kilobytes * 1024);
        commit_command(&mut store, &create_long_task());
    }
    assert!(proxy.accepted_count() >= 3, "each cut ended a connection");
    let other = join_log(&places[1], server.port());
    other.catch_up().unwrap();
    check_same_copies("a long commit", &[&places[0], &places[1]]);
    assert_eq!(read_messages(server.port()).len(), 3);
}

/// An answer of the server has at most 8 MiB.
#[test]
fn commit_longer_than_one_answer_reaches_other_copies() {
    let server = start_server();
    let places = [TempStore::new(), TempStore::new()];
    let [mut store, other] = [0, 1].map(|machine| join_log(&places[machine], server.port()));
    commit_command(&mut store, &create_task("short"));
    other.catch_up().unwrap();
    let mut project = MemoryProject::new(engine_rules());
    project.run_command(&command_origin(), &create_task("short")).unwrap();
    let events = (0..5).flat_map(|_| project.run_command(&command_origin(), &create_long_task()).unwrap());
    let commit = StoreCommit {
        id: CommitId { after: store.head().unwrap(), nonce: next_nonce() },
        reads: BTreeMap::new(),
        events: events.map(|entry| entry.record.envelope).collect(),
    };
    let outcome = store.append_commit(&commit).unwrap();
    assert!(matches!(outcome, AppendOutcome::Durable(_)), "{outcome:?}");
    other.catch_up().unwrap();
    check_same_copies("a very long commit", &[&places[0], &places[1]]);
}

/// Returns a command whose event has two MiB: each character of the body is two bytes of it.
fn create_long_task() -> Command {
    Command::CreateTask(NewTask { goal: "long".to_owned(), body: Some("\"".repeat(1024 * 1024)), ..NewTask::default() })
}

fn start_server() -> NatsServer {
    let server = NatsServer::start().expect("`scripts/clients` installs nats-server");
    connect(server.port()).create_log(LogSettings { replicas: 1, syncs_always: false }).unwrap();
    server
}

fn connect(port: u16) -> Box<dyn FleetService> {
    let address = format!("nats://127.0.0.1:{port}/pump").parse().unwrap();
    connect_service(FleetAccess { address, credentials: None, certificates: None }).unwrap()
}

/// Joins the log with an empty copy.
fn join_log(place: &TempStore, port: u16) -> SqliteStore {
    let mut store = place.create();
    store.join_log().unwrap();
    store.attach_log(connect(port), "mill".to_owned());
    store
}

fn read_messages(port: u16) -> Vec<LogMessage> {
    let mut service = connect(port);
    let mut messages = Vec::new();
    let mut last = 0;
    loop {
        let read = service.read_after(last, 100).unwrap();
        let Some(end) = read.last() else { return messages };
        last = end.sequence;
        messages.extend(read.iter().map(|message| LogMessage::decode(&message.body).unwrap()));
    }
}

/// The networks of all machines. At most one is broken at a time, so that the others go on and heal it.
struct BrokenNetworks {
    random: SeededRandom,
    proxies: Vec<FaultyProxy>,
    broken: Option<usize>,
}

impl BrokenNetworks {
    fn change_network(&mut self) {
        if let Some(machine) = self.broken {
            if self.random.is_one_in(4) {
                self.proxies[machine].heal();
                self.broken = None;
            }
            return;
        }
        let machine = self.random.next_index(self.proxies.len());
        match self.random.next_below(12) {
            0..2 => self.proxies[machine].cut_connections(),
            2 => {
                self.proxies[machine].refuse_connections();
                self.broken = Some(machine);
            }
            3 => {
                self.proxies[machine].hold_bytes();
                self.broken = Some(machine);
            }
            _ => {}
        }
    }

    fn heal_all(&mut self) {
        self.broken = None;
        self.proxies.iter().for_each(FaultyProxy::heal);
    }
}

type SharedNetworks = Arc<Mutex<BrokenNetworks>>;

fn check_broken_networks(seed: u64) {
    let case = format!("seed {seed}");
    let server = start_server();
    let mut random = SeededRandom::new(seed);
    let proxies: Vec<_> = (0..MACHINE_COUNT).map(|_| FaultyProxy::start(server.port()).unwrap()).collect();
    let ports: Vec<u16> = proxies.iter().map(FaultyProxy::port).collect();
    proxies[MACHINE_COUNT - 1].set_delay(Duration::from_millis(3));
    let places: Vec<_> = (0..MACHINE_COUNT).map(|_| TempStore::new()).collect();
    let machines: Vec<_> = (0..MACHINE_COUNT).map(|_| SeededRandom::new(random.next_number())).collect();
    let networks = Arc::new(Mutex::new(BrokenNetworks { random, proxies, broken: None }));
    let outcomes: BTreeMap<u128, CommandOutcome> = thread::scope(|scope| {
        let machines: Vec<_> = machines
            .into_iter()
            .enumerate()
            .map(|(machine, random)| {
                let (place, port, networks) = (&places[machine], ports[machine], &networks);
                scope.spawn(move || run_machine(place, port, networks, random))
            })
            .collect();
        machines.into_iter().flat_map(|machine| machine.join().unwrap_or_else(|_| panic!("{case} failed"))).collect()
    });
    networks.lock().unwrap().heal_all();
    for (place, port) in places.iter().zip(&ports) {
        let mut store = place.open();
        store.attach_log(connect(*port), "mill".to_owned());
        store.catch_up().unwrap_or_else(|error| panic!("{case}: {error}"));
    }
    let acknowledged = outcomes.values().filter(|outcome| matches!(outcome, CommandOutcome::Acknowledged(_))).count();
    assert!(acknowledged > COMMANDS_PER_MACHINE, "{case}: only {acknowledged} commits");
    check_same_copies(&case, &places.iter().collect::<Vec<_>>());
    let messages = read_messages(server.port());
    check_outcomes(&case, &places[0], outcomes.iter().map(|(nonce, outcome)| (*nonce, outcome)), &messages);
}

/// Runs the commands of one machine. Each changes the network of some machine.
fn run_machine(
    place: &TempStore,
    port: u16,
    networks: &SharedNetworks,
    mut random: SeededRandom,
) -> Vec<(u128, CommandOutcome)> {
    let mut store = join_log(place, port);
    if random.is_one_in(2) {
        store.subscribe_to_log();
    }
    let (policy_networks, mut policy_random) = (Arc::clone(networks), random.clone());
    store.set_outage_policy(move |_| {
        // The other machines may have ended.
        policy_networks.lock().unwrap().change_network();
        !policy_random.is_one_in(6)
    });
    let mut outcomes = Vec::new();
    let mut own_task = None;
    for _ in 0..COMMANDS_PER_MACHINE {
        networks.lock().unwrap().change_network();
        let (origin, command) = match (own_task.take(), random.next_below(5)) {
            (Some(task), _) => (holder_origin(1), complete_task(task)),
            (None, 0) => (command_origin(), create_dependent_task("waits", &[1])),
            (None, 1) => (command_origin(), rename_task(1 + random.next_below(3), "renamed")),
            (None, 2..4) => (command_origin(), claim_task("w1")),
            (None, _) => (command_origin(), create_task("work")),
        };
        let nonce = next_nonce();
        let result = store.execute_command(&engine_rules(), &origin, &command, nonce);
        let outcome = CommandOutcome::from_result(result).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        if let (Command::ClaimTask { .. }, CommandOutcome::Acknowledged(records)) = (&command, &outcome) {
            own_task = records.iter().find_map(|record| match record.envelope.node {
                EventSubject::Task(id) => Some(id.0),
                EventSubject::System => None,
            });
        }
        outcomes.push((nonce, outcome));
    }
    outcomes
}
