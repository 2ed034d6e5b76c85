//! Stores that are copies of a fleet's log: how they join and leave it, and what stops them.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windlass_engine::Seq;
use windlass_store::{
    ExecuteError, LogMessage, MemorySequencer, SequencedMessage, Sequencer, SequencerError, SequencerFault,
    SqliteStore, Store, StoreError,
};

use support::{
    TempStore, command_origin, commit_command, create_task, engine_rules, fill_store, next_nonce, read_chain, read_log,
    rename_task, start_session,
};

/// Opens a store as a copy of a log.
fn join_log(place: &TempStore, log: &MemorySequencer) -> SqliteStore {
    let mut store = place.create();
    store.join_log().unwrap();
    store.attach_log(Box::new(log.clone()), "mill".to_owned());
    store.catch_up().unwrap();
    store
}

fn try_task(store: &mut SqliteStore, goal: &str) -> Result<Vec<windlass_engine::EventRecord>, ExecuteError> {
    store.execute_command(&engine_rules(), &command_origin(), &create_task(goal), next_nonce())
}

#[test]
fn log_keeps_positions_and_digests_from_store_to_fleet_and_back() {
    let (first_place, second_place) = (TempStore::new(), TempStore::new());
    let log = MemorySequencer::default();
    let mut first = first_place.create();
    fill_store(&mut first, 30);
    let before = read_chain(&first_place);
    first.attach_log(Box::new(log.clone()), "mill".to_owned());
    let mut published = Seq::START;
    first.publish_log(|head| published = head).unwrap();
    assert_eq!(published, first.head().unwrap());
    let mut second = join_log(&second_place, &log);
    assert_eq!(read_log(&second), read_log(&first));
    commit_command(&mut second, &create_task("of the second"));
    commit_command(&mut first, &create_task("of the first"));
    second.catch_up().unwrap();
    for store in [&first, &second] {
        assert_eq!(store.find_wrong_scopes().unwrap(), [""; 0]);
        assert!(store.inspect_store().unwrap().is_sound());
    }
    let chain = read_chain(&first_place);
    assert_eq!(chain, read_chain(&second_place));
    assert_eq!(chain[..before.len()], before);

    second.leave_log().unwrap();
    assert!(!second.is_replica().unwrap());
    commit_command(&mut second, &create_task("alone"));
    assert_eq!(read_chain(&second_place)[..chain.len()], chain);
    assert_eq!(log.list_bodies().len(), 3, "the upload and two commits");
}

#[test]
fn commit_into_copy_without_connection_is_refused() {
    let place = TempStore::new();
    drop(join_log(&place, &MemorySequencer::default()));
    let mut store = place.open();
    let refused = try_task(&mut store, "alone").unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::Replica(_))), "{refused}");
    assert_eq!(store.head().unwrap(), Seq::START);
}

#[test]
fn store_with_events_cannot_join_a_log() {
    let place = TempStore::new();
    let mut store = place.create();
    commit_command(&mut store, &create_task("own"));
    let refused = store.join_log().unwrap_err();
    assert!(matches!(refused, StoreError::HasOwnLog(_)), "{refused}");
    assert!(!store.is_replica().unwrap());
}

#[test]
fn copy_whose_chain_differs_from_log_stops() {
    let (place, other_place) = (TempStore::new(), TempStore::new());
    let mut store = join_log(&place, &MemorySequencer::default());
    commit_command(&mut store, &create_task("one"));
    // Another log is behind the same address.
    let other_log = MemorySequencer::default();
    let mut other = join_log(&other_place, &other_log);
    commit_command(&mut other, &create_task("two"));
    commit_command(&mut other, &create_task("three"));
    store.attach_log(Box::new(other_log), "mill".to_owned());
    let refused = try_task(&mut store, "four").unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::Forked { .. })), "{refused}");
    assert_eq!(store.head().unwrap(), Seq(2));
}

#[test]
fn message_of_newer_program_stops_copy_before_it() {
    let (other_place, other_log) = (TempStore::new(), MemorySequencer::default());
    let mut other = join_log(&other_place, &other_log);
    commit_command(&mut other, &create_task("one"));
    commit_command(&mut other, &create_task("two"));
    let bodies = other_log.list_bodies();
    let unknown_event =
        str::from_utf8(&bodies[1]).unwrap().replacen(r#""type":"task_created""#, r#""type":"task_painted""#, 1);
    for (body, is_other_format) in [(r#"{"v":2}"#, true), (unknown_event.as_str(), false)] {
        let (place, mut log) = (TempStore::new(), MemorySequencer::default());
        Sequencer::publish(&mut log, &bodies[0]).unwrap();
        Sequencer::publish(&mut log, body.as_bytes()).unwrap();
        let mut store = place.create();
        store.join_log().unwrap();
        store.attach_log(Box::new(log), "mill".to_owned());
        let refused = store.catch_up().unwrap_err();
        match is_other_format {
            true => assert!(matches!(refused, StoreError::TooOld(_)), "{refused}"),
            false => assert!(matches!(refused, StoreError::UnknownEvent { .. }), "{refused}"),
        }
        assert_eq!((store.head().unwrap(), store.replica_cursor().unwrap()), (Seq(2), Some(1)));
    }
}

#[test]
fn message_that_reads_nothing_counts_once_although_repeated() {
    let (place, other_place) = (TempStore::new(), TempStore::new());
    let (log, mut other_log) = (MemorySequencer::default(), MemorySequencer::default());
    let mut store = join_log(&place, &log);
    commit_command(&mut store, &create_task("one"));
    let message = LogMessage::decode(&log.list_bodies()[0]).unwrap();
    let message = LogMessage { reads: BTreeMap::new(), ..message };
    for _ in 0..2 {
        Sequencer::publish(&mut other_log, &message.encode()).unwrap();
    }
    assert_eq!(read_log(&join_log(&other_place, &other_log)), read_log(&store));
}

/// Programs of different versions fold the same events to different rows.
#[test]
fn judgement_of_message_does_not_depend_on_rows() {
    let (place, other_place) = (TempStore::new(), TempStore::new());
    let log = MemorySequencer::default();
    let (mut store, other) = (join_log(&place, &log), join_log(&other_place, &log));
    commit_command(&mut store, &create_task("one"));
    other.catch_up().unwrap();
    let changed = other_place.open_connection().execute("UPDATE tasks SET row = json_set(row, '$.version', 1)", []);
    assert_eq!(changed.unwrap(), 1);
    assert_eq!(other.find_wrong_scopes().unwrap(), ["task/1"]);
    commit_command(&mut store, &rename_task(1, "renamed"));
    other.catch_up().unwrap();
    assert_eq!(read_chain(&other_place), read_chain(&place));
}

/// The id of an effect has the position of the event that enqueues it.
#[test]
fn effect_of_overtaken_commit_has_version_at_its_final_position() {
    let (first_place, second_place) = (TempStore::new(), TempStore::new());
    let log = MemorySequencer::default();
    let mut first = join_log(&first_place, &log);
    let mut second = join_log(&second_place, &log);
    let overtaken_log = log.with_faults(move || {
        commit_command(&mut second, &create_task("overtakes"));
        None
    });
    first.attach_log(Box::new(overtaken_log), "mill".to_owned());
    commit_command(&mut first, &start_session(None));
    assert_eq!(first.find_wrong_scopes().unwrap(), [""; 0]);
}

#[test]
fn processes_of_one_machine_share_its_copy() {
    let place = TempStore::new();
    let log = MemorySequencer::default();
    let mut first = join_log(&place, &log);
    let mut second = place.open();
    second.attach_log(Box::new(log.clone()), "mill".to_owned());
    for round in 0..5 {
        commit_command(&mut first, &create_task(&format!("first {round}")));
        commit_command(&mut second, &create_task(&format!("second {round}")));
    }
    assert_eq!(first.catch_up().unwrap(), 0);
    assert_eq!((read_log(&first).len(), log.list_bodies().len()), (20, 10));
    assert_eq!(read_log(&first), read_log(&second));
}

#[test]
fn unreachable_log_refuses_commit_and_keeps_reads() {
    let place = TempStore::new();
    let log = MemorySequencer::default();
    let mut store = join_log(&place, &log);
    commit_command(&mut store, &create_task("one"));
    store.attach_log(Box::new(log.with_faults(|| Some(SequencerFault::Unreachable))), "mill".to_owned());
    store.set_outage_policy(|_| false);
    let refused = try_task(&mut store, "two").unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::Unreachable(_))), "{refused}");
    assert_eq!(read_log(&store).len(), 2);
}

/// Returns a copy that has just read a whole log.
fn read_fresh_copy(place: &TempStore, log: &MemorySequencer) -> SqliteStore {
    join_log(place, log)
}

#[test]
fn log_that_lost_its_end_is_seen_as_fork_and_repaired_by_each_copy() {
    let places: [TempStore; 4] = std::array::from_fn(|_| TempStore::new());
    let log = MemorySequencer::default();
    let (mut first, mut second) = (join_log(&places[0], &log), join_log(&places[1], &log));
    for number in 0..6 {
        commit_command(&mut first, &create_task(&format!("task {number}")));
    }
    second.catch_up().unwrap();
    commit_command(&mut first, &create_task("known to the first copy alone"));
    // The service comes back with the first three messages.
    let mut shorter = MemorySequencer::default();
    for body in log.list_bodies().iter().take(3) {
        Sequencer::publish(&mut shorter, body).unwrap();
    }
    for store in [&mut first, &mut second] {
        store.attach_log(Box::new(shorter.clone()), "mill".to_owned());
    }
    let refused = try_task(&mut first, "too early").unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::Forked { .. })), "{refused}");

    let before = read_chain(&places[0]);
    let report = first.repair_copy(&mut read_fresh_copy(&places[2], &shorter), |_| {}).unwrap();
    assert_eq!((report.published, report.added), (8, 0));
    let report = second.repair_copy(&mut read_fresh_copy(&places[3], &shorter), |_| {}).unwrap();
    assert_eq!((report.published, report.added), (0, 2));
    for (store, place) in [(&mut first, &places[0]), (&mut second, &places[1])] {
        commit_command(store, &create_task("after the repair"));
        assert_eq!(read_chain(place)[..before.len()], before);
    }
    first.catch_up().unwrap();
    assert_eq!(read_chain(&places[0]), read_chain(&places[1]));
    for store in [&first, &second] {
        assert_eq!(store.find_wrong_scopes().unwrap(), [""; 0]);
        assert!(store.inspect_store().unwrap().is_sound());
    }
}

#[test]
fn repair_of_copy_with_other_events_is_refused() {
    let places: [TempStore; 3] = std::array::from_fn(|_| TempStore::new());
    let (log, other_log) = (MemorySequencer::default(), MemorySequencer::default());
    let (mut store, mut other) = (join_log(&places[0], &log), join_log(&places[1], &other_log));
    commit_command(&mut store, &create_task("one"));
    commit_command(&mut other, &create_task("two"));
    let before = read_chain(&places[0]);
    store.attach_log(Box::new(other_log.clone()), "mill".to_owned());
    let refused = store.repair_copy(&mut read_fresh_copy(&places[2], &other_log), |_| {}).unwrap_err();
    assert!(matches!(refused, StoreError::Forked { .. }), "{refused}");
    assert_eq!((read_chain(&places[0]), other_log.list_bodies().len()), (before, 1));
}

#[test]
fn upload_that_broke_off_goes_on_where_it_was() {
    let places: [TempStore; 3] = std::array::from_fn(|_| TempStore::new());
    let log = MemorySequencer::default();
    let mut store = places[0].create();
    fill_store(&mut store, 3);
    // A copy of the file uploads the first half of the log.
    store.backup_to(&places[1].path).unwrap();
    let mut first_half = places[1].open();
    for number in 0..3 {
        commit_command(&mut store, &create_task(&format!("later {number}")));
    }
    first_half.attach_log(Box::new(log.clone()), "mill".to_owned());
    first_half.publish_log(|_| {}).unwrap();
    let mut fresh = join_log(&places[2], &log);
    store.attach_log(Box::new(log.clone()), "mill".to_owned());
    store.resume_upload(&mut fresh, |_| {}).unwrap();
    assert_eq!(read_log(&store), read_log(&fresh));
    assert_eq!(store.find_wrong_scopes().unwrap(), [""; 0]);
    commit_command(&mut store, &create_task("after the upload"));
}

#[test]
fn bytes_that_are_no_message_are_dead() {
    let place = TempStore::new();
    let mut log = MemorySequencer::default();
    let mut store = join_log(&place, &log);
    commit_command(&mut store, &create_task("one"));
    for stray in [&b"x"[..], b"{}", br#"{"v":1}"#] {
        Sequencer::publish(&mut log, stray).unwrap();
    }
    commit_command(&mut store, &create_task("two"));
    assert_eq!((store.replica_cursor().unwrap(), read_log(&store).len()), (Some(5), 4));
}

#[test]
fn message_of_writer_with_another_log_is_dead() {
    let places: [TempStore; 2] = std::array::from_fn(|_| TempStore::new());
    let (mut log, other_log) = (MemorySequencer::default(), MemorySequencer::default());
    let (mut store, mut other) = (join_log(&places[0], &log), join_log(&places[1], &other_log));
    commit_command(&mut store, &create_task("one"));
    commit_command(&mut other, &create_task("two"));
    commit_command(&mut other, &create_task("three"));
    commit_command(&mut other, &create_task("four"));
    let before = read_chain(&places[0]);
    // Both follow an event: one that this log has otherwise, and one that it does not have.
    for body in &other_log.list_bodies()[1..] {
        Sequencer::publish(&mut log, body).unwrap();
    }
    assert_eq!(store.catch_up().unwrap(), 2);
    assert_eq!(read_chain(&places[0]), before);
    commit_command(&mut store, &create_task("five"));
}

/// A service of several servers. One of them answers some reads, and does not have the last message yet.
struct LaggingSequencer {
    log: MemorySequencer,
    /// How many reads the server that is behind answers.
    late_reads: Arc<AtomicU32>,
}

impl Sequencer for LaggingSequencer {
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError> {
        self.log.publish(body)
    }

    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        let mut messages = self.log.read_after(sequence, most)?;
        let is_late = self.late_reads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if is_late.is_ok() {
            messages.pop();
        }
        Ok(messages)
    }
}

#[test]
fn server_that_lacks_last_message_for_moment_is_no_fork() {
    let place = TempStore::new();
    let late_reads = Arc::new(AtomicU32::new(0));
    let mut store = place.create();
    store.join_log().unwrap();
    let sequencer = LaggingSequencer { log: MemorySequencer::default(), late_reads: Arc::clone(&late_reads) };
    store.attach_log(Box::new(sequencer), "mill".to_owned());
    for number in 0..3 {
        commit_command(&mut store, &create_task(&format!("task {number}")));
        late_reads.store(2, Ordering::Relaxed);
    }
    store.catch_up().unwrap();
    assert_eq!(read_log(&store).len(), 6);
}

#[test]
fn failure_after_lost_acknowledgement_says_that_outcome_is_unknown() {
    let place = TempStore::new();
    let log = MemorySequencer::default();
    let mut store = join_log(&place, &log);
    let mut faults = [SequencerFault::LostAcknowledgement, SequencerFault::Unreachable].into_iter();
    let faulty_log = log.with_faults(move || faults.next());
    // The acknowledgement is lost, and the service goes away before the copy reads the message.
    let reads = Arc::new(AtomicU32::new(0));
    store.attach_log(Box::new(LaggingSequencer { log: faulty_log, late_reads: Arc::clone(&reads) }), "mill".to_owned());
    let mut attempts = 0;
    store.set_outage_policy(move |_| {
        attempts += 1;
        reads.store(1, Ordering::Relaxed);
        attempts == 1
    });
    let failure = try_task(&mut store, "one").unwrap_err();
    let is_unknown =
        matches!(failure, ExecuteError::Store(StoreError::Unreachable(SequencerError::OutcomeUnknown { .. })));
    assert!(is_unknown, "{failure}");
    store.attach_log(Box::new(log), "mill".to_owned());
    store.catch_up().unwrap();
    assert_eq!(read_log(&store).len(), 2);
}

/// A service on which another machine publishes before each read.
struct BusySequencer {
    log: MemorySequencer,
    other: SqliteStore,
    reads: u32,
}

impl Sequencer for BusySequencer {
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError> {
        self.log.publish(body)
    }

    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        self.reads += 1;
        assert!(self.reads < 30, "the copy reads without an end");
        commit_command(&mut self.other, &rename_task(2, &format!("read {}", self.reads)));
        self.log.read_after(sequence, most)
    }
}

#[test]
fn copy_commits_although_another_machine_publishes_before_each_read() {
    let (place, other_place) = (TempStore::new(), TempStore::new());
    let log = MemorySequencer::default();
    let mut other = join_log(&other_place, &log);
    for goal in ["of the copy", "of the other machine"] {
        commit_command(&mut other, &create_task(goal));
    }
    let mut store = place.create();
    store.join_log().unwrap();
    store.attach_log(Box::new(BusySequencer { log, other, reads: 0 }), "mill".to_owned());
    commit_command(&mut store, &rename_task(1, "renamed"));
    assert_eq!(store.find_wrong_scopes().unwrap(), [""; 0]);
}
