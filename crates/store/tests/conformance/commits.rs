//! Commits: a store appends each one completely, once, and only if its read scopes are unchanged.

use std::collections::BTreeMap;

use windlass_engine::{
    Command, CommitId, DecisionScope, EdgeKind, Event, EventEnvelope, EventRecord, EventSubject, Refusal,
    SessionEndKind, TaskId, payload,
};
use windlass_store::{AppendOutcome, ExecuteError, Store, StoreCommit};

use crate::handles::{Backend, ContractStore};
use crate::support::{
    claim_task, command_origin, commit_command, complete_task, create_dependent_task, create_task, engine_rules,
    fill_store, finish_turn, holder_origin, next_nonce, read_log, rename_task, start_session, start_task,
};

/// Decides a command without an append, and returns the commit.
fn decide_commit(store: &impl Store, command: &Command) -> StoreCommit {
    let view = store.open_view().unwrap();
    let decision = windlass_engine::decide(&*view, &engine_rules(), &command_origin(), command).unwrap();
    StoreCommit {
        id: CommitId { after: view.head_position().unwrap(), nonce: next_nonce() },
        reads: decision.scopes_read().unwrap(),
        events: decision.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
    }
}

fn expect_appended(outcome: AppendOutcome) -> Vec<windlass_engine::Seq> {
    match outcome {
        AppendOutcome::Durable(positions) => positions,
        other => panic!("not appended: {other:?}"),
    }
}

pub fn a_commit_is_all_or_nothing<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    commit_command(&mut store, &create_task("first"));
    let before = read_log(&store);
    let mut commit = decide_commit(&store, &create_task("second"));
    // The last event of the commit is impossible.
    let impossible = Event::TaskCompleted(payload::TaskCompleted { result: None, artifacts: vec![] });
    let last = commit.events.last().unwrap().clone();
    commit.events.push(EventEnvelope { node: EventSubject::Task(TaskId(9)), event: impossible, ..last });
    store.append_commit(&commit).unwrap_err();

    for store in [backend.open(), backend.reopen(store)] {
        assert_eq!(read_log(&store), before);
        assert_eq!(store.open_view().unwrap().last_task_id().unwrap(), Some(TaskId(1)));
    }
    // The log continues at the same position.
    let mut store = backend.open();
    commit.events.pop();
    expect_appended(store.append_commit(&commit).unwrap());
    assert_eq!(store.open_view().unwrap().last_task_id().unwrap(), Some(TaskId(2)));
}

pub fn acknowledged_is_visible_to_others_and_after_reopening<B: Backend>() {
    let backend = B::new();
    let (mut store, other) = (backend.open(), backend.open());
    let mut expected = commit_command(&mut store, &create_task("first"));
    expected.extend(commit_command(&mut store, &create_dependent_task("second", &[1])));
    assert_eq!(read_log(&other), expected);
    let seen = other.open_view().unwrap().find_task(TaskId(2)).unwrap();
    drop(other);
    let store = backend.reopen(store);
    assert_eq!(read_log(&store), expected);
    assert_eq!(store.open_view().unwrap().find_task(TaskId(2)).unwrap(), seen);
    assert_eq!(seen.unwrap().open_dependencies, 1);
}

pub fn the_same_commit_never_counts_twice<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    commit_command(&mut store, &create_task("first"));
    let commit = decide_commit(&store, &create_task("second"));
    let positions = expect_appended(store.append_commit(&commit).unwrap());
    assert_eq!(store.append_commit(&commit).unwrap(), AppendOutcome::AlreadyApplied(positions.clone()));

    // Other commits follow and change the read scopes of the first one.
    let mut other = backend.open();
    commit_command(&mut other, &rename_task(2, "renamed"));
    fill_store(&mut other, 3);
    let log = read_log(&other);
    for mut store in [backend.open(), other, backend.reopen(store)] {
        assert_eq!(store.append_commit(&commit).unwrap(), AppendOutcome::AlreadyApplied(positions.clone()));
        assert_eq!(read_log(&store), log);
    }
}

pub fn a_moved_scope_is_a_conflict<B: Backend>() {
    let session: windlass_engine::SessionName = "main".parse().unwrap();
    let end = Command::StopSession { name: session.clone(), ending: SessionEndKind::Cancelled, reason: None };
    let edge = |from, to| Command::AddEdge { from: TaskId(from), kind: EdgeKind::DependsOn, to: TaskId(to) };
    let cases = [
        (DecisionScope::Task(TaskId(1)), rename_task(1, "mine"), rename_task(1, "theirs")),
        (DecisionScope::Task(TaskId(1)), start_task(1), complete_task(1)),
        (DecisionScope::Session(session), finish_turn(1), end),
        (DecisionScope::Edges, edge(1, 2), edge(3, 4)),
        (DecisionScope::Ids, create_task("mine"), create_task("theirs")),
    ];
    for (scope, mine, theirs) in cases {
        let backend = B::new();
        let (mut store, mut other) = (backend.open(), backend.open());
        (1..=4).for_each(|id| drop(commit_command(&mut store, &create_task(&format!("task {id}")))));
        commit_command(&mut store, &start_session(None));
        let mut commit = decide_commit(&store, &mine);
        assert!(commit.reads.contains_key(&scope), "{mine:?} reads {scope:?}");
        commit.reads.retain(|read, _| *read == scope);
        commit_command(&mut other, &theirs);
        let log = read_log(&other);
        assert_eq!(store.append_commit(&commit).unwrap(), AppendOutcome::Conflict(scope));
        assert_eq!(read_log(&store), log);
    }
}

pub fn another_task_is_no_conflict<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    (1..=2).for_each(|id| drop(commit_command(&mut store, &create_task(&format!("task {id}")))));
    let commit = decide_commit(&store, &rename_task(1, "mine"));
    commit_command(&mut other, &rename_task(2, "theirs"));
    expect_appended(store.append_commit(&commit).unwrap());
    let view = other.open_view().unwrap();
    let goals = [1, 2].map(|id| view.find_task(TaskId(id)).unwrap().unwrap().goal);
    assert_eq!(goals, ["mine", "theirs"]);
}

pub fn a_conflict_leaves_nothing_and_can_be_decided_anew<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    let commit = decide_commit(&store, &create_task("mine"));
    commit_command(&mut other, &create_task("theirs"));
    assert!(matches!(store.append_commit(&commit).unwrap(), AppendOutcome::Conflict(_)));
    let new_commit = StoreCommit { id: commit.id, ..decide_commit(&store, &create_task("mine")) };
    expect_appended(store.append_commit(&new_commit).unwrap());
    assert_eq!(other.open_view().unwrap().find_task(TaskId(2)).unwrap().unwrap().goal, "mine");
}

pub fn a_refused_command_writes_nothing<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    fill_store(&mut store, 4);
    let log = read_log(&store);
    let refused = store.execute_command(&engine_rules(), &command_origin(), &complete_task(77), next_nonce());
    assert!(matches!(refused, Err(ExecuteError::Refused(Refusal::UnknownTask(TaskId(77))))), "{refused:?}");
    assert_eq!(read_log(&store), log);
    // An empty commit appends nothing.
    let empty_commit = StoreCommit {
        id: CommitId { after: log.last().unwrap().seq, nonce: next_nonce() },
        reads: BTreeMap::new(),
        events: vec![],
    };
    assert_eq!(store.append_commit(&empty_commit).unwrap(), AppendOutcome::Durable(vec![]));
    assert_eq!(read_log(&store), log);
}

/// Every backend executes commands with the same results as the default implementation.
pub fn execute_is_decide_and_append<B: Backend>() {
    let (one, two) = (B::new(), B::new());
    let (mut own, mut plain) = (one.open(), ContractStore(two.open()));
    let agent = windlass_engine::NewTask { labels: vec!["agent".to_owned()], ..windlass_engine::NewTask::default() };
    let commands = [
        (command_origin(), create_task("first")),
        (command_origin(), create_dependent_task("second", &[1])),
        (command_origin(), Command::CreateTask(windlass_engine::NewTask { goal: "third".to_owned(), ..agent })),
        (command_origin(), claim_task("w1")),
        (command_origin(), complete_task(1)),
        (holder_origin(1), complete_task(1)),
        (command_origin(), complete_task(2)),
        (command_origin(), complete_task(3)),
        (command_origin(), Command::DeleteTask { id: TaskId(1), deletion: windlass_engine::DeletionMode::Cascade }),
    ];
    for (origin, command) in commands {
        let nonce = next_nonce();
        let [one, two] = [
            own.execute_command(&engine_rules(), &origin, &command, nonce),
            plain.execute_command(&engine_rules(), &origin, &command, nonce),
        ]
        .map(|answer: Result<Vec<EventRecord>, _>| answer.map_err(|error| error.to_string()));
        assert_eq!(one, two, "{command:?}");
    }
    assert_eq!(read_log(&own), read_log(&plain));
    assert!(read_log(&own).len() > 15, "hooks took part");
}
