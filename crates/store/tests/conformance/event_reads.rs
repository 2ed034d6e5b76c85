//! Reads of the log and of the state.

use serde_json::json;
use windlass_engine::{
    AgentUsage, Command, CommandOrigin, EventRecord, EventType, NewSession, Seq, SessionEndKind, SessionName, TaskId,
};
use windlass_store::{EventFilter, SqliteStore, Store, StoreCommit};

use crate::handles::Backend;
use crate::support::{
    command_origin, commit_command, complete_task, create_dependent_task, create_task, engine_rules, fill_store,
    finish_turn, next_nonce, read_log, rename_task, run_id, start_session,
};

pub fn positions_grow<B: Backend>() {
    let backend = B::new();
    let mut handles = [backend.open(), backend.open()];
    let mut last = Seq::START;
    for round in 0..10 {
        let commit = commit_command(&mut handles[round % 2], &create_task("one more"));
        assert!(commit[0].seq > last, "{} after {last}", commit[0].seq);
        assert!(commit.windows(2).all(|pair| pair[1].seq == pair[0].seq.next()), "a commit lies together");
        last = commit.last().unwrap().seq;
        assert_eq!(handles[(round + 1) % 2].open_view().unwrap().head_position().unwrap(), last);
    }
}

pub fn pages_add_up_to_the_whole<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    let commits = fill_store(&mut store, 6);
    let log = read_log(&store);
    assert_eq!(log, commits.concat());
    let first_two = EventFilter { types: vec![EventType::TaskCreated, EventType::TaskReady], ..EventFilter::default() };
    for filter in [EventFilter::default(), first_two, EventFilter { task: Some(TaskId(4)), ..EventFilter::default() }] {
        for limit in [1, 2, 7, 1000] {
            let mut paged: Vec<EventRecord> = Vec::new();
            loop {
                let after = paged.last().map_or(Seq::START, |record| record.seq);
                let page = store.read_events(&filter, after, limit).unwrap();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            assert_eq!(paged, log.iter().filter(|record| filter.matches_record(record)).cloned().collect::<Vec<_>>());
        }
    }
    let end = log.last().unwrap().seq;
    assert_eq!(store.read_events(&EventFilter::default(), end, 9).unwrap(), []);
    assert_eq!(store.read_events(&EventFilter::default(), Seq(end.0 + 1000), 9).unwrap(), []);
    assert_eq!(store.read_events(&EventFilter::default(), Seq::START, 0).unwrap(), []);
}

/// Creates a log with two sessions, with an event that only mentions one of them, and with a late event of that one after its end.
/// Returns filter values for sessions.
fn two_sessions(store: &mut impl Store) -> [Option<SessionName>; 4] {
    fill_store(store, 6);
    commit_command(store, &create_task("names a session"));
    commit_command(store, &Command::StartTask { id: TaskId(7), context: json!({"session": "main"}) });
    let Command::StartSession(main) = start_session(None) else { unreachable!("a session is started") };
    let other: SessionName = "mai".parse().unwrap();
    commit_command(store, &Command::StartSession(NewSession { name: other.clone(), ..main.clone() }));
    commit_command(store, &finish_turn(1));
    let (name, ending) = (main.name.clone(), SessionEndKind::Cancelled);
    commit_command(store, &Command::StopSession { name, ending, reason: None });
    let usage = AgentUsage::default();
    commit_command(store, &Command::InterruptTurn { run: run_id(2), record: None, usage });
    let late = CommandOrigin { run: Some(run_id(1)), ..command_origin() };
    store.execute_command(&engine_rules(), &late, &create_task("late"), next_nonce()).unwrap();
    let view = store.open_view().unwrap();
    let session = view.find_session(&main.name).unwrap().unwrap();
    assert!(session.is_over() && session.version == view.head_position().unwrap(), "{session:?}");
    drop(view);
    [None, Some(main.name), Some(other), Some("absent".parse().unwrap())]
}

const TYPE_FILTERS: [&[EventType]; 3] =
    [&[], &[EventType::TaskCompleted, EventType::TurnStarted], &[EventType::TaskCreated, EventType::DependencyAdded]];

pub fn filters_pick_by_type_task_and_session<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    let sessions = two_sessions(&mut store);
    let log = read_log(&store);
    let expected =
        |filter: &EventFilter| log.iter().filter(|record| filter.matches_record(record)).cloned().collect::<Vec<_>>();
    for task in [None, Some(TaskId(2)), Some(TaskId(4)), Some(TaskId(99))] {
        for (types, session) in
            TYPE_FILTERS.into_iter().flat_map(|types| sessions.iter().map(move |name| (types, name)))
        {
            let filter = EventFilter { types: types.to_vec(), task, session: session.clone() };
            assert_eq!(store.read_events(&filter, Seq::START, 1000).unwrap(), expected(&filter), "{filter:?}");
        }
    }
    let event_types = |session: &Option<SessionName>| {
        let filter = EventFilter { session: session.clone(), ..EventFilter::default() };
        store.read_events(&filter, Seq::START, 1000).unwrap().iter().map(EventRecord::kind).collect::<Vec<_>>()
    };
    assert_eq!(
        event_types(&sessions[2]),
        [EventType::SessionStarted, EventType::IterationStarted, EventType::TurnStarted]
    );
    assert_eq!(event_types(&sessions[3]), []);
}

/// Backward reads return the newest events first, page by page, for every filter.
pub fn back_is_forth_reversed(mut store: SqliteStore) {
    let sessions = two_sessions(&mut store);
    for (types, session) in TYPE_FILTERS.into_iter().flat_map(|types| sessions.iter().map(move |name| (types, name))) {
        for task in [None, Some(TaskId(2))] {
            let filter = EventFilter { types: types.to_vec(), task, session: session.clone() };
            let mut paged: Vec<EventRecord> = Vec::new();
            loop {
                let page = store.read_events_back(&filter, paged.last().map(|record| record.seq), 2).unwrap();
                assert!(page.len() <= 2);
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            paged.reverse();
            assert_eq!(paged, store.read_events(&filter, Seq::START, 1000).unwrap(), "{filter:?}");
        }
    }
    assert_eq!(store.read_event(Seq(2)).unwrap().unwrap(), read_log(&store)[1]);
    assert_eq!(store.read_event(Seq(10_000)).unwrap(), None);
}

pub fn causes_are_positions_in_the_log<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    commit_command(&mut store, &create_task("first"));
    commit_command(&mut store, &create_dependent_task("second", &[1]));
    commit_command(&mut store, &create_task("third"));
    // The decision and the append of this commit happen at different positions of the log.
    let commit = {
        let view = store.open_view().unwrap();
        let decision = windlass_engine::decide(&*view, &engine_rules(), &command_origin(), &complete_task(1)).unwrap();
        StoreCommit {
            id: windlass_engine::CommitId { after: view.head_position().unwrap(), nonce: next_nonce() },
            reads: decision.scopes_read().unwrap(),
            events: decision.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
        }
    };
    commit_command(&mut other, &rename_task(3, "in between"));
    store.append_commit(&commit).unwrap();
    let log = read_log(&other);
    let record_of = |kind: EventType| log.iter().find(|record| record.kind() == kind).unwrap();
    assert_eq!(
        record_of(EventType::DependencySatisfied).cause_position(),
        Some(record_of(EventType::TaskCompleted).seq)
    );
    assert_eq!(record_of(EventType::TaskCompleted).cause_position(), None);
    for record in &log {
        assert!(record.cause_position().is_none_or(|cause| cause < record.seq && log.iter().any(|r| r.seq == cause)));
    }
}

pub fn a_view_stays_as_it_is<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    commit_command(&mut store, &create_task("first"));
    {
        let view = store.open_view().unwrap();
        let before = (view.head_position().unwrap(), view.find_task(TaskId(1)).unwrap());
        // Enough commits for a checkpoint of the log.
        for round in 0..300 {
            commit_command(&mut other, &rename_task(1, &format!("round {round}")));
        }
        commit_command(&mut other, &create_task("second"));
        assert_eq!((view.head_position().unwrap(), view.find_task(TaskId(1)).unwrap()), before);
        assert_eq!(view.find_task(TaskId(2)).unwrap(), None);
        assert_eq!(view.last_task_id().unwrap(), Some(TaskId(1)));
    }
    let view = store.open_view().unwrap();
    assert_eq!(view.find_task(TaskId(1)).unwrap().unwrap().goal, "round 299");
    assert_eq!(view.last_task_id().unwrap(), Some(TaskId(2)));
}

pub fn one_handle_may_look_twice_at_once<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    fill_store(&mut store, 3);
    let log = read_log(&store);
    let one = store.open_view().unwrap();
    let two = store.open_view().unwrap();
    let task = EventFilter { task: Some(TaskId(1)), ..EventFilter::default() };
    assert!(!store.read_events(&task, Seq::START, 99).unwrap().is_empty());
    drop(one);
    commit_command(&mut backend.open(), &rename_task(3, "changed"));
    assert_eq!(two.head_position().unwrap(), log.last().unwrap().seq);
    assert_ne!(two.find_task(TaskId(3)).unwrap().unwrap().goal, "changed");
    drop(two);
    assert_eq!(store.open_view().unwrap().find_task(TaskId(3)).unwrap().unwrap().goal, "changed");
    commit_command(&mut store, &create_task("and it can still write"));
}

/// The history of a task has the events of its sessions and of its hooks.
pub fn sessions_and_hooks_are_in_the_history_of_their_task<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    commit_command(&mut store, &create_task("first"));
    commit_command(&mut store, &start_session(Some(1)));
    commit_command(&mut store, &finish_turn(1));
    commit_command(&mut store, &rename_task(1, "renamed"));
    let filter = EventFilter { task: Some(TaskId(1)), ..EventFilter::default() };
    let expected: Vec<_> = read_log(&store).into_iter().filter(|record| filter.matches_record(record)).collect();
    assert_eq!(store.read_events(&filter, Seq::START, 99).unwrap(), expected);
}
