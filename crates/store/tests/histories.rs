//! Random histories, in a file and in memory at once: both agree about every event and every row after every command.

mod scene;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use windlass_engine::{EdgeDirection, EngineRules, MemoryView, RowChange, StateView, Timestamp};
use windlass_store::{ExecuteError, SqliteStore, Store, StoreSnapshot, TaskFilter};
use windlass_testkit::{Project, Step, histories, histories_of_gates, rules, rules_of_gates};

use scene::{Place, everything};

/// Returns every row of a snapshot, in the order of [`MemoryView::into_rows`], without configurations.
fn rows(snapshot: &StoreSnapshot<'_>) -> Vec<RowChange> {
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

/// Returns the answers of a view that are not rows, which come from the indexes.
fn answers(view: &dyn StateView, now: Timestamp) -> Vec<String> {
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
    prop_assert_eq!(rows(&snapshot), expected);
    for config in configs {
        let RowChange::PutConfig { digest, text } = config else { unreachable!("they were picked") };
        prop_assert_eq!(snapshot.find_config_text(digest).expect("the store can be read"), Some(text));
    }
    prop_assert_eq!(answers(&snapshot, now), answers(memory, now));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_and_memory_agree(history in histories(30)) {
        agree(rules(), &history)?;
    }

    /// The same with worktrees, gates, changes and their findings.
    #[test]
    fn a_file_and_memory_agree_about_gates(history in histories_of_gates(40)) {
        agree(rules_of_gates(), &history)?;
    }
}

fn agree(rules: EngineRules, history: &[Step]) -> TestCaseResult {
    let place = Place::new();
    let mut store = place.create();
    let mut project = Project::new(rules);
    for (number, step) in (0_u128..).zip(history) {
        let (origin, command) = project.resolve_step(step);
        let kept = store.execute_command(project.rules(), &origin, &command, number);
        match project.run_command(&origin, &command) {
            Ok(entries) => {
                let records: Vec<_> = entries.into_iter().map(|entry| entry.record).collect();
                prop_assert_eq!(kept.expect("memory took it"), records);
            }
            Err(refusal) => match kept {
                Err(ExecuteError::Refused(same)) => prop_assert_eq!(same.to_string(), refusal.to_string()),
                other => prop_assert!(false, "memory: {refusal}, the file: {other:?}"),
            },
        }
        check_rows(&store, project.memory(), project.now())?;
    }
    prop_assert_eq!(everything(&store), project.log());
    let report = store.inspect_store().expect("it can be looked over");
    prop_assert!(report.is_sound(), "{report:?}");
    prop_assert_eq!(report.events, project.log().len() as u64);
    store.rebuild_rows().expect("it can be rebuilt");
    check_rows(&store, project.memory(), project.now())?;
    prop_assert_eq!(everything(&store), project.log());
    prop_assert!(store.inspect_store().expect("it can be looked over").is_sound());
    Ok(())
}
