//! Random histories, in a file and in memory at once: both agree about every event and every row after every command.

mod scene;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use windlass_engine::{Change, Direction, Memory, Rules, Timestamp, View};
use windlass_store::{ExecuteError, Snapshot, Sqlite, Store, TaskFilter};
use windlass_testkit::{Project, Step, histories, histories_of_gates, rules, rules_of_gates};

use scene::{Place, everything};

/// Returns every row of a snapshot, in the order of [`Memory::into_rows`], without configurations.
fn rows(snapshot: &Snapshot<'_>) -> Vec<Change> {
    let mut tasks = Vec::new();
    snapshot
        .tasks(&TaskFilter::default(), |task| {
            tasks.push(task);
            true
        })
        .expect("tasks can be read");
    let tasks = tasks.into_iter().map(|task| Change::PutTask(Box::new(task)));
    let edges = snapshot.all_edges().expect("edges can be read").into_iter().map(Change::PutEdge);
    let sessions = snapshot.sessions().expect("sessions can be read");
    let sessions = sessions.into_iter().map(|session| Change::PutSession(Box::new(session)));
    let effects = snapshot.effects().expect("debts can be read");
    let effects = effects.into_iter().map(|effect| Change::PutEffect(Box::new(effect)));
    let conversations = snapshot.conversations().expect("conversations can be read");
    let conversations = conversations.into_iter().map(|row| Change::PutConversation(Box::new(row)));
    tasks.chain(edges).chain(sessions).chain(effects).chain(conversations).collect()
}

/// Returns the answers of a view that are not rows, which come from the indexes.
fn answers(view: &dyn View, now: Timestamp) -> Vec<String> {
    let mut answers = vec![format!("{:?} {:?} {:?}", view.head(), view.last_task(), view.last_edge())];
    let mut next = None;
    while let Some(found) = view.claimable(next).expect("a view can be read") {
        answers.push(format!("claimable {found:?}"));
        next = Some(found);
    }
    let closed = BTreeSet::from(["bug".parse().expect("a type's name")]);
    let mut next = None;
    while let Some(found) = view.claimable_except(&closed, next).expect("a view can be read") {
        answers.push(format!("claimable and no bug {found:?}"));
        next = Some(found);
    }
    let mut next = None;
    while let Some(found) = view.expired(now, next).expect("a view can be read") {
        answers.push(format!("expired {found:?}"));
        next = Some(found);
    }
    let mut next = None;
    while let Some(effect) = view.next_effect(next).expect("a view can be read") {
        next = Some(effect.id);
        answers.push(format!("owed {effect:?} {:?}", view.effect(effect.id)));
    }
    for id in (1..=view.last_task().expect("a view can be read").map_or(0, |id| id.0)).map(windlass_engine::TaskId) {
        let edges = [Direction::From, Direction::To].map(|direction| view.edges(id, direction));
        answers.push(format!("{:?} {edges:?}", view.task(id)));
    }
    answers
}

fn check_rows(store: &Sqlite, memory: &Memory, now: Timestamp) -> Result<(), TestCaseError> {
    let snapshot = store.snapshot().expect("the store can be read");
    let (configs, expected): (Vec<_>, Vec<_>) =
        memory.clone().into_rows().partition(|row| matches!(row, Change::PutConfig { .. }));
    prop_assert_eq!(rows(&snapshot), expected);
    for config in configs {
        let Change::PutConfig { digest, text } = config else { unreachable!("they were picked") };
        prop_assert_eq!(snapshot.config(digest).expect("the store can be read"), Some(text));
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

fn agree(rules: Rules, history: &[Step]) -> TestCaseResult {
    let place = Place::new();
    let mut store = place.create();
    let mut project = Project::new(rules);
    for (number, step) in (0_u128..).zip(history) {
        let (origin, command) = project.next(step);
        let kept = store.execute(project.rules(), &origin, &command, number);
        match project.give(&origin, &command) {
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
    let report = store.inspect().expect("it can be looked over");
    prop_assert!(report.is_sound(), "{report:?}");
    prop_assert_eq!(report.events, project.log().len() as u64);
    store.rebuild().expect("it can be rebuilt");
    check_rows(&store, project.memory(), project.now())?;
    prop_assert_eq!(everything(&store), project.log());
    prop_assert!(store.inspect().expect("it can be looked over").is_sound());
    Ok(())
}
