//! Decisions that other commits overtake: a commit that is no conflict has the same events, rows and digests as a decision that was made
//! after the others. So the scopes that a decision reads are complete.
//!
//! Two answers of the state belong to no scope. A worker may claim a task although a more urgent one has become claimable since, and a
//! configuration may be recorded twice. The first property lists them: if these answers stay, the decision stays, and if they do
//! not, no invariant breaks.

mod support;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use windlass_engine::{
    BridgeCaller, BridgeConversation, Command, CommandOrigin, CommitId, ConfigDigest, DecisionScope, EdgeDirection,
    EdgeId, EffectId, EngineRules, EventEnvelope, EventRecord, PendingEffect, Seq, Session, SessionName, StateView,
    Task, TaskEdge, TaskId, TaskPriority, Timestamp, TypeName, ViewResult, decide,
};
use windlass_store::{AppendOutcome, ExecuteError, MemorySequencer, SqliteStore, Store, StoreCommit};
use windlass_testkit::{
    HistoryStep, MemoryProject, gate_histories, gate_rules, histories, invariants, session_histories, test_rules,
};

use support::{TempStore, next_nonce, read_chain, read_scope_versions, test_time};

fn proptest_config(cases: u32) -> ProptestConfig {
    // `PROPTEST_CASES` asks for more cases than the default of all properties.
    let default = ProptestConfig::default().cases;
    let cases = if default > 256 { default } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(proptest_config(40))]

    #[test]
    fn undisturbed_decision_of_random_history_equals_later_one(history in histories(40), others in 1..4_usize) {
        check_later_decisions(test_rules(), &history, others)?;
    }

    #[test]
    fn undisturbed_decision_of_session_history_equals_later_one(history in session_histories(60), others in 1..4_usize) {
        check_later_decisions(test_rules(), &history, others)?;
    }

    #[test]
    fn undisturbed_decision_of_gate_history_equals_later_one(history in gate_histories(60), others in 1..4_usize) {
        check_later_decisions(gate_rules(), &history, others)?;
    }
}

proptest! {
    #![proptest_config(proptest_config(16))]

    #[test]
    fn overtaken_message_of_random_history_equals_later_decision(history in histories(40)) {
        check_overtaken_messages(test_rules(), &history)?;
    }

    #[test]
    fn overtaken_message_of_gate_history_equals_later_decision(history in gate_histories(40)) {
        check_overtaken_messages(gate_rules(), &history)?;
    }
}

/// Decides each command of a history, and one that comes later, before some other commands.
fn check_later_decisions(rules: EngineRules, history: &[HistoryStep], others: usize) -> TestCaseResult {
    let mut project = MemoryProject::new(rules);
    for (index, step) in history.iter().enumerate() {
        let rest = &history[index + 1..];
        for mine in [Some(step), rest.get(others)].into_iter().flatten() {
            check_later_decision(project.clone(), mine, &rest[..others.min(rest.len())])?;
        }
        let _ = project.run_step(step);
    }
    Ok(())
}

fn check_later_decision(mut project: MemoryProject, mine: &HistoryStep, others: &[HistoryStep]) -> TestCaseResult {
    let (origin, command) = project.resolve_step(mine);
    let view = SearchRecorder::new(project.memory());
    let Some(early) = decide_events(&view, project.rules(), &origin, &command) else { return Ok(()) };
    let searches = view.into_searches();
    for step in others {
        let _ = project.run_step(step);
    }
    let memory = project.memory();
    if find_moved_scope(memory, &early.reads).is_some() {
        return Ok(());
    }
    if searches.find_the_same(memory) {
        let late = decide_events(memory, project.rules(), &origin, &command).map(|late| late.events);
        prop_assert_eq!(late.as_ref(), Some(&early.events), "{:?} reads {:?}", command, early.reads);
    }
    let (mut rows, mut log) = (memory.clone(), project.log().to_vec());
    for envelope in early.events {
        let seq = rows.head_position().expect("in memory").next();
        log.push(EventRecord { seq, envelope });
        let applied = rows.apply_event(&log[log.len() - 1]);
        prop_assert!(applied.is_ok(), "{:?} cannot be folded: {:?}", command, applied);
    }
    let violations = invariants::find_violations(&rows, &log);
    prop_assert!(violations.is_empty(), "{:#?} after {:?}", violations, command);
    Ok(())
}

/// The events of a decision, and the scopes that it read.
struct EarlyDecision {
    events: Vec<EventEnvelope>,
    reads: BTreeMap<DecisionScope, u64>,
}

fn decide_events(
    view: &dyn StateView,
    rules: &EngineRules,
    origin: &CommandOrigin,
    command: &Command,
) -> Option<EarlyDecision> {
    let decided = decide(view, rules, origin, command).ok()?;
    let events = decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect();
    Some(EarlyDecision { events, reads: decided.scopes_read().expect("the state can be read") })
}

fn find_moved_scope(view: &dyn StateView, reads: &BTreeMap<DecisionScope, u64>) -> Option<DecisionScope> {
    let has_moved = |(scope, version): &(&DecisionScope, &u64)| {
        view.scope_version(scope).expect("the state can be read") != **version
    };
    reads.iter().find(has_moved).map(|(scope, _)| scope.clone())
}

type ClaimablePlace = Option<(TaskPriority, TaskId)>;

/// The answers to a decision that belong to no scope.
#[derive(Default)]
struct SearchAnswers {
    claimable: RefCell<Vec<(BTreeSet<TypeName>, ClaimablePlace, ClaimablePlace)>>,
    configs: RefCell<Vec<(ConfigDigest, bool)>>,
}

impl SearchAnswers {
    fn find_the_same(&self, view: &dyn StateView) -> bool {
        let is_claimable_same = |(closed, after, answer): &(BTreeSet<TypeName>, ClaimablePlace, ClaimablePlace)| {
            view.next_claimable_except(closed, *after).expect("the state can be read") == *answer
        };
        let is_config_same =
            |(digest, known): &(ConfigDigest, bool)| view.has_config(*digest).expect("the state can be read") == *known;
        self.claimable.borrow().iter().all(is_claimable_same) && self.configs.borrow().iter().all(is_config_same)
    }
}

/// A view that notes the answers that belong to no scope.
struct SearchRecorder<'v> {
    view: &'v dyn StateView,
    searches: SearchAnswers,
}

impl<'v> SearchRecorder<'v> {
    fn new(view: &'v dyn StateView) -> Self {
        Self { view, searches: SearchAnswers::default() }
    }

    fn into_searches(self) -> SearchAnswers {
        self.searches
    }
}

impl StateView for SearchRecorder<'_> {
    fn head_position(&self) -> ViewResult<Seq> {
        self.view.head_position()
    }

    fn find_task(&self, id: TaskId) -> ViewResult<Option<Task>> {
        self.view.find_task(id)
    }

    fn last_task_id(&self) -> ViewResult<Option<TaskId>> {
        self.view.last_task_id()
    }

    fn find_edges(&self, id: TaskId, direction: EdgeDirection) -> ViewResult<Vec<TaskEdge>> {
        self.view.find_edges(id, direction)
    }

    fn last_edge_id(&self) -> ViewResult<Option<EdgeId>> {
        self.view.last_edge_id()
    }

    fn next_claimable_except(&self, closed: &BTreeSet<TypeName>, after: ClaimablePlace) -> ViewResult<ClaimablePlace> {
        let answer = self.view.next_claimable_except(closed, after)?;
        self.searches.claimable.borrow_mut().push((closed.clone(), after, answer));
        Ok(answer)
    }

    fn next_expired_lease(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, TaskId)>,
    ) -> ViewResult<Option<(Timestamp, TaskId)>> {
        self.view.next_expired_lease(before, after)
    }

    fn find_session(&self, name: &SessionName) -> ViewResult<Option<Session>> {
        self.view.find_session(name)
    }

    fn find_effect(&self, id: EffectId) -> ViewResult<Option<PendingEffect>> {
        self.view.find_effect(id)
    }

    fn find_conversation(&self, caller: &BridgeCaller) -> ViewResult<Option<BridgeConversation>> {
        self.view.find_conversation(caller)
    }

    fn next_pending_effect(&self, after: Option<EffectId>) -> ViewResult<Option<PendingEffect>> {
        self.view.next_pending_effect(after)
    }

    fn find_config_text(&self, digest: ConfigDigest) -> ViewResult<Option<String>> {
        let text = self.view.find_config_text(digest)?;
        self.searches.configs.borrow_mut().push((digest, text.is_some()));
        Ok(text)
    }

    fn has_config(&self, digest: ConfigDigest) -> ViewResult<bool> {
        let known = self.view.has_config(digest)?;
        self.searches.configs.borrow_mut().push((digest, known));
        Ok(known)
    }
}

/// Another machine, and a store of its own that takes every accepted commit one after another.
struct OtherMachine {
    copy: SqliteStore,
    twin: SqliteStore,
    rules: EngineRules,
    now: Timestamp,
    /// The commands that overtake the next message.
    overtaking: VecDeque<HistoryStep>,
}

impl OtherMachine {
    fn resolve_step(&mut self, step: &HistoryStep) -> (CommandOrigin, Command) {
        self.now = self.now.add_millis(step.after);
        step.resolve(&*self.twin.open_view().expect("the store can be read"), self.now).expect("the store can be read")
    }

    fn commit_overtaking(&mut self) {
        while let Some(step) = self.overtaking.pop_front() {
            let (origin, command) = self.resolve_step(&step);
            let nonce = next_nonce();
            let copied = self.copy.execute_command(&self.rules, &origin, &command, nonce);
            match self.twin.execute_command(&self.rules, &origin, &command, nonce) {
                Ok(records) => assert_eq!(copied.expect("the twin took it"), records),
                Err(ExecuteError::Refused(refusal)) => {
                    assert_eq!(copied.expect_err("the twin refused it").to_string(), refusal.to_string());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn join_log(place: &TempStore, log: MemorySequencer) -> SqliteStore {
    let mut store = place.create();
    store.join_log().expect("it is empty");
    store.attach_log(Box::new(log), "mill".to_owned());
    store
}

/// Publishes each third command of a history after the two that follow it, although it was decided before them.
fn check_overtaken_messages(rules: EngineRules, history: &[HistoryStep]) -> TestCaseResult {
    let places = [TempStore::new(), TempStore::new(), TempStore::new()];
    let log = MemorySequencer::default();
    let other = Arc::new(Mutex::new(OtherMachine {
        copy: join_log(&places[1], log.clone()),
        twin: places[2].create(),
        rules: rules.clone(),
        now: test_time(),
        overtaking: VecDeque::new(),
    }));
    let overtaking = Arc::clone(&other);
    let overtaken_log = log.with_faults(move || {
        overtaking.lock().unwrap_or_else(PoisonError::into_inner).commit_overtaking();
        None
    });
    let mut copy = join_log(&places[0], overtaken_log);
    for steps in history.chunks(3) {
        copy.catch_up().expect("the log can be read");
        let lock_other = || other.lock().unwrap_or_else(PoisonError::into_inner);
        let (origin, command) = lock_other().resolve_step(&steps[0]);
        lock_other().overtaking.extend(steps[1..].iter().cloned());
        let nonce = next_nonce();
        if let Some((commit, searches)) = decide_commit(&copy, &rules, &origin, &command, nonce) {
            let outcome = copy.append_commit(&commit).expect("the log can be reached");
            let mut other = lock_other();
            other.commit_overtaking();
            let twin = &mut other.twin;
            let moved = find_moved_scope(&*twin.open_view().expect("the store can be read"), &commit.reads);
            let is_same = searches.find_the_same(&*twin.open_view().expect("the store can be read"));
            match (&outcome, moved) {
                (AppendOutcome::Conflict(_), Some(_)) => {}
                (AppendOutcome::Durable(positions), None) if is_same => {
                    let late = twin.execute_command(&rules, &origin, &command, nonce).expect("the copy took it");
                    let positions = positions.iter().zip(&commit.events);
                    let early = positions.map(|(seq, envelope)| EventRecord { seq: *seq, envelope: envelope.clone() });
                    prop_assert_eq!(early.collect::<Vec<_>>(), late);
                }
                (AppendOutcome::Durable(_), None) => {
                    prop_assert_eq!(twin.append_commit(&commit).expect("the store can be written"), outcome);
                }
                (outcome, moved) => prop_assert!(false, "{command:?}: {outcome:?}, but {moved:?} has moved"),
            }
        }
        lock_other().commit_overtaking();
    }
    copy.catch_up().expect("the log can be read");
    drop(copy);
    let other =
        Arc::into_inner(other).expect("the copy has ended").into_inner().unwrap_or_else(PoisonError::into_inner);
    other.copy.catch_up().expect("the log can be read");
    check_same_stores(&places)
}

/// Decides a command on a copy without an append. A decision without events is not published.
fn decide_commit(
    copy: &SqliteStore,
    rules: &EngineRules,
    origin: &CommandOrigin,
    command: &Command,
    nonce: u128,
) -> Option<(StoreCommit, SearchAnswers)> {
    let view = copy.open_view().expect("the store can be read");
    let recorder = SearchRecorder::new(&*view);
    let decision = decide_events(&recorder, rules, origin, command).filter(|decision| !decision.events.is_empty())?;
    let id = CommitId { after: recorder.head_position().expect("the store can be read"), nonce };
    Some((StoreCommit { id, reads: decision.reads, events: decision.events }, recorder.into_searches()))
}

/// Checks that all stores have the same digests, and the rows that the log folds to.
fn check_same_stores(places: &[TempStore; 3]) -> TestCaseResult {
    let chains = places.each_ref().map(read_chain);
    prop_assert_eq!(&chains[0], &chains[2]);
    prop_assert_eq!(&chains[1], &chains[2]);
    for place in places {
        let store = place.open();
        let report = store.inspect_store().expect("the store can be inspected");
        prop_assert!(report.is_sound(), "{report:?}");
    }
    let versions = [&places[0], &places[1]].map(read_scope_versions);
    prop_assert_eq!(&versions[0], &versions[1]);
    for place in &places[..2] {
        prop_assert_eq!(place.open().find_wrong_scopes().expect("the store can be read"), Vec::<String>::new());
    }
    Ok(())
}
