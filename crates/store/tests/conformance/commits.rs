//! Appending: whole, once, and only if the read scopes are unchanged.

use std::collections::BTreeMap;

use windlass_engine::{
    Command, CommitId, EdgeKind, Ending, Envelope, Event, Node, Record, Refusal, Scope, TaskId, payload,
};
use windlass_store::{Appended, Commit, ExecuteError, Store};

use crate::backends::{Backend, Contract};
use crate::scene::{
    claim, complete, create, create_after, everything, fill, finish_turn, give, holder, nonce, origin, rename, rules,
    start, start_session,
};

/// Returns the commit of a command, decided but not appended.
fn decided(store: &impl Store, command: &Command) -> Commit {
    let view = store.view().unwrap();
    let decided = windlass_engine::decide(&*view, &rules(), &origin(), command).unwrap();
    Commit {
        id: CommitId { after: view.head().unwrap(), nonce: nonce() },
        reads: decided.reads().unwrap(),
        events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
    }
}

fn appended(outcome: Appended) -> Vec<windlass_engine::Seq> {
    match outcome {
        Appended::At(positions) => positions,
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
    commit.events.push(Envelope { node: Node::Task(TaskId(9)), event: impossible, ..last });
    store.append(&commit).unwrap_err();

    for store in [backend.open(), backend.reopen(store)] {
        assert_eq!(everything(&store), before);
        assert_eq!(store.view().unwrap().last_task().unwrap(), Some(TaskId(1)));
    }
    // The log continues at the same position.
    let mut store = backend.open();
    commit.events.pop();
    appended(store.append(&commit).unwrap());
    assert_eq!(store.view().unwrap().last_task().unwrap(), Some(TaskId(2)));
}

pub fn acknowledged_is_visible_to_others_and_after_reopening<B: Backend>() {
    let backend = B::new();
    let (mut store, other) = (backend.open(), backend.open());
    let mut expected = give(&mut store, &create("first"));
    expected.extend(give(&mut store, &create_after("second", &[1])));
    assert_eq!(everything(&other), expected);
    let seen = other.view().unwrap().task(TaskId(2)).unwrap();
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
    let positions = appended(store.append(&commit).unwrap());
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
    let end = Command::StopSession { name: session.clone(), ending: Ending::Cancelled, reason: None };
    let edge = |from, to| Command::AddEdge { from: TaskId(from), kind: EdgeKind::DependsOn, to: TaskId(to) };
    let cases = [
        (Scope::Task(TaskId(1)), rename(1, "mine"), rename(1, "theirs")),
        (Scope::Task(TaskId(1)), start(1), complete(1)),
        (Scope::Session(session), finish_turn(1), end),
        (Scope::Edges, edge(1, 2), edge(3, 4)),
        (Scope::Ids, create("mine"), create("theirs")),
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
    appended(store.append(&commit).unwrap());
    let view = other.view().unwrap();
    let goals = [1, 2].map(|id| view.task(TaskId(id)).unwrap().unwrap().goal);
    assert_eq!(goals, ["mine", "theirs"]);
}

pub fn a_conflict_leaves_nothing_and_can_be_decided_anew<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    let commit = decided(&store, &create("mine"));
    give(&mut other, &create("theirs"));
    assert!(matches!(store.append(&commit).unwrap(), Appended::Conflict(_)));
    let anew = Commit { id: commit.id, ..decided(&store, &create("mine")) };
    appended(store.append(&anew).unwrap());
    assert_eq!(other.view().unwrap().task(TaskId(2)).unwrap().unwrap().goal, "mine");
}

pub fn a_refused_command_writes_nothing<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    fill(&mut store, 4);
    let log = everything(&store);
    let refused = store.execute(&rules(), &origin(), &complete(77), nonce());
    assert!(matches!(refused, Err(ExecuteError::Refused(Refusal::UnknownTask(TaskId(77))))), "{refused:?}");
    assert_eq!(everything(&store), log);
    // An empty commit appends nothing.
    let nothing = Commit {
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
        (origin(), Command::DeleteTask { id: TaskId(1), deletion: windlass_engine::Deletion::Cascade }),
    ];
    for (origin, command) in commands {
        let nonce = nonce();
        let [one, two] =
            [own.execute(&rules(), &origin, &command, nonce), plain.execute(&rules(), &origin, &command, nonce)]
                .map(|answer: Result<Vec<Record>, _>| answer.map_err(|error| error.to_string()));
        assert_eq!(one, two, "{command:?}");
    }
    assert_eq!(everything(&own), everything(&plain));
    assert!(everything(&own).len() > 15, "hooks took part");
}
