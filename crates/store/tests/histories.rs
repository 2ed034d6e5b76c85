//! Random histories in SQLite and in memory. Both stores agree about every event and every row after every command.

mod support;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use windlass_engine::{EdgeDirection, EngineRules, MemoryView, RowChange, StateView, Timestamp};
use windlass_store::{ExecuteError, MemorySequencer, SequencerFault, SqliteStore, Store, StoreSnapshot, TaskFilter};
use windlass_testkit::{HistoryStep, MemoryProject, gate_histories, gate_rules, histories, test_rules};

use support::{TempStore, read_log};

/// Returns every row of a snapshot, in the order of [`MemoryView::into_rows`], without configurations.
fn all_rows(snapshot: &StoreSnapshot<'_>) -> Vec<RowChange> {
    let mut tasks = Vec::new();
    snapshot
        .visit_tasks(&TaskFilter::default(), |task| {
            tasks.push(task);
            true
        })
        .expect("tasks can be read");
    let tasks = tasks.into_iter().map(|task| RowChange::PutTask(Box::new(task)));
    let edges = snapshot.all_edges().expect("edges can be read").into_iter().map(RowChange::PutEdge);
    let sessions = snapshot.all_sessions().expect("sessions can be read");
    let sessions = sessions.into_iter().map(|session| RowChange::PutSession(Box::new(session)));
    let effects = snapshot.pending_effects().expect("debts can be read");
    let effects = effects.into_iter().map(|effect| RowChange::PutEffect(Box::new(effect)));
    let conversations = snapshot.all_conversations().expect("conversations can be read");
    let conversations = conversations.into_iter().map(|row| RowChange::PutConversation(Box::new(row)));
    tasks.chain(edges).chain(sessions).chain(effects).chain(conversations).collect()
}

/// Returns the answers of a view that come from its indexes, not from its rows.
fn index_answers(view: &dyn StateView, now: Timestamp) -> Vec<String> {
    let mut answers = vec![format!("{:?} {:?} {:?}", view.head_position(), view.last_task_id(), view.last_edge_id())];
    let mut next = None;
    while let Some(found) = view.next_claimable(next).expect("a view can be read") {
        answers.push(format!("claimable {found:?}"));
        next = Some(found);
    }
    let closed = BTreeSet::from(["bug".parse().expect("a type's name")]);
    let mut next = None;
    while let Some(found) = view.next_claimable_except(&closed, next).expect("a view can be read") {
        answers.push(format!("claimable and no bug {found:?}"));
        next = Some(found);
    }
    let mut next = None;
    while let Some(found) = view.next_expired_lease(now, next).expect("a view can be read") {
        answers.push(format!("expired {found:?}"));
        next = Some(found);
    }
    let mut next = None;
    while let Some(effect) = view.next_pending_effect(next).expect("a view can be read") {
        next = Some(effect.id);
        answers.push(format!("owed {effect:?} {:?}", view.find_effect(effect.id)));
    }
    for id in (1..=view.last_task_id().expect("a view can be read").map_or(0, |id| id.0)).map(windlass_engine::TaskId) {
        let edges = [EdgeDirection::From, EdgeDirection::To].map(|direction| view.find_edges(id, direction));
        answers.push(format!("{:?} {edges:?}", view.find_task(id)));
    }
    answers
}

fn check_rows(store: &SqliteStore, memory: &MemoryView, now: Timestamp) -> Result<(), TestCaseError> {
    let snapshot = store.begin_snapshot().expect("the store can be read");
    let (configs, expected): (Vec<_>, Vec<_>) =
        memory.clone().into_rows().partition(|row| matches!(row, RowChange::PutConfig { .. }));
    prop_assert_eq!(all_rows(&snapshot), expected);
    for config in configs {
        let RowChange::PutConfig { digest, text } = config else { unreachable!("they were picked") };
        prop_assert_eq!(snapshot.find_config_text(digest).expect("the store can be read"), Some(text));
    }
    prop_assert_eq!(index_answers(&snapshot, now), index_answers(memory, now));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_store_matches_memory_view_for_random_histories(history in histories(30)) {
        check_agreement(test_rules(), &history)?;
    }

    /// Checks copies of one log on three machines, behind a service that loses and repeats messages.
    #[test]
    fn copies_of_log_match_memory_view_for_gate_histories(history in gate_histories(40)) {
        check_copies(gate_rules(), &history)?;
    }

    /// Checks the same with worktrees, gates, changes and findings.
    #[test]
    fn sqlite_store_matches_memory_view_for_gate_histories(history in gate_histories(40)) {
        check_agreement(gate_rules(), &history)?;
    }
}

fn check_agreement(rules: EngineRules, history: &[HistoryStep]) -> TestCaseResult {
    let temp_store = TempStore::new();
    let mut store = temp_store.create();
    let mut project = MemoryProject::new(rules);
    for (number, step) in (0_u128..).zip(history) {
        let (origin, command) = project.resolve_step(step);
        let outcome = store.execute_command(project.rules(), &origin, &command, number);
        match project.run_command(&origin, &command) {
            Ok(entries) => {
                let records: Vec<_> = entries.into_iter().map(|entry| entry.record).collect();
                prop_assert_eq!(outcome.expect("memory took it"), records);
            }
            Err(refusal) => match outcome {
                Err(ExecuteError::Refused(same)) => prop_assert_eq!(same.to_string(), refusal.to_string()),
                other => prop_assert!(false, "memory: {refusal}, the file: {other:?}"),
            },
        }
        check_rows(&store, project.memory(), project.now())?;
    }
    prop_assert_eq!(read_log(&store), project.log());
    let report = store.inspect_store().expect("it can be looked over");
    prop_assert!(report.is_sound(), "{report:?}");
    prop_assert_eq!(report.events, project.log().len() as u64);
    store.rebuild_rows().expect("it can be rebuilt");
    check_rows(&store, project.memory(), project.now())?;
    prop_assert_eq!(read_log(&store), project.log());
    prop_assert!(store.inspect_store().expect("it can be looked over").is_sound());
    Ok(())
}

fn check_copies(rules: EngineRules, history: &[HistoryStep]) -> TestCaseResult {
    let places = [TempStore::new(), TempStore::new(), TempStore::new()];
    let log = MemorySequencer::default();
    let mut copies: Vec<SqliteStore> =
        (0_u32..).zip(&places).map(|(machine, place)| join_log(place, &log, machine)).collect();
    let mut project = MemoryProject::new(rules);
    for (number, step) in (0_u128..).zip(history) {
        let (origin, command) = project.resolve_step(step);
        let copy = &mut copies[(number % 3) as usize];
        let outcome = copy.execute_command(project.rules(), &origin, &command, number);
        match project.run_command(&origin, &command) {
            Ok(entries) => {
                let records: Vec<_> = entries.into_iter().map(|entry| entry.record).collect();
                prop_assert_eq!(outcome.expect("memory took it"), records);
            }
            Err(refusal) => prop_assert!(
                matches!(&outcome, Err(ExecuteError::Refused(same)) if same.to_string() == refusal.to_string()),
                "memory: {refusal}, the copy: {outcome:?}"
            ),
        }
        check_rows(copy, project.memory(), project.now())?;
    }
    for copy in &mut copies {
        copy.catch_up().expect("the log can be reached");
        check_rows(copy, project.memory(), project.now())?;
        prop_assert_eq!(read_log(copy), project.log());
        prop_assert_eq!(copy.find_wrong_scopes().expect("the store can be read"), Vec::<String>::new());
        prop_assert!(copy.inspect_store().expect("it can be looked over").is_sound());
    }
    Ok(())
}

/// Opens a store as a copy of a log whose service fails now and then.
fn join_log(place: &TempStore, log: &MemorySequencer, machine: u32) -> SqliteStore {
    let mut calls = machine;
    let faults = move || {
        calls += 1;
        [
            None,
            Some(SequencerFault::LostAcknowledgement),
            Some(SequencerFault::RepeatedMessage),
            Some(SequencerFault::LostMessage),
        ][(calls % 7 % 4) as usize]
    };
    let mut store = place.create();
    store.join_log().expect("it is empty");
    store.attach_log(Box::new(log.with_faults(faults)), format!("machine-{machine}"));
    store
}
