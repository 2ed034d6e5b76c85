//! Single events and rows that are not what was written.

use rusqlite::{Connection, params};
use windlass_engine::{Digest, EventType, Seq, TaskId};
use windlass_store::{EventFilter, RowMismatch, Store, StoreError};

use crate::scene::{Place, create, everything, give, nonce, origin, rules};
use crate::{filled, inspect, salvage};

const VICTIM: i64 = 5;

/// Flips one bit in the middle of a column of an event.
fn flip(connection: &Connection, column: &str) {
    let ask = format!("SELECT {column} FROM events WHERE seq = ?");
    let mut bytes: Vec<u8> = connection.query_row(&ask, [VICTIM], |row| row.get(0)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let put = format!("UPDATE events SET {column} = ? WHERE seq = ?");
    connection.execute(&put, params![bytes, VICTIM]).unwrap();
}

fn problems(place: &Place) -> Vec<(u64, String)> {
    let report = inspect(&place.path).unwrap();
    assert!(report.rows.is_empty(), "rows are not blamed for the log");
    report.log.into_iter().map(|found| (found.seq.0, found.problem)).collect()
}

#[test]
fn a_flipped_body_or_digest_is_named_and_lost_alone() {
    for column in ["body", "digest"] {
        let (place, log) = filled(8);
        flip(&place.raw(), column);
        let found = problems(&place);
        assert_eq!(found[0], (5, "does not match its digest".to_owned()));
        let store = place.open();
        let error = store.read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { seq: Seq(5), .. }), "{error}");
        assert_eq!(store.read(&Filter::default(), Seq::START, 4).unwrap(), log[..4]);

        let (saved, salvage) = salvage(&place.path).unwrap();
        assert_eq!(salvage.lost, [(Seq(5), Seq(5))]);
        assert_eq!(saved, [&log[..4], &log[5..]].concat());
    }
}

#[test]
fn a_flipped_chain_is_named_and_nothing_is_lost() {
    let (place, log) = filled(8);
    flip(&place.raw(), "chain");
    assert_eq!(problems(&place)[0], (5, "does not match the chain".to_owned()));
    let error = place.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::BrokenChain { seq: Seq(5), .. }), "{error}");
    let (saved, salvage) = salvage(&place.path).unwrap();
    assert_eq!((saved, salvage.lost), (log, vec![]));
}

#[test]
fn a_column_of_another_kind_is_damage_too() {
    let (place, _) = filled(8);
    let connection = place.raw();
    // Strict tables check inserted values, not the data on the disk.
    let rewrite = |connection: &Connection, from: &str, to: &str| {
        let rewrite = format!("UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name = 'events'");
        connection.execute_batch(&format!("PRAGMA writable_schema = on; {rewrite}")).unwrap();
    };
    rewrite(&connection, "STRICT", "/**/");
    drop(connection);
    for (column, value) in [("body", "7"), ("digest", "x'00'"), ("chain", "'text'"), ("type", "7")] {
        let copy = Place::new();
        std::fs::copy(&place.path, &copy.path).unwrap();
        copy.raw().execute(&format!("UPDATE events SET {column} = {value} WHERE seq = {VICTIM}"), []).unwrap();
        rewrite(&copy.raw(), "/**/", "STRICT");
        let found = problems(&copy);
        assert_eq!(found[0].0, 5, "{column}: {found:?}");
        copy.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    }
}

#[test]
fn a_deleted_event_is_missing() {
    let (place, log) = filled(8);
    place.raw().execute("DELETE FROM events WHERE seq IN (5, 6)", []).unwrap();
    assert_eq!(problems(&place), [(5, "is missing".to_owned())]);
    let error = place.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::BrokenChain { seq: Seq(7), .. }), "{error}");
    let (saved, salvage) = salvage(&place.path).unwrap();
    assert_eq!(salvage.lost, [(Seq(5), Seq(6))]);
    assert_eq!(saved.len(), log.len() - 2);
}

#[test]
fn truncated_log_is_detected_by_rows() {
    let (place, log) = filled(8);
    let end = log.last().unwrap().seq;
    place.raw().execute("DELETE FROM events WHERE seq > ?", [end.0.cast_signed() - 2]).unwrap();
    let report = inspect(&place.path).unwrap();
    assert!(!report.is_sound() && !report.rows.is_empty(), "{report:?}");
    assert_eq!(salvage(&place.path).unwrap().1.lost, [(Seq(end.0 - 1), end)]);
}

#[test]
fn what_is_filed_wrongly_is_found_and_not_lost() {
    let (place, log) = filled(8);
    place.raw().execute("UPDATE events SET type = 'task_ready' WHERE seq = 5", []).unwrap();
    assert!(problems(&place)[0].1.contains("it is filed as `task_ready`"), "{:?}", problems(&place));
    let filter = EventFilter { types: vec![EventType::TaskReady], ..EventFilter::default() };
    let error = place.open().read_events(&filter, Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::Unfit { .. }), "{error}");
    let (saved, salvage) = salvage(&place.path).unwrap();
    assert_eq!((saved, salvage.lost), (log, vec![]));
}

#[test]
fn wrong_previous_position_is_found() {
    let (place, log) = filled(8);
    let second = log.iter().filter(|record| record.envelope.node.task_id() == Some(TaskId(1))).nth(2).unwrap().seq;
    let elsewhere = log.iter().find(|record| record.envelope.node.task_id() == Some(TaskId(2))).unwrap().seq;
    for to in [elsewhere.0, second.0, 10_000, 0] {
        let astray = params![to.cast_signed(), second.0.cast_signed()];
        place.raw().execute("UPDATE events SET previous = ? WHERE seq = ?", astray).unwrap();
        let found = problems(&place);
        assert_eq!(found[0].0, second.0);
        assert!(found[0].1.contains("it is filed after event"), "{found:?}");
        if to != 0 {
            let filter = EventFilter { task: Some(TaskId(1)), ..EventFilter::default() };
            place.open().read_events(&filter, Seq::START, 99).unwrap_err();
        }
    }
}

/// The history goes back as it should, and still ends in another task.
#[test]
fn a_history_that_leads_to_another_task_is_found() {
    let (place, log) = filled(8);
    let of = |task: u64, nth: usize| {
        log.iter().filter(|record| record.envelope.node.task_id() == Some(TaskId(task))).nth(nth).unwrap().seq
    };
    let (one, two) = (of(1, 0), of(2, 1));
    assert!(one < two);
    let astray = params![one.0.cast_signed(), two.0.cast_signed()];
    place.raw().execute("UPDATE events SET previous = ? WHERE seq = ?", astray).unwrap();
    let filter = EventFilter { task: Some(TaskId(2)), ..EventFilter::default() };
    let error = place.open().read_events(&filter, Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::Unfit { .. }), "{error}");
}

#[test]
fn a_newer_format_is_refused_by_number() {
    let (place, log) = filled(3);
    let connection = place.raw();
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
    let (number, problem) = problems(&place).remove(0);
    assert_eq!(number, seq.unsigned_abs());
    assert_eq!(problem, "written in format 7, and this version reads up to 1");
    let error = place.open().read_events(&EventFilter::default(), Seq::START, 99).unwrap_err();
    assert!(matches!(error, StoreError::Undecodable { .. }), "{error}");
    assert_eq!(salvage(&place.path).unwrap().0, log);
}

#[test]
fn a_damaged_row_is_named_and_the_log_mends_it() {
    let damages = [
        ("UPDATE tasks SET row = replace(row, 'mend', 'rend') WHERE id = 3", "tasks 3", "differs from the log"),
        ("UPDATE tasks SET priority = 4 WHERE id = 3", "tasks 3", "differs from the log"),
        ("UPDATE tasks SET kind = 'bug' WHERE id = 3", "tasks 3", "differs from the log"),
        ("UPDATE tasks SET row = CAST(x'7bff' AS TEXT) WHERE id = 3", "tasks 3", "differs from the log"),
        ("DELETE FROM tasks WHERE id = 1", "tasks 1", "is missing"),
        ("DELETE FROM tasks WHERE id = (SELECT max(id) FROM tasks)", "tasks ", "is missing"),
        ("INSERT INTO tasks VALUES (0, 'ready', 2, '', NULL, '{}')", "tasks 0", "is not in the log"),
        ("UPDATE tasks SET id = 900 WHERE id = 3; DELETE FROM tasks WHERE id = 900", "tasks 3", "is missing"),
        ("UPDATE tasks SET lease_until = 7 WHERE id = 2", "tasks 2", "differs from the log"),
        ("UPDATE sessions SET row = '{}'", "sessions main", "differs from the log"),
        ("INSERT INTO debts VALUES (1, 0, '{}')", "debts 1.0", "is not in the log"),
        ("UPDATE configs SET content = 'rm -rf'", "configs ", "differs from the log"),
    ];
    for (damage, row, problem) in damages {
        let (place, log) = filled(8);
        place.raw().execute_batch(damage).unwrap();
        let mut store = place.open();
        let report = store.inspect_store().unwrap();
        let [RowMismatch { row: found, problem: why }] = &report.rows[..] else { panic!("{damage}: {report:?}") };
        assert!(found.starts_with(row) && *why == problem, "{damage}: {report:?}");
        store.rebuild_rows().unwrap();
        assert!(store.inspect_store().unwrap().is_sound(), "{damage}");
        assert_eq!(everything(&store), log);
    }
}

#[test]
fn a_row_that_cannot_be_read_stops_the_command_that_needs_it() {
    let (place, log) = filled(8);
    place.raw().execute("UPDATE tasks SET row = '{' WHERE id = 3", []).unwrap();
    let mut store = place.open();
    let error = store.execute_command(&rules(), &origin(), &crate::scene::start(3), nonce()).unwrap_err();
    assert!(matches!(error, windlass_store::ExecuteError::Store(StoreError::BadRow { .. })), "{error:?}");
    assert_eq!(everything(&store), log);
    // A command that does not need the row succeeds.
    give(&mut store, &create("another"));
}

#[test]
fn a_damaged_log_does_not_overwrite_its_rows() {
    let (place, _) = filled(8);
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
    let before = rows(&place.open());
    flip(&place.raw(), "body");
    let mut store = place.open();
    assert!(matches!(store.rebuild(), Err(StoreError::Damaged { seq: Seq(5), .. })));
    assert_eq!(rows(&store), before);
    give(&mut store, &create("it can be written to all the same"));
}
