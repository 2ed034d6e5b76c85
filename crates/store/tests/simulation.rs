//! Copies of one log in trouble: networks break, messages are lost, repeated and late, processes die between publish and fold,
//! and others wait long between a decision and its commit. In the end all copies have the same log, and it has each
//! acknowledged commit once.
//!
//! A failing case names its seed: `WINDLASS_TEST_SEED=7 cargo nextest run -p windlass-store --test simulation` repeats it.
//! `WINDLASS_TEST_CRASH_ALL` runs more cases.

#![expect(clippy::disallowed_methods, reason = "environment variables select the cases")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use windlass_engine::{Command, CommandOrigin, CommitId, EngineRules, EventRecord, MemoryView, decide};
use windlass_store::{
    AppendOutcome, ExecuteError, LogMessage, SequencedMessage, Sequencer, SequencerError, SqliteStore, Store,
    StoreCommit, StoreError, failpoint,
};
use windlass_testkit::{
    HistoryStep, SeededRandom, StepAction, gate_histories, gate_rules, histories, invariants, test_rules,
};

use support::outcomes::{CommandOutcome, check_outcomes, check_same_copies};
use support::{TempStore, read_log, test_time};

const MACHINE_COUNT: usize = 3;
const PROCESSES_PER_MACHINE: usize = 2;
/// The commands of one case.
const COMMAND_COUNT: usize = 100;
/// How many commands may come between two steps of another one.
const MAX_DEPTH: usize = 3;

#[test]
fn all_copies_have_each_acknowledged_commit_once() {
    let seeds = match (std::env::var("WINDLASS_TEST_SEED"), std::env::var_os("WINDLASS_TEST_CRASH_ALL")) {
        (Ok(seed), _) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        (Err(_), Some(_)) => 0..2_000_u64,
        (Err(_), None) => 0..8,
    };
    // The simulated crashes end processes, not machines.
    failpoint::arm_failpoint("store.full=error");
    let mut seen = BTreeMap::<&str, usize>::new();
    for seed in seeds.clone() {
        for (trouble, count) in FleetSimulation::run_seed(seed, None) {
            *seen.entry(trouble).or_default() += count;
        }
    }
    // Every kind of trouble has occurred.
    if seeds.end - seeds.start > 1 {
        for trouble in TROUBLES {
            assert!(seen.contains_key(trouble), "{trouble} never happened: {seen:?}");
        }
    }
    println!("simulated copies: {} histories, 0 of them wrong", seeds.end - seeds.start);
}

/// The checks of this simulation detect faults.
#[test]
fn planted_faults_are_detected() {
    failpoint::arm_failpoint("store.full=error");
    let planted = [
        (PlantedFault::OtherOrder, "has other events"),
        (PlantedFault::MissingMessage, "has other events"),
        (PlantedFault::ChangedEvent, "has other events"),
        (PlantedFault::HiddenCommit, "is in the log although its command failed"),
    ];
    for (planted, expected) in planted {
        let said = (0..10).find_map(|seed| {
            let run = std::panic::catch_unwind(|| drop(FleetSimulation::run_seed(seed, Some(planted))));
            run.err().map(|said| (seed, said.downcast::<String>().map_or_else(|_| String::new(), |said| *said)))
        });
        let (seed, said) = said.unwrap_or_else(|| panic!("{planted:?} was not noticed"));
        assert!(said.contains(expected) && said.contains(&format!("seed {seed}: ")), "{planted:?}: {said}");
    }
}

const TROUBLES: [&str; 15] = [
    "acknowledged",
    "acknowledgement lost",
    "conflict",
    "died after publish",
    "died before publish",
    "late",
    "message lost",
    "network cut",
    "outcome unknown",
    "overtaken",
    "refused",
    "repeated",
    "sent late",
    "server behind",
    "subscription lost",
];

/// A fault that the checks have to detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlantedFault {
    /// One machine reads two messages in another order.
    OtherOrder,
    /// One machine does not get a message.
    MissingMessage,
    /// One machine gets a message with another event.
    ChangedEvent,
    /// A process hides an acknowledged commit.
    HiddenCommit,
}

struct SimulatedMachine {
    place: TempStore,
    /// None while a process executes a command.
    processes: Vec<Option<SqliteStore>>,
    is_cut: bool,
    /// Whether most messages or their acknowledgements are lost.
    is_lossy: bool,
}

/// The service, all machines, and the trouble between them.
struct FleetSimulation {
    seed: u64,
    planted: Option<PlantedFault>,
    random: SeededRandom,
    rules: EngineRules,
    steps: Vec<HistoryStep>,
    messages: Vec<SequencedMessage>,
    /// Messages that are on their way.
    late: Vec<Vec<u8>>,
    machines: Vec<SimulatedMachine>,
    /// The process that has died in its present call, as machine and index.
    died: Option<(usize, usize)>,
    outcomes: Vec<CommandOutcome>,
    depth: usize,
    is_calm: bool,
    seen: BTreeMap<&'static str, usize>,
}

type SharedSimulation = Arc<Mutex<FleetSimulation>>;

fn lock(world: &SharedSimulation) -> MutexGuard<'_, FleetSimulation> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FleetSimulation {
    /// Runs one case, and returns how often each kind of trouble occurred.
    fn run_seed(seed: u64, planted: Option<PlantedFault>) -> BTreeMap<&'static str, usize> {
        let mut random = SeededRandom::new(seed);
        let (rules, steps) = if random.is_one_in(2) {
            (gate_rules(), random.generate_value(&gate_histories(2 * COMMAND_COUNT)))
        } else {
            (test_rules(), random.generate_value(&histories(2 * COMMAND_COUNT)))
        };
        let machines = (0..MACHINE_COUNT).map(|_| SimulatedMachine {
            place: TempStore::new(),
            processes: Vec::new(),
            is_cut: false,
            is_lossy: false,
        });
        let world = Arc::new(Mutex::new(Self {
            seed,
            planted,
            random,
            rules,
            // An answer is about the last event, which is seldom a call where several processes write.
            steps: steps
                .into_iter()
                .rev()
                .filter(|step| !matches!(step.action, StepAction::AnswerCall { .. }))
                .collect(),
            messages: Vec::new(),
            late: Vec::new(),
            machines: machines.collect(),
            died: None,
            outcomes: Vec::new(),
            depth: 0,
            is_calm: false,
            seen: BTreeMap::new(),
        }));
        for machine in 0..MACHINE_COUNT {
            let mut store = lock(&world).machines[machine].place.create();
            store.join_log().unwrap();
            drop(store);
            for process in 0..PROCESSES_PER_MACHINE {
                let store = start_process(&world, machine, process);
                lock(&world).machines[machine].processes.push(Some(store));
            }
        }
        while lock(&world).outcomes.len() < COMMAND_COUNT {
            run_some_command(&world);
        }
        heal_and_check(&world);
        std::mem::take(&mut lock(&world).seen)
    }

    fn count(&mut self, trouble: &'static str) {
        *self.seen.entry(trouble).or_default() += 1;
    }

    /// Returns whether something happens that is rare, and never in the calm after the trouble.
    fn happens(&mut self, one_in: u64, trouble: &'static str) -> bool {
        let happens = !self.is_calm && self.random.is_one_in(one_in);
        if happens {
            self.count(trouble);
        }
        happens
    }

    fn change_network(&mut self) {
        let machine = self.random.next_index(MACHINE_COUNT);
        if self.machines[machine].is_cut {
            self.machines[machine].is_cut = !self.random.is_one_in(3);
        } else if self.happens(15, "network cut") {
            self.machines[machine].is_cut = true;
        }
        self.machines[machine].is_lossy = self.random.is_one_in(8);
    }

    fn append_message(&mut self, body: Vec<u8>) -> u64 {
        let last = self.messages.last().map_or(0, |message| message.sequence);
        // The order has gaps.
        let sequence = last + 1 + self.random.next_below(3);
        self.messages.push(SequencedMessage { sequence, body });
        sequence
    }

    fn deliver_late_messages(&mut self) {
        while !self.late.is_empty() && (self.is_calm || self.random.is_one_in(4)) {
            let index = self.random.next_index(self.late.len());
            let body = self.late.swap_remove(index);
            self.append_message(body);
        }
    }

    fn publish(&mut self, machine: usize, process: usize, body: &[u8]) -> Result<u64, SequencerError> {
        if self.machines[machine].is_cut || self.happens(12, "network cut") {
            return Err(SequencerError::Unreachable { source: "the network is cut".into() });
        }
        self.deliver_late_messages();
        let unknown = || Err(SequencerError::OutcomeUnknown { source: "the network is cut".into() });
        if self.happens(25, "died before publish") {
            self.died = Some((machine, process));
            return unknown();
        }
        let is_lossy = self.machines[machine].is_lossy;
        if self.happens(if is_lossy { 3 } else { 12 }, "message lost") {
            return unknown();
        }
        if self.happens(if is_lossy { 3 } else { 12 }, "late") {
            self.late.push(body.to_vec());
            return unknown();
        }
        let known = self.messages.iter().find(|message| message.body == body).map(|message| message.sequence);
        let sequence = match known.filter(|_| self.happens(2, "known by the service")) {
            Some(sequence) => sequence,
            None => self.append_message(body.to_vec()),
        };
        if self.happens(10, "repeated") {
            self.append_message(body.to_vec());
        }
        if self.happens(15, "died after publish") {
            self.died = Some((machine, process));
            return unknown();
        }
        if self.happens(if is_lossy { 2 } else { 8 }, "acknowledgement lost") {
            return unknown();
        }
        Ok(sequence)
    }

    fn read_after(&mut self, machine: usize, after: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        if self.machines[machine].is_cut {
            return Err(SequencerError::Unreachable { source: "the network is cut".into() });
        }
        self.deliver_late_messages();
        let mut messages = self.messages.clone();
        if self.happens(8, "server behind") {
            let lacked = self.random.next_index(4);
            messages.truncate(messages.len().saturating_sub(lacked));
        }
        if machine == 0 {
            self.plant_fault(&mut messages);
        }
        Ok(messages.into_iter().filter(|message| message.sequence > after).take(most).collect())
    }

    /// Returns what has reached a subscriber. A cut network is silent.
    fn send_messages_after(&mut self, machine: usize, after: u64) -> Vec<SequencedMessage> {
        if self.machines[machine].is_cut {
            return Vec::new();
        }
        let mut messages: Vec<_> = self.messages.iter().filter(|message| message.sequence > after).cloned().collect();
        if self.happens(3, "sent late") {
            messages.truncate(self.random.next_index(4));
        }
        messages
    }

    fn plant_fault(&self, messages: &mut Vec<SequencedMessage>) {
        if messages.len() < 12 {
            return;
        }
        match self.planted {
            Some(PlantedFault::OtherOrder) => {
                let body = std::mem::take(&mut messages[10].body);
                messages[10].body = std::mem::replace(&mut messages[11].body, body);
            }
            Some(PlantedFault::MissingMessage) => drop(messages.remove(10)),
            Some(PlantedFault::ChangedEvent) => {
                for message in &mut messages[5..] {
                    let text = String::from_utf8_lossy(&message.body)
                        .replace(r#""triggeredBy":"ada""#, r#""triggeredBy":"eve""#);
                    message.body = text.into_bytes();
                }
            }
            Some(PlantedFault::HiddenCommit) | None => {}
        }
    }
}

/// The connection of a process to the service. Commands of other processes come between its calls.
struct SimulatedLink {
    world: Weak<Mutex<FleetSimulation>>,
    machine: usize,
    process: usize,
    is_subscribed: bool,
}

impl SimulatedLink {
    fn run_other_commands(&self, one_in: u64) -> SharedSimulation {
        let world = self.world.upgrade().expect("the simulation runs");
        while {
            let mut world = lock(&world);
            world.depth < MAX_DEPTH && world.happens(one_in, "overtaken")
        } {
            run_some_command(&world);
        }
        world
    }
}

impl Sequencer for SimulatedLink {
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError> {
        let world = self.run_other_commands(4);
        lock(&world).publish(self.machine, self.process, body)
    }

    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        let world = self.run_other_commands(25);
        let messages = lock(&world).read_after(self.machine, sequence, most);
        // Another process of this machine may fold the messages first.
        self.run_other_commands(25);
        messages
    }

    fn subscribe_after(&mut self, _sequence: u64) -> Result<(), SequencerError> {
        self.is_subscribed = true;
        Ok(())
    }

    fn receive_after(
        &mut self,
        sequence: u64,
        _patience: Duration,
    ) -> Result<Option<Vec<SequencedMessage>>, SequencerError> {
        let world = self.run_other_commands(25);
        let mut world = lock(&world);
        self.is_subscribed &= !world.happens(10, "subscription lost");
        Ok(self.is_subscribed.then(|| world.send_messages_after(self.machine, sequence)))
    }
}

fn start_process(world: &SharedSimulation, machine: usize, process: usize) -> SqliteStore {
    let mut store = lock(world).machines[machine].place.open();
    let link = SimulatedLink { world: Arc::downgrade(world), machine, process, is_subscribed: false };
    store.attach_log(Box::new(link), format!("machine-{machine}"));
    if process == 0 {
        // Whether the log is read again does not depend on a clock.
        let reads_always = lock(world).random.is_one_in(4);
        store.subscribe_with_interval(if reads_always { Duration::ZERO } else { Duration::MAX });
    }
    let world = Arc::downgrade(world);
    store.set_outage_policy(move |_| {
        let world = world.upgrade().expect("the simulation runs");
        let mut world = lock(&world);
        world.died != Some((machine, process)) && world.random.is_one_in(2)
    });
    store
}

/// Runs the next command in a process that has none.
fn run_some_command(world: &SharedSimulation) {
    let mut locked = lock(world);
    locked.change_network();
    let machine = locked.random.next_index(MACHINE_COUNT);
    let process = locked.random.next_index(PROCESSES_PER_MACHINE);
    let Some(mut store) = locked.machines[machine].processes[process].take() else { return };
    let Some(step) = locked.steps.pop() else {
        locked.outcomes.push(CommandOutcome::NotInLog);
        locked.machines[machine].processes[process] = Some(store);
        return;
    };
    // The clocks of machines differ, so no check depends on the time, and it stands still.
    let (origin, command) = step.resolve(&*store.open_view().unwrap(), test_time()).unwrap();
    let nonce = locked.outcomes.len();
    locked.outcomes.push(CommandOutcome::Unknown);
    locked.depth += 1;
    let (rules, waits) = (locked.rules.clone(), locked.random.is_one_in(3));
    drop(locked);
    let outcome = match waits {
        true => commit_after_wait(world, &mut store, &rules, (&origin, &command), nonce as u128),
        false => store.execute_command(&rules, &origin, &command, nonce as u128),
    };
    let mut locked = lock(world);
    locked.depth -= 1;
    let has_died = locked.died.take_if(|died| *died == (machine, process)).is_some();
    locked.count(describe_result(&outcome));
    let outcome = match outcome {
        _ if has_died => CommandOutcome::Unknown,
        Ok(_) if locked.planted == Some(PlantedFault::HiddenCommit) => CommandOutcome::NotInLog,
        outcome => CommandOutcome::from_result(outcome).unwrap_or_else(|error| panic!("seed {}: {error}", locked.seed)),
    };
    locked.outcomes[nonce] = outcome;
    drop(locked);
    if has_died {
        drop(store);
        store = start_process(world, machine, process);
    }
    lock(world).machines[machine].processes[process] = Some(store);
}

fn describe_result(result: &Result<Vec<EventRecord>, ExecuteError>) -> &'static str {
    match result {
        Ok(_) => "acknowledged",
        Err(ExecuteError::Refused(_)) => "refused",
        Err(ExecuteError::Store(StoreError::Contended { .. })) => "conflict",
        Err(ExecuteError::Store(StoreError::Unreachable(SequencerError::OutcomeUnknown { .. }))) => "outcome unknown",
        Err(_) => "failed",
    }
}

/// Decides a command, and commits it when other commands have been executed.
fn commit_after_wait(
    world: &SharedSimulation,
    store: &mut SqliteStore,
    rules: &EngineRules,
    (origin, command): (&CommandOrigin, &Command),
    nonce: u128,
) -> Result<Vec<EventRecord>, ExecuteError> {
    let commit = {
        let view = store.open_view()?;
        let decided = decide(&*view, rules, origin, command)?;
        StoreCommit {
            id: CommitId { after: view.head_position().unwrap(), nonce },
            reads: decided.scopes_read().unwrap(),
            events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
        }
    };
    while {
        let mut world = lock(world);
        world.depth < MAX_DEPTH && world.happens(2, "overtaken")
    } {
        run_some_command(world);
    }
    match store.append_commit(&commit)? {
        AppendOutcome::Durable(positions) | AppendOutcome::AlreadyApplied(positions) => {
            let records = positions.into_iter().zip(commit.events);
            Ok(records.map(|(seq, envelope)| EventRecord { seq, envelope }).collect())
        }
        AppendOutcome::Conflict(_) => Err(StoreError::Contended { seconds: 0 }.into()),
        AppendOutcome::Unknown => Err(StoreError::OutcomeUnknown { source: None }.into()),
    }
}

/// Ends all trouble, lets all copies catch up, and checks them.
fn heal_and_check(world: &SharedSimulation) {
    let mut locked = lock(world);
    locked.is_calm = true;
    locked.deliver_late_messages();
    locked.machines.iter_mut().for_each(|machine| machine.is_cut = false);
    let seed = locked.seed;
    drop(locked);
    for machine in 0..MACHINE_COUNT {
        let store = start_process(world, machine, 0);
        store.catch_up().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    let world = lock(world);
    let places: Vec<&TempStore> = world.machines.iter().map(|machine| &machine.place).collect();
    let messages: Vec<LogMessage> =
        world.messages.iter().map(|message| LogMessage::decode(&message.body).unwrap()).collect();
    let case = format!("seed {seed}");
    check_same_copies(&case, &places);
    check_outcomes(&case, places[0], (0..).zip(&world.outcomes), &messages);
    let log = read_log(&places[0].open());
    let mut rows = MemoryView::default();
    log.iter().for_each(|record| rows.apply_event(record).unwrap());
    let violations = invariants::find_violations(&rows, &log);
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
}
