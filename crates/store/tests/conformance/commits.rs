//! Appending: whole, once, and only if the read scopes are unchanged.

use std::collections::BTreeMap;

use windlass_engine::{
    Command, CommitId, DecisionScope, EdgeKind, Event, EventEnvelope, EventRecord, EventSubject, Refusal,
    SessionEndKind, TaskId, payload,
};
use windlass_store::{AppendOutcome, ExecuteError, Store, StoreCommit};

use crate::backends::{Backend, Contract};
use crate::scene::{
    claim, complete, create, create_after, everything, fill, finish_turn, give, holder, nonce, origin, rename, rules,
    start, start_session,
};

/// Returns the commit of a command, decided but not appended.
fn decided(store: &impl Store, command: &Command) -> StoreCommit {
    let view = store.open_view().unwrap();
    let decided = windlass_engine::decide(&*view, &rules(), &origin(), command).unwrap();
    StoreCommit {
        id: CommitId { after: view.head_position().unwrap(), nonce: nonce() },
        reads: decided.scopes_read().unwrap(),
        events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
    }
}

fn appended(outcome: AppendOutcome) -> Vec<windlass_engine::Seq> {
    match outcome {
        AppendOutcome::Durable(positions) => positions,
        other => panic!("not appended: {other:?}"),
    }
}

pub fn a_commit_is_all_or_nothing<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    give(&mut store, &create("first"));
    let before = everything(&store);
    let mut commit = decided(&store, &create("second"));
    // An impossible last event.
    let impossible = Event::TaskCompleted(payload::TaskCompleted { result: None, artifacts: vec![] });
    let last = commit.events.last().unwrap().clone();
    commit.events.push(EventEnvelope { node: EventSubject::Task(TaskId(9)), event: impossible, ..last });
    store.append_commit(&commit).unwrap_err();

    for store in [backend.open(), backend.reopen(store)] {
        assert_eq!(everything(&store), before);
        assert_eq!(store.view().unwrap().last_task().unwrap(), Some(TaskId(1)));
    }
    // The log continues at the same position.
    let mut store = backend.open();
    commit.events.pop();
    appended(store.append_commit(&commit).unwrap());
    assert_eq!(store.view().unwrap().last_task().unwrap(), Some(TaskId(2)));
}

pub fn acknowledged_is_visible_to_others_and_after_reopening<B: Backend>() {
    let backend = B::new();
    let (mut store, other) = (backend.open(), backend.open());
    let mut expected = give(&mut store, &create("first"));
    expected.extend(give(&mut store, &create_after("second", &[1])));
    assert_eq!(everything(&other), expected);
    let seen = other.open_view().unwrap().find_task(TaskId(2)).unwrap();
    drop(other);
    let store = backend.reopen(store);
    assert_eq!(everything(&store), expected);
    assert_eq!(store.view().unwrap().task(TaskId(2)).unwrap(), seen);
    assert_eq!(seen.unwrap().open_dependencies, 1);
}

pub fn the_same_commit_never_counts_twice<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    give(&mut store, &create("first"));
    let commit = decided(&store, &create("second"));
    let positions = appended(store.append_commit(&commit).unwrap());
    assert_eq!(store.append(&commit).unwrap(), Appended::AlreadyApplied(positions.clone()));

    // Other commits follow, and its read scopes have changed since.
    let mut other = backend.open();
    give(&mut other, &rename(2, "renamed"));
    fill(&mut other, 3);
    let log = everything(&other);
    for mut store in [backend.open(), other, backend.reopen(store)] {
        assert_eq!(store.append(&commit).unwrap(), Appended::AlreadyApplied(positions.clone()));
        assert_eq!(everything(&store), log);
    }
}

pub fn a_moved_scope_is_a_conflict<B: Backend>() {
    let session: windlass_engine::SessionName = "main".parse().unwrap();
    let end = Command::StopSession { name: session.clone(), ending: SessionEndKind::Cancelled, reason: None };
    let edge = |from, to| Command::AddEdge { from: TaskId(from), kind: EdgeKind::DependsOn, to: TaskId(to) };
    let cases = [
        (DecisionScope::Task(TaskId(1)), rename(1, "mine"), rename(1, "theirs")),
        (DecisionScope::Task(TaskId(1)), start(1), complete(1)),
        (DecisionScope::Session(session), finish_turn(1), end),
        (DecisionScope::Edges, edge(1, 2), edge(3, 4)),
        (DecisionScope::Ids, create("mine"), create("theirs")),
    ];
    for (scope, mine, theirs) in cases {
        let backend = B::new();
        let (mut store, mut other) = (backend.open(), backend.open());
        (1..=4).for_each(|id| drop(give(&mut store, &create(&format!("task {id}")))));
        give(&mut store, &start_session(None));
        let mut commit = decided(&store, &mine);
        assert!(commit.reads.contains_key(&scope), "{mine:?} reads {scope:?}");
        commit.reads.retain(|read, _| *read == scope);
        give(&mut other, &theirs);
        let log = everything(&other);
        assert_eq!(store.append(&commit).unwrap(), Appended::Conflict(scope));
        assert_eq!(everything(&store), log);
    }
}

pub fn another_task_is_no_conflict<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    (1..=2).for_each(|id| drop(give(&mut store, &create(&format!("task {id}")))));
    let commit = decided(&store, &rename(1, "mine"));
    give(&mut other, &rename(2, "theirs"));
    appended(store.append_commit(&commit).unwrap());
    let view = other.open_view().unwrap();
    let goals = [1, 2].map(|id| view.find_task(TaskId(id)).unwrap().unwrap().goal);
    assert_eq!(goals, ["mine", "theirs"]);
}

pub fn a_conflict_leaves_nothing_and_can_be_decided_anew<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    let commit = decided(&store, &create("mine"));
    give(&mut other, &create("theirs"));
    assert!(matches!(store.append(&commit).unwrap(), Appended::Conflict(_)));
    let anew = StoreCommit { id: commit.id, ..decided(&store, &create("mine")) };
    appended(store.append_commit(&anew).unwrap());
    assert_eq!(other.view().unwrap().task(TaskId(2)).unwrap().unwrap().goal, "mine");
}

pub fn a_refused_command_writes_nothing<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    fill(&mut store, 4);
    let log = everything(&store);
    let refused = store.execute_command(&rules(), &origin(), &complete(77), nonce());
    assert!(matches!(refused, Err(ExecuteError::Refused(Refusal::UnknownTask(TaskId(77))))), "{refused:?}");
    assert_eq!(everything(&store), log);
    // An empty commit appends nothing.
    let nothing = StoreCommit {
        id: CommitId { after: log.last().unwrap().seq, nonce: nonce() },
        reads: BTreeMap::new(),
        events: vec![],
    };
    assert_eq!(store.append(&nothing).unwrap(), Appended::At(vec![]));
    assert_eq!(everything(&store), log);
}

/// Every backend executes commands with the same result as the contract alone.
pub fn execute_is_decide_and_append<B: Backend>() {
    let (one, two) = (B::new(), B::new());
    let (mut own, mut plain) = (one.open(), Contract(two.open()));
    let agent = windlass_engine::NewTask { labels: vec!["agent".to_owned()], ..windlass_engine::NewTask::default() };
    let commands = [
        (origin(), create("first")),
        (origin(), create_after("second", &[1])),
        (origin(), Command::CreateTask(windlass_engine::NewTask { goal: "third".to_owned(), ..agent })),
        (origin(), claim("w1")),
        (origin(), complete(1)),
        (holder(1), complete(1)),
        (origin(), complete(2)),
        (origin(), complete(3)),
        (origin(), Command::DeleteTask { id: TaskId(1), deletion: windlass_engine::DeletionMode::Cascade }),
    ];
    for (origin, command) in commands {
        let nonce = nonce();
        let [one, two] = [
            own.execute_command(&rules(), &origin, &command, nonce),
            plain.execute_command(&rules(), &origin, &command, nonce),
        ]
        .map(|answer: Result<Vec<EventRecord>, _>| answer.map_err(|error| error.to_string()));
        assert_eq!(one, two, "{command:?}");
    }
    assert_eq!(everything(&own), everything(&plain));
    assert!(everything(&own).len() > 15, "hooks took part");
}
