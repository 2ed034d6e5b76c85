//! Properties of the messages of a fleet's log, for any bytes. For tests and fuzzing only.
//!
//! Each law takes bytes and panics when they break it.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use rusqlite::types::Value;
use windlass_engine::{
    Authority, Command, CommandOrigin, Digest, EngineRules, NewTask, Seq, TaskId, TaskPatch, Timestamp,
};

use crate::{
    EventFilter, Lifetime, LogMessage, MemorySequencer, MessageError, Sequencer, SqliteStore, Store, StoreError,
};

/// The length of the order from which on a new copy is cheaper.
const MAX_DEAD_MESSAGES: u64 = 64;

/// Checks that a message has one meaning, and that its events keep their bytes.
pub fn check_log_message(bytes: &[u8]) {
    match LogMessage::decode(bytes) {
        Err(MessageError::OtherFormat { found }) => assert_ne!(found, crate::MESSAGE_FORMAT),
        Err(error @ MessageError::Malformed { .. }) => assert!(!error.to_string().is_empty()),
        Ok(message) => {
            let written = message.encode();
            let again = LogMessage::decode(&written).expect("an encoded message can be decoded");
            assert_eq!(again, message, "a message survives its encoding");
            assert_eq!(again.encode(), written, "a message has one encoding");
            for event in &message.events {
                assert!(find_bytes(bytes, event), "an event has the bytes that were read");
                assert!(find_bytes(&written, event), "an event has the bytes that are written");
            }
            for index in message.moves.values().flatten() {
                assert!((*index as usize) < message.events.len(), "a scope moves with an event of the message");
            }
        }
    }
}

fn find_bytes(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

/// Checks that a copy takes a message completely or not at all: as it is, and as if its writer had seen the end of the copy's log.
pub fn check_message_in_copy(bytes: &[u8]) {
    check_log_message(bytes);
    give_message_to_copy(|_| bytes.to_vec());
    if let Ok(message) = LogMessage::decode(bytes) {
        give_message_to_copy(|copy| LogMessage { after: copy.head, chain: copy.chain, ..message }.encode());
    }
}

thread_local! {
    /// A copy that accepted no message since it was created.
    static COPY_UNDER_TEST: RefCell<Option<CopyUnderTest>> = const { RefCell::new(None) };
}

/// Gives a message to a copy of the short log. A copy that took it, or that broke a law, is not used again.
fn give_message_to_copy(write_message: impl FnOnce(&CopyUnderTest) -> Vec<u8>) {
    let mut copy = COPY_UNDER_TEST.take().unwrap_or_else(CopyUnderTest::new);
    let body = write_message(&copy);
    if copy.receive_message(&body) == MessageOutcome::Unchanged {
        COPY_UNDER_TEST.set(Some(copy));
    }
}

#[derive(PartialEq, Eq)]
enum MessageOutcome {
    Unchanged,
    /// The log has grown, or the order is long.
    UsedUp,
}

/// A copy with a short log, which is the same in every process.
struct CopyUnderTest {
    store: SqliteStore,
    /// A second connection, which reads the tables without code of the store.
    tables: Connection,
    /// The end of the short log, and the link of the chain there.
    head: Seq,
    chain: Digest,
    /// The messages that are folded.
    folded: Vec<Vec<u8>>,
    directory: PathBuf,
}

impl CopyUnderTest {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("windlass-law-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a temporary directory");
        let path = directory.join("windlass.db");
        let mut store = SqliteStore::create(&path, Lifetime::Service).expect("a store can be created");
        store.join_log().expect("it is empty");
        let log = MemorySequencer::default();
        store.attach_log(Box::new(log.clone()), "mill".to_owned());
        let rules = EngineRules::default();
        let at = Timestamp::from_millis(1_768_644_000_000);
        let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        for (nonce, command) in (1..).zip(short_history()) {
            store.execute_command(&rules, &origin, &command, nonce).expect("the command is legal");
        }
        let tables = Connection::open(&path).expect("the file can be opened");
        let link = "SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1";
        let (head, chain) = tables
            .query_row(link, [], |row| Ok((Seq(row.get::<_, i64>(0)?.unsigned_abs()), Digest(row.get(1)?))))
            .expect("the log has events");
        Self { store, tables, head, chain, folded: log.list_bodies(), directory }
    }

    fn receive_message(&mut self, body: &[u8]) -> MessageOutcome {
        let cursor = self.folded.len() as u64;
        let mut log = MemorySequencer::default();
        for body in self.folded.iter().map(Vec::as_slice).chain([body]) {
            log.publish(body).expect("a message without faults");
        }
        self.store.attach_log(Box::new(log), "mill".to_owned());
        let before = self.dump_tables();
        let outcome = self.store.catch_up();
        let cursor_after = self.store.replica_cursor().expect("the copy can be read");
        let head = self.store.head().expect("the copy can be read");
        if let Err(error) = outcome {
            assert!(!matches!(error, StoreError::Forked { .. }), "the order begins with the folded messages");
            assert!(!error.to_string().is_empty());
            assert_eq!(cursor_after, Some(cursor), "a refused message does not move the cursor: {error}");
            assert_eq!(self.dump_tables(), before, "a refused message changes nothing: {error}");
            return MessageOutcome::Unchanged;
        }
        assert_eq!(cursor_after, Some(cursor + 1), "a folded message moves the cursor");
        if head == self.head {
            assert_eq!(self.dump_tables(), before, "a dead message changes nothing");
            self.folded.push(body.to_vec());
            return if cursor < MAX_DEAD_MESSAGES { MessageOutcome::Unchanged } else { MessageOutcome::UsedUp };
        }
        let message = LogMessage::decode(body).expect("only a message is accepted");
        assert_eq!(self.read_bodies_after(self.head), message.events, "the log has the bytes of the message");
        let records = self.store.read_events(&EventFilter::default(), self.head, usize::MAX);
        assert_eq!(records.expect("each event can be read").len(), message.events.len());
        let report = self.store.inspect_store().expect("the copy can be inspected");
        assert!(report.is_sound(), "{report:?}");
        MessageOutcome::UsedUp
    }

    fn read_bodies_after(&self, head: Seq) -> Vec<Vec<u8>> {
        let mut query = self.tables.prepare("SELECT body FROM events WHERE seq > ? ORDER BY seq").expect("a query");
        let rows = query.query_map([head.0.cast_signed()], |row| row.get(0)).expect("the table can be read");
        rows.map(|row| row.expect("a row")).collect()
    }

    /// Returns all rows of all tables, except the cursor.
    fn dump_tables(&self) -> Vec<(String, Vec<Vec<Value>>)> {
        let mut names = self
            .tables
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'copied_to' ORDER BY name")
            .expect("a query");
        let names = names.query_map([], |row| row.get::<_, String>(0)).expect("the schema can be read");
        names
            .map(|name| {
                let name = name.expect("a name");
                let mut query = self.tables.prepare(&format!("SELECT * FROM \"{name}\"")).expect("a query");
                let columns = query.column_count();
                let read_row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
                let rows = query.query_map([], read_row).expect("the table can be read");
                let rows = rows.map(|row: rusqlite::Result<Vec<Value>>| row.expect("a row")).collect();
                (name, rows)
            })
            .collect()
    }
}

impl Drop for CopyUnderTest {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Returns commands that make two tasks, an edge and a changed task.
fn short_history() -> [Command; 3] {
    let new = |goal: &str| NewTask { goal: goal.to_owned(), ..NewTask::default() };
    let patch = TaskPatch { goal: Some("mend the pump".to_owned()), ..TaskPatch::default() };
    [
        Command::CreateTask(new("mend")),
        Command::CreateTask(NewTask { depends_on: vec![TaskId(1)], ..new("test") }),
        Command::UpdateTask { id: TaskId(1), patch },
    ]
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    use super::{CopyUnderTest, MessageOutcome};

    #[test]
    fn copy_accepts_next_message_of_its_history() {
        let body = include_bytes!("../../../fuzz/corpus/log_message/create-task");
        assert!(CopyUnderTest::new().receive_message(body) == MessageOutcome::UsedUp);
    }

    #[test]
    fn copy_takes_message_completely_or_not_at_all() {
        check_law("log_message", super::check_message_in_copy);
    }
}
