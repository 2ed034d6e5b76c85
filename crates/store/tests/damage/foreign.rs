//! Stores that were made elsewhere, to do harm: extra objects beside our tables are refused, and none of them runs.

use std::fs;

use windlass_store::{ExecuteError, Lifetime, SqliteStore, Store, StoreError};

use crate::filled;
use crate::scene::{Place, create, nonce, origin, rules};

/// Statements that change a store in a harmful way, each with the part that the error names.
const HARMFUL: &[(&str, &str)] = &[
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
    for (harm, named) in HARMFUL {
        let (place, _) = filled(2);
        place.raw().execute_batch(harm).unwrap();
        let refused = SqliteStore::open(&place.path, Lifetime::Command).map(drop).unwrap_err();
        assert!(matches!(&refused, StoreError::OtherSchema { what, .. } if what == named), "{harm}: {refused}");
        let refused = SqliteStore::create(&place.path, Lifetime::Command).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::OtherSchema { .. }), "{harm}: {refused}");
    }
}

#[test]
fn older_store_with_a_trigger_or_another_log_is_not_brought_forward() {
    for (harm, named) in HARMFUL.iter().filter(|(harm, _)| harm.contains("VIEW harm") || harm.contains("events ")) {
        let (place, _) = filled(2);
        place.raw().execute_batch(harm).unwrap();
        place.raw().pragma_update(None, "user_version", 1).unwrap();
        let before = fs::read(&place.path).unwrap();
        let refused = SqliteStore::open(&place.path, Lifetime::Command).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::OtherSchema { .. }), "{harm} ({named}): {refused}");
        assert_eq!(fs::read(&place.path).unwrap(), before, "{harm}");
    }
}

/// SQLite takes a journal beside a database for the remains of a crash, and writes its pages back.
#[test]
fn rollback_journal_beside_a_store_is_refused_and_not_applied() {
    let (place, log) = filled(2);
    let elsewhere = place.directory.path().join("elsewhere.db");
    fs::copy(&place.path, &elsewhere).unwrap();
    let harm = rusqlite::Connection::open(&elsewhere).unwrap();
    harm.execute_batch("PRAGMA journal_mode = delete; PRAGMA synchronous = off; UPDATE events SET type = 'harm'")
        .unwrap();
    harm.execute_batch("BEGIN; UPDATE events SET type = 'other'").unwrap();
    let journal = place.path.with_file_name("windlass.db-journal");
    fs::copy(elsewhere.with_file_name("elsewhere.db-journal"), &journal).unwrap();
    let before = fs::read(&place.path).unwrap();
    let refused = SqliteStore::open(&place.path, Lifetime::Command).map(drop).unwrap_err();
    assert!(matches!(&refused, StoreError::StrayJournal(at) if *at == journal), "{refused}");
    assert_eq!(fs::read(&place.path).unwrap(), before);
    fs::remove_file(&journal).unwrap();
    assert_eq!(crate::everything(&place.open()), log);
}

#[test]
fn foreign_store_is_read_and_takes_no_commit() {
    let (place, log) = filled(2);
    let identity = place.open().read_identity().unwrap();
    let mut store = SqliteStore::open_foreign(&place.path).unwrap();
    assert_eq!((crate::everything(&store), store.identity().unwrap()), (log, identity.clone()));
    let refused = store.execute_command(&rules(), &origin(), &create("after"), nonce());
    assert!(matches!(refused, Err(ExecuteError::Store(StoreError::Foreign(_)))), "{refused:?}");
    assert!(matches!(store.rebuild(), Err(StoreError::Foreign(_))));
    let known = SqliteStore::open_if_known(&place.path, Lifetime::Command, |found| found == identity.as_deref());
    assert!(known.is_ok());
    let other = SqliteStore::open_if_known(&place.path, Lifetime::Command, |found| found == Some("other")).map(drop);
    assert!(matches!(other, Err(StoreError::Foreign(_))), "{other:?}");
}

#[test]
fn survey_of_a_store_refuses_rows_that_its_log_does_not_give() {
    let (place, log) = filled(2);
    let survey = SqliteStore::survey_foreign(&place.path).unwrap();
    assert_eq!(crate::everything(&survey.store), log);
    assert!(survey.rows.len() > 2, "{:?}", survey.rows);
    place.raw().pragma_update(None, "user_version", 1).unwrap();
    let older = SqliteStore::survey_foreign(&place.path).unwrap();
    assert_eq!(older.rows, survey.rows);
    assert!(matches!(Sqlite::open_foreign(&place.path).map(drop), Err(StoreError::Foreign(_))));
    place.raw().pragma_update(None, "user_version", 6).unwrap();
    place.raw().execute("UPDATE tasks SET row = replace(row, 'mend', 'rend') WHERE id = 1", []).unwrap();
    assert!(matches!(Sqlite::survey(&place.path).map(drop), Err(StoreError::Unsound { .. })));
}

#[test]
fn files_of_a_new_store_are_there_when_they_are_recorded() {
    let place = Place::new();
    let mut seen = Vec::new();
    let made = SqliteStore::create_with_record(&place.path, Lifetime::Command, || {
        seen.push((place.path.exists(), fs::metadata(place.wal())?.len()));
        Ok(())
    });
    assert!(made.is_ok());
    drop(made);
    assert_eq!(seen, [(true, 0)], "the log's file is there, and empty");
    assert!(!place.path.with_file_name("windlass.db-journal").exists());
    let refused =
        SqliteStore::create_with_record(
            &Place::new().path,
            Lifetime::Command,
            || Err(std::io::ErrorKind::Other.into()),
        );
    assert!(matches!(refused.map(drop), Err(StoreError::Record { .. })));
}
