//! Workers in simulated time: some hold their tasks by a lease with an end, some by a session. They stall, die and restart,
//! and their clocks jump. In every history a task has one owner at a time and is completed once, and in the end all tasks are
//! completed.
//!
//! A failing case names its seed: `WINDLASS_TEST_SEED=7 cargo nextest run -p windlass-engine --test simulation` repeats it.
//! `WINDLASS_TEST_CRASH_ALL` runs more cases.

#![expect(clippy::disallowed_methods, reason = "environment variables select the cases")]

use std::collections::BTreeMap;

use windlass_engine::{
    Authority, Command, CommandOrigin, EffectKind, EngineRules, Epoch, Event, EventRecord, EventSubject, EventType,
    HookClass, HookEffect, HookFailurePolicy, HookOutcome, HookPlan, HookRegistry, MemoryView, NewSession, NewTask,
    NextAction, OwnerName, Promise, Refusal, SessionName, SessionTerms, StateView as _, TaskId, TaskState, Timestamp,
    TurnAnswer, WorkSource, WorkspaceMode, decide,
};
use windlass_testkit::SeededRandom;
use windlass_testkit::invariants::{self, StateRows};

const TASK_COUNT: u64 = 12;
const WORKER_COUNT: usize = 4;
/// The length of a lease, and the maximum silence of a session's owner, in milliseconds.
const LEASE_MILLIS: i64 = 10_000;
/// The steps with injected trouble, and the steps without it that follow.
const FAULTY_STEPS: usize = 300;
const QUIET_STEPS: usize = 4_000;

#[test]
fn every_task_has_one_owner_and_completes_once() {
    let seeds = match (std::env::var("WINDLASS_TEST_SEED"), std::env::var_os("WINDLASS_TEST_CRASH_ALL")) {
        (Ok(seed), _) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        (Err(_), Some(_)) => 0..2_000_u64,
        (Err(_), None) => 0..40,
    };
    let mut seen = BTreeMap::<&str, usize>::new();
    for seed in seeds.clone() {
        let world = WorkerSimulation::run_seed(seed);
        world.seen.into_iter().for_each(|(what, times)| *seen.entry(what).or_default() += times);
    }
    // Every kind of trouble has occurred.
    if seeds.end - seeds.start > 1 {
        for what in ["died", "stood still", "jumped", "lease ran out", "was silent", "taken up", "too late"] {
            assert!(seen.contains_key(what), "{what} never happened: {seen:?}");
        }
    }
    println!("simulated workers: {} histories, 0 of them wrong", seeds.end - seeds.start);
}

/// The checks of this simulation detect faults.
#[test]
fn planted_faults_are_detected() {
    let planted = [
        (PlantedFault::AnyEpoch, "was completed by another worker"),
        (PlantedFault::Abandoned, "are left"),
        (PlantedFault::LostEvent, ""),
        (PlantedFault::TwoOwners, "has two owners"),
        (PlantedFault::DoneTwice, "was done twice"),
        (PlantedFault::AnySession, "was completed by a session that does not hold it"),
    ];
    for (planted, expected) in planted {
        // Not in every history does a worker lose the lease of a task that it reports about.
        let said = (0..10).find_map(|seed| {
            let noticed = std::panic::catch_unwind(|| drop(WorkerSimulation::run_seed_with(seed, Some(planted))));
            noticed.err().map(|said| (seed, said.downcast::<String>().map_or_else(|_| String::new(), |said| *said)))
        });
        let (seed, said) = said.unwrap_or_else(|| panic!("{planted:?} was not noticed"));
        assert!(said.contains(expected) && said.contains(&format!("seed {seed}: ")), "{planted:?}: {said}");
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum WorkerActivity {
    Nothing,
    /// A task held by a lease, with the remaining units of work.
    Task(TaskId, Epoch, u64),
    Session(SessionName),
}

#[derive(Debug)]
struct SimulatedWorker {
    owner: OwnerName,
    doing: WorkerActivity,
    /// The offset of the worker's clock.
    skew: i64,
    /// The worker does nothing before this time.
    still_until: i64,
    last_heard: i64,
}

/// A fault that the checks have to detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlantedFault {
    /// A worker that has lost its lease reports with the epoch of the present holder.
    AnyEpoch,
    /// No worker resumes the session of a dead one.
    Abandoned,
    /// The log lacks an event that was applied.
    LostEvent,
    /// A claim is applied twice, by two owners.
    TwoOwners,
    /// The completion of a task is applied twice.
    DoneTwice,
    /// A session completes a task that it does not hold.
    AnySession,
}

struct WorkerSimulation {
    seed: u64,
    planted: Option<PlantedFault>,
    chance: SeededRandom,
    memory: MemoryView,
    log: Vec<EventRecord>,
    now: i64,
    workers: Vec<SimulatedWorker>,
    born: u64,
    sessions: u64,
    holders: BTreeMap<TaskId, (OwnerName, Epoch)>,
    /// The sessions among the holders, as the log names them.
    holding: BTreeMap<TaskId, SessionName>,
    epochs: BTreeMap<TaskId, Epoch>,
    completed: BTreeMap<TaskId, usize>,
    seen: BTreeMap<&'static str, usize>,
}

impl WorkerSimulation {
    fn run_seed(seed: u64) -> Self {
        Self::run_seed_with(seed, None)
    }

    fn run_seed_with(seed: u64, planted: Option<PlantedFault>) -> Self {
        let mut world = Self {
            seed,
            planted,
            chance: SeededRandom::new(seed),
            memory: MemoryView::default(),
            log: Vec::new(),
            now: 1_768_644_000_000,
            workers: Vec::new(),
            born: 0,
            sessions: 0,
            holders: BTreeMap::new(),
            holding: BTreeMap::new(),
            epochs: BTreeMap::new(),
            completed: BTreeMap::new(),
            seen: BTreeMap::new(),
        };
        world.workers = (0..WORKER_COUNT).map(|_| world.spawn_worker()).collect();
        for number in 0..TASK_COUNT {
            let earlier =
                (number > 0 && world.chance.next_below(3) == 0).then(|| TaskId(1 + world.chance.next_below(number)));
            let new =
                NewTask { goal: "part".to_owned(), depends_on: earlier.into_iter().collect(), ..NewTask::default() };
            world.commit_command(0, Authority::Person, &Command::CreateTask(new)).expect("a task");
        }
        for _ in 0..FAULTY_STEPS {
            world.inject_trouble();
            world.step_one_worker();
        }
        for _ in 0..QUIET_STEPS {
            if world.is_all_work_done() {
                break;
            }
            world.step_one_worker();
        }
        world.check_final_state();
        world
    }

    fn spawn_worker(&mut self) -> SimulatedWorker {
        self.born += 1;
        let owner = format!("w{}", self.born).parse().expect("a name");
        SimulatedWorker { owner, doing: WorkerActivity::Nothing, skew: 0, still_until: 0, last_heard: self.now }
    }

    fn count_occurrence(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn pick_worker(&mut self) -> usize {
        usize::try_from(self.chance.next_below(WORKER_COUNT as u64)).expect("few")
    }

    /// Injects trouble now and then.
    fn inject_trouble(&mut self) {
        let who = self.pick_worker();
        let long = i64::try_from(self.chance.next_below(3 * LEASE_MILLIS.unsigned_abs())).expect("not that long");
        match self.chance.next_below(20) {
            0 => {
                self.workers[who] = self.spawn_worker();
                self.count_occurrence("died");
            }
            1 => {
                self.workers[who].still_until = self.now + long;
                self.count_occurrence("stood still");
            }
            2 => {
                self.workers[who].skew += long - 3 * LEASE_MILLIS / 2;
                self.count_occurrence("jumped");
            }
            _ => {}
        }
    }

    fn step_one_worker(&mut self) {
        self.now += i64::try_from(self.chance.next_below(1500)).expect("not that long");
        let who = self.pick_worker();
        if self.workers[who].still_until > self.now {
            return;
        }
        match self.workers[who].doing.clone() {
            WorkerActivity::Nothing => self.find_work(who),
            WorkerActivity::Task(id, epoch, left) => self.work_on_task(who, id, epoch, left),
            WorkerActivity::Session(name) => self.advance_session(who, &name),
        }
        self.workers[who].last_heard = self.now;
    }

    fn find_work(&mut self, who: usize) {
        if self.recover_abandoned_work(who) {
            return;
        }
        // A person unblocks a task that its hooks have stopped.
        let blocked = self.memory.tasks().find(|task| task.state == TaskState::Blocked).map(|task| task.id);
        if let Some(id) = blocked {
            self.commit_command(who, Authority::Person, &Command::UnblockTask { id }).expect("it is blocked");
        }
        let (owner, at) = (self.workers[who].owner.clone(), self.worker_clock(who));
        if self.chance.next_below(2) == 0 {
            let until = at.add_millis(LEASE_MILLIS);
            let claim = Command::ClaimTask { id: None, owner, until, agent: None };
            let Ok(records) = self.commit_command(who, Authority::Person, &claim) else { return };
            let claimed = records.iter().find_map(|record| match (&record.envelope.event, record.envelope.node) {
                (Event::TaskClaimed(claimed), EventSubject::Task(id)) => Some((id, claimed.epoch)),
                _ => None,
            });
            let (id, epoch) = claimed.expect("a claim says so");
            self.workers[who].doing = WorkerActivity::Task(id, epoch, self.chance.next_below(12));
            return;
        }
        let ready = self.memory.tasks().find(|task| task.state == TaskState::Ready && task.lease.is_none());
        let Some(id) = ready.map(|task| task.id) else { return };
        self.sessions += 1;
        let name: SessionName = format!("s{}", self.sessions).parse().expect("a name");
        let new = NewSession {
            name: name.clone(),
            task: Some(id),
            goal: None,
            work: WorkSource::Given,
            workspace_mode: WorkspaceMode::InPlace,
            config: "hooks: {}".to_owned(),
            protected: None,
            agent: "command:true".to_owned(),
            terms: SessionTerms::default(),
            owner,
            nonce: self.sessions,
            fresh: false,
        };
        if self.commit_command(who, Authority::Person, &Command::StartSession(new)).is_ok() {
            self.workers[who].doing = WorkerActivity::Session(name);
        }
    }

    /// Resumes the sessions of dead workers, and takes tasks from silent ones.
    fn recover_abandoned_work(&mut self, who: usize) -> bool {
        let owner = self.workers[who].owner.clone();
        let alive = |name: &OwnerName| self.workers.iter().find(|worker| worker.owner == *name);
        let rows = StateRows::read(&self.memory);
        let dead = rows.sessions.iter().find(|session| !session.is_over() && alive(&session.owner).is_none());
        if let Some(session) = dead.filter(|_| self.planted != Some(PlantedFault::Abandoned)) {
            let (name, dead) = (session.name.clone(), session.owner.clone());
            let resume = Command::ResumeSession {
                name: name.clone(),
                dead: dead.clone(),
                owner: owner.clone(),
                max_iterations: None,
            };
            self.commit_command(who, Authority::Person, &resume)
                .unwrap_or_else(|refusal| panic!("seed {}: {refusal}", self.seed));
            for effect in
                rows.effects.iter().filter(|effect| effect.session.as_ref() == Some(&name) && effect.owner == dead)
            {
                let recover = Command::RecoverEffect { effect: effect.id, dead: dead.clone(), owner: owner.clone() };
                // The session may have settled the effect itself.
                let _ = self.commit_command(who, Authority::Person, &recover);
            }
            self.workers[who].doing = WorkerActivity::Session(name);
            self.count_occurrence("taken up");
            return true;
        }
        let silent = |name: &OwnerName| alive(name).is_some_and(|worker| self.now - worker.last_heard > LEASE_MILLIS);
        let held = rows.tasks.iter().filter_map(|task| Some((task.id, task.lease.as_ref()?)));
        let lost = held
            .filter(|(_, lease)| lease.session.is_some() && silent(&lease.owner))
            .map(|(id, lease)| (id, lease.epoch));
        let Some((id, epoch)) = lost.into_iter().next() else { return false };
        self.commit_command(who, Authority::Person, &Command::ExpireLease { id, epoch }).expect("it is held");
        self.count_occurrence("was silent");
        true
    }

    fn work_on_task(&mut self, who: usize, id: TaskId, epoch: Epoch, left: u64) {
        if left > 0 {
            self.workers[who].doing = WorkerActivity::Task(id, epoch, left - 1);
            return;
        }
        let complete = Command::CompleteTask { id, result: None, artifacts: vec![] };
        let holder = self.holders.get(&id).cloned();
        let said = match (self.planted, &holder) {
            (Some(PlantedFault::AnyEpoch), Some((_, current))) => *current,
            _ => epoch,
        };
        match self.commit_command(who, Authority::Holder(said), &complete) {
            Ok(_) => {
                let own = (self.workers[who].owner.clone(), epoch);
                assert_eq!(holder, Some(own), "seed {}: {id} was completed by another worker", self.seed);
            }
            // An epoch gives no authority over a task that a session holds.
            Err(
                Refusal::LeaseLost { .. }
                | Refusal::Held { .. }
                | Refusal::IllegalMove { state: TaskState::Completed, .. },
            ) => self.count_occurrence("too late"),
            Err(other) => panic!("seed {}: {other}", self.seed),
        }
        self.workers[who].doing = WorkerActivity::Nothing;
    }

    fn advance_session(&mut self, who: usize, name: &SessionName) {
        let owner = self.workers[who].owner.clone();
        let session = self.memory.find_session(name).expect("in memory").expect("it was started");
        let effects = StateRows::read(&self.memory).effects;
        let effect = effects.into_iter().find(|effect| effect.owner == owner && effect.session.as_ref() == Some(name));
        let command = match (effect, session.next_action()) {
            _ if session.is_over() => None,
            (Some(effect), _) => Some(match effect.kind {
                EffectKind::Turn { run, .. } => {
                    let promise = (self.chance.next_below(3) > 0).then_some(Promise::Complete);
                    Command::FinishTurn { run, answer: TurnAnswer { promise, ..TurnAnswer::default() } }
                }
                EffectKind::Hook(_) if effect.attempts == 0 => Command::BeginEffect { effect: effect.id, owner },
                EffectKind::Hook(_) => {
                    let outcome =
                        if self.chance.next_below(4) == 0 { HookOutcome::Block } else { HookOutcome::Success };
                    Command::FinishEffect { effect: effect.id, owner, report: Box::new(outcome.into()) }
                }
            }),
            (None, NextAction::Decision | NextAction::WaitUntil(_)) => {
                Some(Command::AdvanceSession { name: name.clone() })
            }
            (None, _) => None,
        };
        match command {
            None => self.workers[who].doing = WorkerActivity::Nothing,
            Some(command) => {
                let held = self.holding.clone();
                let given = self.commit_command(who, Authority::Person, &command);
                for record in given.iter().flatten() {
                    let (EventSubject::Task(id), Event::TaskCompleted(_)) =
                        (record.envelope.node, &record.envelope.event)
                    else {
                        continue;
                    };
                    let holder = held.get(&id).filter(|_| self.planted != Some(PlantedFault::AnySession));
                    let seed = self.seed;
                    assert_eq!(
                        holder,
                        Some(name),
                        "seed {seed}: {id} was completed by a session that does not hold it"
                    );
                }
                // The session skips a hook when it is about to end, and names the next step.
                if given.is_err() {
                    let _ =
                        self.commit_command(who, Authority::Person, &Command::AdvanceSession { name: name.clone() });
                }
            }
        }
    }

    fn worker_clock(&self, who: usize) -> Timestamp {
        Timestamp::from_millis(self.now + self.workers[who].skew)
    }

    fn commit_command(
        &mut self,
        who: usize,
        authority: Authority,
        command: &Command,
    ) -> Result<Vec<EventRecord>, Refusal> {
        let by = self.workers[who].owner.to_string();
        let origin = CommandOrigin { by, at: self.worker_clock(who), authority, run: None, via: None };
        let check = HookEffect {
            hook: "check".to_owned(),
            point: "stop".parse().expect("a hook point"),
            class: HookClass::Gate,
            on_failure: HookFailurePolicy::Block,
            send_backs: None,
        };
        let effects = HookPlan::for_all_tasks(
            "hooks: {}",
            self.workers[who].owner.clone(),
            [(EventType::TurnFinished, vec![check])],
        );
        let rules =
            EngineRules { registry: HookRegistry::with_builtins(), effects: Some(effects), ..EngineRules::default() };
        let (entries, _) = decide(&self.memory, &rules, &origin, command)?.into_parts();
        let records: Vec<EventRecord> = entries.into_iter().map(|entry| entry.record).collect();
        for record in &records {
            self.memory.apply_event(record).expect("it fits");
            self.check_ownership(record);
            self.plant_fault(record);
            if self.planted != Some(PlantedFault::LostEvent) || record.seq.0 % 50 != 49 {
                self.log.push(record.clone());
            }
        }
        Ok(records)
    }

    fn plant_fault(&mut self, record: &EventRecord) {
        let mut again = record.clone();
        match (self.planted, &mut again.envelope.event) {
            (Some(PlantedFault::TwoOwners), Event::TaskClaimed(claimed)) => {
                claimed.owner = "another-worker".parse().expect("a name");
                claimed.epoch.0 += 1;
            }
            (Some(PlantedFault::DoneTwice), Event::TaskCompleted(_)) => {}
            _ => return,
        }
        self.check_ownership(&again);
    }

    /// Checks that a task has one owner at a time, each with a greater epoch than the last, and is completed once.
    fn check_ownership(&mut self, record: &EventRecord) {
        let EventSubject::Task(id) = record.envelope.node else { return };
        let seed = self.seed;
        match &record.envelope.event {
            Event::TaskClaimed(claimed) => {
                let last = self.epochs.insert(id, claimed.epoch);
                assert!(last < Some(claimed.epoch), "seed {seed}: {id} has {:?} after {last:?}", claimed.epoch);
                let before = self.holders.insert(id, (claimed.owner.clone(), claimed.epoch));
                assert_eq!(before, None, "seed {seed}: {id} has two owners");
                self.holding.extend(claimed.session.clone().map(|session| (id, session)));
            }
            Event::LeaseExpired(_) => {
                self.remove_holder(id);
                self.count_occurrence("lease ran out");
            }
            Event::TaskCompleted(_) => {
                self.remove_holder(id);
                let times = self.completed.entry(id).or_default();
                *times += 1;
                assert_eq!(*times, 1, "seed {seed}: {id} was done twice");
            }
            Event::TaskReleased(_) | Event::TaskNeedsContinuation(_) | Event::TaskBlocked(_) | Event::TaskFailed(_) => {
                self.remove_holder(id);
            }
            _ => {}
        }
    }

    fn remove_holder(&mut self, id: TaskId) {
        self.holders.remove(&id);
        self.holding.remove(&id);
    }

    fn is_all_work_done(&self) -> bool {
        self.memory.tasks().all(|task| task.state == TaskState::Completed)
            && StateRows::read(&self.memory).sessions.iter().all(|session| session.is_over())
    }

    fn check_final_state(&self) {
        let left: Vec<String> = self
            .memory
            .tasks()
            .filter(|task| task.state != TaskState::Completed)
            .map(|task| format!("{} {:?} {:?} {:?}", task.id, task.state, task.lease, task.blocked))
            .collect();
        assert!(self.is_all_work_done(), "seed {}: {left:#?} are left, with {:#?}", self.seed, self.workers);
        let mut wrong = invariants::find_violations(&self.memory, &self.log);
        // A clock that was set back gives earlier times.
        wrong.retain(|what| !what.ends_with("before it was created"));
        assert!(wrong.is_empty(), "seed {}: {wrong:#?}", self.seed);
    }
}
