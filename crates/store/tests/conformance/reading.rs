//! Reading the log and the state.

use serde_json::json;
use windlass_engine::{Command, EventRecord, EventType, NewSession, Seq, SessionName, TaskId};
use windlass_store::{EventFilter, Store, StoreCommit};

use crate::backends::{Backend, OnDisk};
use crate::scene::{
    complete, create, create_after, everything, fill, finish_turn, give, nonce, origin, rename, rules, start_session,
};

pub fn positions_grow<B: Backend>() {
    let backend = B::new();
    let mut handles = [backend.open(), backend.open()];
    let mut last = Seq::START;
    for round in 0..10 {
        let commit = give(&mut handles[round % 2], &create("one more"));
        assert!(commit[0].seq > last, "{} after {last}", commit[0].seq);
        assert!(commit.windows(2).all(|pair| pair[1].seq == pair[0].seq.next()), "a commit lies together");
        last = commit.last().unwrap().seq;
        assert_eq!(handles[(round + 1) % 2].open_view().unwrap().head_position().unwrap(), last);
    }
}

pub fn pages_add_up_to_the_whole<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    let commits = fill(&mut store, 6);
    let whole = everything(&store);
    assert_eq!(whole, commits.concat());
    let first_two = EventFilter { types: vec![EventType::TaskCreated, EventType::TaskReady], ..EventFilter::default() };
    for filter in [EventFilter::default(), first_two, EventFilter { task: Some(TaskId(4)), ..EventFilter::default() }] {
        for most in [1, 2, 7, 1000] {
            let mut paged: Vec<EventRecord> = Vec::new();
            loop {
                let after = paged.last().map_or(Seq::START, |record| record.seq);
                let page = store.read_events(&filter, after, most).unwrap();
                assert!(page.len() <= most);
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            assert_eq!(paged, whole.iter().filter(|record| filter.matches_record(record)).cloned().collect::<Vec<_>>());
        }
    }
    let end = whole.last().unwrap().seq;
    assert_eq!(store.read_events(&EventFilter::default(), end, 9).unwrap(), []);
    assert_eq!(store.read_events(&EventFilter::default(), Seq(end.0 + 1000), 9).unwrap(), []);
    assert_eq!(store.read_events(&EventFilter::default(), Seq::START, 0).unwrap(), []);
}

/// Makes a log with two sessions, and an event that only mentions one.
fn two_sessions(store: &mut impl Store) -> [Option<SessionName>; 4] {
    fill(store, 6);
    give(store, &create("names a session"));
    give(store, &Command::StartTask { id: TaskId(7), context: json!({"session": "main"}) });
    let Command::StartSession(main) = start_session(None) else { unreachable!("a session is started") };
    let other: SessionName = "mai".parse().unwrap();
    give(store, &Command::StartSession(NewSession { name: other.clone(), ..main.clone() }));
    give(store, &finish_turn(1));
    [None, Some(main.name), Some(other), Some("absent".parse().unwrap())]
}

const TYPES: [&[EventType]; 3] =
    [&[], &[EventType::TaskCompleted, EventType::TurnStarted], &[EventType::TaskCreated, EventType::DependencyAdded]];

pub fn filters_pick_by_type_task_and_session<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    let sessions = two_sessions(&mut store);
    let whole = everything(&store);
    let by_hand =
        |filter: &EventFilter| whole.iter().filter(|record| filter.matches_record(record)).cloned().collect::<Vec<_>>();
    for task in [None, Some(TaskId(2)), Some(TaskId(4)), Some(TaskId(99))] {
        for (types, session) in TYPES.into_iter().flat_map(|types| sessions.iter().map(move |name| (types, name))) {
            let filter = EventFilter { types: types.to_vec(), task, session: session.clone() };
            assert_eq!(store.read_events(&filter, Seq::START, 1000).unwrap(), by_hand(&filter), "{filter:?}");
        }
    }
    let of = |session: &Option<SessionName>| {
        let filter = EventFilter { session: session.clone(), ..EventFilter::default() };
        store.read_events(&filter, Seq::START, 1000).unwrap().iter().map(EventRecord::kind).collect::<Vec<_>>()
    };
    assert_eq!(of(&sessions[2]), [EventType::SessionStarted, EventType::IterationStarted, EventType::TurnStarted]);
    assert_eq!(of(&sessions[3]), []);
}

/// Newest first, page by page, for every filter.
pub fn back_is_forth_reversed() {
    let backend = OnDisk::new();
    let mut store = backend.open();
    let sessions = two_sessions(&mut store);
    for (types, session) in TYPES.into_iter().flat_map(|types| sessions.iter().map(move |name| (types, name))) {
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
    assert_eq!(store.read_event(Seq(2)).unwrap().unwrap(), everything(&store)[1]);
    assert_eq!(store.read_event(Seq(10_000)).unwrap(), None);
}

pub fn causes_are_positions_in_the_log<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    give(&mut store, &create("first"));
    give(&mut store, &create_after("second", &[1]));
    give(&mut store, &create("third"));
    // Decided at one position of the log and appended at another.
    let commit = {
        let view = store.open_view().unwrap();
        let decided = windlass_engine::decide(&*view, &rules(), &origin(), &complete(1)).unwrap();
        StoreCommit {
            id: windlass_engine::CommitId { after: view.head_position().unwrap(), nonce: nonce() },
            reads: decided.scopes_read().unwrap(),
            events: decided.entries().iter().map(|entry| entry.record.envelope.clone()).collect(),
        }
    };
    give(&mut other, &rename(3, "in between"));
    store.append_commit(&commit).unwrap();
    let log = everything(&other);
    let of = |kind: EventType| log.iter().find(|record| record.kind() == kind).unwrap();
    assert_eq!(of(EventType::DependencySatisfied).cause_position(), Some(of(EventType::TaskCompleted).seq));
    assert_eq!(of(EventType::TaskCompleted).cause_position(), None);
    for record in &log {
        assert!(record.cause_position().is_none_or(|cause| cause < record.seq && log.iter().any(|r| r.seq == cause)));
    }
}

pub fn a_view_stays_as_it_is<B: Backend>() {
    let backend = B::new();
    let (mut store, mut other) = (backend.open(), backend.open());
    give(&mut store, &create("first"));
    {
        let view = store.open_view().unwrap();
        let before = (view.head_position().unwrap(), view.find_task(TaskId(1)).unwrap());
        // Enough commits for a checkpoint of the log.
        for round in 0..300 {
            give(&mut other, &rename(1, &format!("round {round}")));
        }
        give(&mut other, &create("second"));
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
    fill(&mut store, 3);
    let whole = everything(&store);
    let one = store.open_view().unwrap();
    let two = store.open_view().unwrap();
    let task = EventFilter { task: Some(TaskId(1)), ..EventFilter::default() };
    assert!(!store.read_events(&task, Seq::START, 99).unwrap().is_empty());
    drop(one);
    give(&mut backend.open(), &rename(3, "changed"));
    assert_eq!(two.head_position().unwrap(), whole.last().unwrap().seq);
    assert_ne!(two.find_task(TaskId(3)).unwrap().unwrap().goal, "changed");
    drop(two);
    assert_eq!(store.open_view().unwrap().find_task(TaskId(3)).unwrap().unwrap().goal, "changed");
    give(&mut store, &create("and it can still write"));
}

/// The history of a task has the events of its sessions and of its hooks.
pub fn sessions_and_hooks_are_in_the_history_of_their_task<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    give(&mut store, &create("first"));
    give(&mut store, &start_session(Some(1)));
    give(&mut store, &finish_turn(1));
    give(&mut store, &rename(1, "renamed"));
    let filter = EventFilter { task: Some(TaskId(1)), ..EventFilter::default() };
    let by_hand: Vec<_> = everything(&store).into_iter().filter(|record| filter.matches_record(record)).collect();
    assert_eq!(store.read_events(&filter, Seq::START, 99).unwrap(), by_hand);
}
