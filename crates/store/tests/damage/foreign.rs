//! Hostile stores of other origin: Windlass refuses objects that its schema does not have, and runs none of them.

use std::fs;

use windlass_store::{ExecuteError, Lifetime, SqliteStore, Store, StoreError};

use crate::filled_store;
use crate::support::{TempStore, command_origin, create_task, engine_rules, next_nonce};

/// Statements that make a store hostile, each with the object that the error names.
const HARMFUL_STATEMENTS: &[(&str, &str)] = &[
    ("CREATE VIEW harm AS SELECT 1", "the view `harm`"),
    ("CREATE TRIGGER harm AFTER INSERT ON events BEGIN DELETE FROM tasks; END", "the trigger `harm`"),
    ("CREATE TABLE harm (x)", "the table `harm`"),
    ("CREATE INDEX harm ON events (type)", "the index `harm`"),
    ("DROP TABLE edges; CREATE VIEW edges AS SELECT 1", "the view `edges`"),
    ("ALTER TABLE sessions ADD COLUMN harm TEXT AS (upper(row))", "the table `sessions`"),
    ("ALTER TABLE events ADD COLUMN harm TEXT", "the table `events`"),
    ("DROP INDEX tasks_leased", "`tasks_leased`"),
    ("DROP TABLE debts", "`debts`"),
];

#[test]
fn store_with_another_schema_is_refused_with_the_part_that_differs() {
    for (statement, named) in HARMFUL_STATEMENTS {
        let (temp_store, _) = filled_store(2);
        temp_store.open_connection().execute_batch(statement).unwrap();
        let refused = SqliteStore::open(&temp_store.path, Lifetime::Command).map(drop).unwrap_err();
        assert!(matches!(&refused, StoreError::OtherSchema { what, .. } if what == named), "{statement}: {refused}");
        let refused = SqliteStore::create(&temp_store.path, Lifetime::Command).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::OtherSchema { .. }), "{statement}: {refused}");
    }
}

#[test]
fn older_store_with_a_trigger_or_another_log_is_not_brought_forward() {
    for (statement, named) in HARMFUL_STATEMENTS
        .iter()
        .filter(|(statement, _)| statement.contains("VIEW harm") || statement.contains("events "))
    {
        let (temp_store, _) = filled_store(2);
        temp_store.open_connection().execute_batch(statement).unwrap();
        temp_store.open_connection().pragma_update(None, "user_version", 1).unwrap();
        let before = fs::read(&temp_store.path).unwrap();
        let refused = SqliteStore::open(&temp_store.path, Lifetime::Command).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::OtherSchema { .. }), "{statement} ({named}): {refused}");
        assert_eq!(fs::read(&temp_store.path).unwrap(), before, "{statement}");
    }
}

/// SQLite would treat a journal beside a database as the remains of a crash, and write its pages back.
#[test]
fn rollback_journal_beside_a_store_is_refused_and_not_applied() {
    let (temp_store, log) = filled_store(2);
    let elsewhere = temp_store.directory.path().join("elsewhere.db");
    fs::copy(&temp_store.path, &elsewhere).unwrap();
    let connection = rusqlite::Connection::open(&elsewhere).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = delete; PRAGMA synchronous = off; UPDATE events SET type = 'harm'")
        .unwrap();
    connection.execute_batch("BEGIN; UPDATE events SET type = 'other'").unwrap();
    let journal = temp_store.path.with_file_name("windlass.db-journal");
    fs::copy(elsewhere.with_file_name("elsewhere.db-journal"), &journal).unwrap();
    let before = fs::read(&temp_store.path).unwrap();
    let refused = SqliteStore::open(&temp_store.path, Lifetime::Command).map(drop).unwrap_err();
    assert!(matches!(&refused, StoreError::StrayJournal(at) if *at == journal), "{refused}");
    assert_eq!(fs::read(&temp_store.path).unwrap(), before);
    fs::remove_file(&journal).unwrap();
    assert_eq!(crate::read_log(&temp_store.open()), log);
}

#[test]
fn foreign_store_is_read_and_takes_no_commit() {
    let (temp_store, log) = filled_store(2);
    let identity = temp_store.open().read_identity().unwrap();
    let mut store = SqliteStore::open_foreign(&temp_store.path).unwrap();
    assert_eq!((crate::read_log(&store), store.read_identity().unwrap()), (log, identity.clone()));
    let refused = store.execute_command(&engine_rules(), &command_origin(), &create_task("after"), next_nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Foreign(_)))), "{refused:?}");
    assert!(matches!(store.rebuild_rows(), Err(StoreError::Foreign(_))));
    let known = SqliteStore::open_if_known(&temp_store.path, Lifetime::Command, |found| found == identity.as_deref());
    assert!(known.is_ok());
    let other =
        SqliteStore::open_if_known(&temp_store.path, Lifetime::Command, |found| found == Some("other")).map(drop);
    assert!(matches!(other, Err(StoreError::Foreign(_))), "{other:?}");
}

#[test]
fn survey_of_a_store_refuses_rows_that_its_log_does_not_give() {
    let (temp_store, log) = filled_store(2);
    let survey = SqliteStore::survey_foreign(&temp_store.path).unwrap();
    assert_eq!(crate::read_log(&survey.store), log);
    assert!(survey.rows.len() > 2, "{:?}", survey.rows);
    temp_store.open_connection().pragma_update(None, "user_version", 1).unwrap();
    let older = SqliteStore::survey_foreign(&temp_store.path).unwrap();
    assert_eq!(older.rows, survey.rows);
    assert!(matches!(SqliteStore::open_foreign(&temp_store.path).map(drop), Err(StoreError::Foreign(_))));
    temp_store.open_connection().pragma_update(None, "user_version", 9).unwrap();
    temp_store
        .open_connection()
        .execute("UPDATE tasks SET row = replace(row, 'mend', 'rend') WHERE id = 1", [])
        .unwrap();
    assert!(matches!(SqliteStore::survey_foreign(&temp_store.path).map(drop), Err(StoreError::Unsound { .. })));
}

#[test]
fn files_of_a_new_store_are_there_when_they_are_recorded() {
    let temp_store = TempStore::new();
    let mut seen = Vec::new();
    let created = SqliteStore::create_with_record(&temp_store.path, Lifetime::Command, || {
        seen.push((temp_store.path.exists(), fs::metadata(temp_store.wal_path())?.len()));
        Ok(())
    });
    assert!(created.is_ok());
    drop(created);
    assert_eq!(seen, [(true, 0)], "the log's file is there, and empty");
    assert!(!temp_store.path.with_file_name("windlass.db-journal").exists());
    let refused = SqliteStore::create_with_record(&TempStore::new().path, Lifetime::Command, || {
        Err(std::io::ErrorKind::Other.into())
    });
    assert!(matches!(refused.map(drop), Err(StoreError::Record { .. })));
}
