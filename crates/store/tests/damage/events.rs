//! Damage of single events and rows.

use rusqlite::{Connection, params};
use windlass_engine::{Digest, EventType, Seq, TaskId};
use windlass_store::{EventFilter, RowMismatch, Store, StoreError};

use crate::support::{TempStore, command_origin, commit_command, create_task, engine_rules, next_nonce, read_log};
use crate::{filled_store, inspect_store, salvage_store};

const DAMAGED_SEQ: i64 = 5;

/// Flips one bit in the middle of a column of an event.
fn flip_bit(connection: &Connection, column: &str) {
    let select = format!("SELECT {column} FROM events WHERE seq = ?");
    let mut bytes: Vec<u8> = connection.query_row(&select, [DAMAGED_SEQ], |row| row.get(0)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let update = format!("UPDATE events SET {column} = ? WHERE seq = ?");
    connection.execute(&update, params![bytes, DAMAGED_SEQ]).unwrap();
}

fn log_problems(temp_store: &TempStore) -> Vec<(u64, String)> {
    let report = inspect_store(&temp_store.path).unwrap();
    assert!(report.rows.is_empty(), "rows are not blamed for the log");
    report.log.into_iter().map(|found| (found.seq.0, found.problem)).collect()
}

#[test]
fn flipped_body_or_digest_is_reported_and_loses_one_event() {
    for column in ["body", "digest"] {
        let (temp_store, log) = filled_store(8);
        flip_bit(&temp_store.open_connection(), column);
        let found = log_problems(&temp_store);
        assert_eq!(found[0], (5, "does not match its digest".to_owned()));
        let store = temp_store.open();
        let error = store.read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { seq: Seq(5), .. }), "{error}");
        assert_eq!(store.read_events(&EventFilter::default(), Seq::START, 4).unwrap(), log[..4]);

        let (saved, salvage) = salvage_store(&temp_store.path).unwrap();
        assert_eq!(salvage.lost, [(Seq(5), Seq(5))]);
        assert_eq!(saved, [&log[..4], &log[5..]].concat());
    }
}

#[test]
fn flipped_chain_is_reported_and_salvage_loses_no_event() {
    let (temp_store, log) = filled_store(8);
    flip_bit(&temp_store.open_connection(), "chain");
    assert_eq!(log_problems(&temp_store)[0], (5, "does not match the chain".to_owned()));
    let error = temp_store.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::BrokenChain { seq: Seq(5), .. }), "{error}");
    let (saved, salvage) = salvage_store(&temp_store.path).unwrap();
    assert_eq!((saved, salvage.lost), (log, vec![]));
}

#[test]
fn column_with_wrong_type_is_reported_as_damage() {
    let (temp_store, _) = filled_store(8);
    let connection = temp_store.open_connection();
    // Strict tables check inserted values, not the data on the disk.
    let rewrite = |connection: &Connection, from: &str, to: &str| {
        let rewrite = format!("UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name = 'events'");
        connection.execute_batch(&format!("PRAGMA writable_schema = on; {rewrite}")).unwrap();
    };
    rewrite(&connection, "STRICT", "/**/");
    drop(connection);
    for (column, value) in [("body", "7"), ("digest", "x'00'"), ("chain", "'text'"), ("type", "7")] {
        let copy = TempStore::new();
        std::fs::copy(&temp_store.path, &copy.path).unwrap();
        copy.open_connection()
            .execute(&format!("UPDATE events SET {column} = {value} WHERE seq = {DAMAGED_SEQ}"), [])
            .unwrap();
        rewrite(&copy.open_connection(), "/**/", "STRICT");
        let found = log_problems(&copy);
        assert_eq!(found[0].0, 5, "{column}: {found:?}");
        copy.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    }
}

#[test]
fn deleted_event_is_reported_missing() {
    let (temp_store, log) = filled_store(8);
    temp_store.open_connection().execute("DELETE FROM events WHERE seq IN (5, 6)", []).unwrap();
    assert_eq!(log_problems(&temp_store), [(5, "is missing".to_owned())]);
    let error = temp_store.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::BrokenChain { seq: Seq(7), .. }), "{error}");
    let (saved, salvage) = salvage_store(&temp_store.path).unwrap();
    assert_eq!(salvage.lost, [(Seq(5), Seq(6))]);
    assert_eq!(saved.len(), log.len() - 2);
}

#[test]
fn truncated_log_is_detected_by_rows() {
    let (temp_store, log) = filled_store(8);
    let end = log.last().unwrap().seq;
    temp_store.open_connection().execute("DELETE FROM events WHERE seq > ?", [end.0.cast_signed() - 2]).unwrap();
    let report = inspect_store(&temp_store.path).unwrap();
    assert!(!report.is_sound() && !report.rows.is_empty(), "{report:?}");
    assert_eq!(salvage_store(&temp_store.path).unwrap().1.lost, [(Seq(end.0 - 1), end)]);
}

#[test]
fn event_filed_under_wrong_type_is_reported_and_salvaged() {
    let (temp_store, log) = filled_store(8);
    temp_store.open_connection().execute("UPDATE events SET type = 'task_ready' WHERE seq = 5", []).unwrap();
    assert!(log_problems(&temp_store)[0].1.contains("it is filed as `task_ready`"), "{:?}", log_problems(&temp_store));
    let filter = EventFilter { types: vec![EventType::TaskReady], ..EventFilter::default() };
    let error = temp_store.open().read_events(&filter, Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::InvalidEvent { .. }), "{error}");
    let (saved, salvage) = salvage_store(&temp_store.path).unwrap();
    assert_eq!((saved, salvage.lost), (log, vec![]));
}

#[test]
fn wrong_previous_position_is_found() {
    let (temp_store, log) = filled_store(8);
    let second = log.iter().filter(|record| record.envelope.node.task_id() == Some(TaskId(1))).nth(2).unwrap().seq;
    let elsewhere = log.iter().find(|record| record.envelope.node.task_id() == Some(TaskId(2))).unwrap().seq;
    for to in [elsewhere.0, second.0, 10_000, 0] {
        let wrong_link = params![to.cast_signed(), second.0.cast_signed()];
        temp_store.open_connection().execute("UPDATE events SET previous = ? WHERE seq = ?", wrong_link).unwrap();
        let found = log_problems(&temp_store);
        assert_eq!(found[0].0, second.0);
        assert!(found[0].1.contains("it is filed after event"), "{found:?}");
        if to != 0 {
            let filter = EventFilter { task: Some(TaskId(1)), ..EventFilter::default() };
            temp_store.open().read_events(&filter, Seq::START, 99).unwrap_err();
        }
    }
}

/// The link points to an earlier position, but to the event of another task.
#[test]
fn history_link_to_event_of_other_task_is_detected() {
    let (temp_store, log) = filled_store(8);
    let position_of = |task: u64, nth: usize| {
        log.iter().filter(|record| record.envelope.node.task_id() == Some(TaskId(task))).nth(nth).unwrap().seq
    };
    let (one, two) = (position_of(1, 0), position_of(2, 1));
    assert!(one < two);
    let wrong_link = params![one.0.cast_signed(), two.0.cast_signed()];
    temp_store.open_connection().execute("UPDATE events SET previous = ? WHERE seq = ?", wrong_link).unwrap();
    let filter = EventFilter { task: Some(TaskId(2)), ..EventFilter::default() };
    let error = temp_store.open().read_events(&filter, Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::InvalidEvent { .. }), "{error}");
}

#[test]
fn event_of_newer_format_is_refused_with_version_number() {
    let (temp_store, log) = filled_store(3);
    let connection = temp_store.open_connection();
    let (seq, before): (i64, [u8; 32]) = connection
        .query_row("SELECT seq + 1, chain FROM events ORDER BY seq DESC LIMIT 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let body = br#"{"v":7,"type":"task_dreamt","dream":"of sheep"}"#;
    let digest = Digest::of_bytes(body);
    connection
        .execute(
            "INSERT INTO events SELECT ?, 'task_dreamt', 0, nonce, ?, ?, ? FROM events WHERE seq = 1",
            params![seq, body, digest.0, Digest(before).chain_with(digest).0],
        )
        .unwrap();
    let (number, problem) = log_problems(&temp_store).remove(0);
    assert_eq!(number, seq.unsigned_abs());
    assert_eq!(problem, "written in format 7, and this version reads up to 1");
    let error = temp_store.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::Undecodable { .. }), "{error}");
    assert_eq!(salvage_store(&temp_store.path).unwrap().0, log);
}

#[test]
fn damaged_row_is_reported_and_rebuilt_from_log() {
    let damages = [
        ("UPDATE tasks SET row = replace(row, 'mend', 'rend') WHERE id = 3", "tasks 3", "differs from the log"),
        ("UPDATE tasks SET priority = 4 WHERE id = 3", "tasks 3", "differs from the log"),
        ("UPDATE tasks SET kind = 'bug' WHERE id = 3", "tasks 3", "differs from the log"),
        ("UPDATE tasks SET row = CAST(x'7bff' AS TEXT) WHERE id = 3", "tasks 3", "differs from the log"),
        ("DELETE FROM tasks WHERE id = 1", "tasks 1", "is missing"),
        ("DELETE FROM tasks WHERE id = (SELECT max(id) FROM tasks)", "tasks ", "is missing"),
        ("INSERT INTO tasks VALUES (0, 'ready', 2, '', NULL, NULL, '{}')", "tasks 0", "is not in the log"),
        ("UPDATE tasks SET id = 900 WHERE id = 3; DELETE FROM tasks WHERE id = 900", "tasks 3", "is missing"),
        ("UPDATE tasks SET lease_until = 7 WHERE id = 2", "tasks 2", "differs from the log"),
        ("UPDATE sessions SET row = '{}'", "sessions main", "differs from the log"),
        ("INSERT INTO debts VALUES (1, 0, '{}')", "debts 1.0", "is not in the log"),
        ("UPDATE configs SET content = 'rm -rf'", "configs ", "differs from the log"),
    ];
    for (damage, row, problem) in damages {
        let (temp_store, log) = filled_store(8);
        temp_store.open_connection().execute_batch(damage).unwrap();
        let mut store = temp_store.open();
        let report = store.inspect_store().unwrap();
        let [RowMismatch { row: found, problem: why }] = &report.rows[..] else { panic!("{damage}: {report:?}") };
        assert!(found.starts_with(row) && *why == problem, "{damage}: {report:?}");
        store.rebuild_rows().unwrap();
        assert!(store.inspect_store().unwrap().is_sound(), "{damage}");
        assert_eq!(read_log(&store), log);
    }
}

#[test]
fn unreadable_row_fails_only_commands_that_need_it() {
    let (temp_store, log) = filled_store(8);
    temp_store.open_connection().execute("UPDATE tasks SET row = '{' WHERE id = 3", []).unwrap();
    let mut store = temp_store.open();
    let error = store
        .execute_command(&engine_rules(), &command_origin(), &crate::support::start_task(3), next_nonce())
        .unwrap_err();
    assert!(matches!(error, windlass_store::ExecuteError::Store(StoreError::BadRow { .. })), "{error:?}");
    assert_eq!(read_log(&store), log);
    // A command that does not need the row succeeds.
    commit_command(&mut store, &create_task("another"));
}

#[test]
fn rebuild_from_damaged_log_is_refused_and_keeps_rows() {
    let (temp_store, _) = filled_store(8);
    let rows = |store: &windlass_store::SqliteStore| {
        let mut tasks = Vec::new();
        let all = windlass_store::TaskFilter::default();
        store
            .begin_snapshot()
            .unwrap()
            .visit_tasks(&all, |task| {
                tasks.push(task);
                true
            })
            .unwrap();
        tasks
    };
    let before = rows(&temp_store.open());
    flip_bit(&temp_store.open_connection(), "body");
    let mut store = temp_store.open();
    assert!(matches!(store.rebuild_rows(), Err(StoreError::Damaged { seq: Seq(5), .. })));
    assert_eq!(rows(&store), before);
    commit_command(&mut store, &create_task("it can be written to all the same"));
}
