//! Tests of the SQLite store itself.

use super::*;
use windlass_engine::{Authority, NewSession, NewTask, Timestamp};
use windlass_testkit::sample_session;

fn store() -> (tempfile::TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::create(&directory.path().join("windlass.db"), Lifetime::Command).unwrap();
    (directory, store)
}

fn add(store: &mut SqliteStore, goal: &str) -> Result<Vec<EventRecord>, ExecuteError> {
    let at = Timestamp::from_millis(0);
    let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
    let task = Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() });
    store.execute_command(&EngineRules::default(), &origin, &task, 7)
}

#[test]
fn store_connection_uses_full_sync_and_wal_mode() {
    let (_directory, store) = store();
    let ask = |name| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(ask("synchronous"), 2, "full");
    let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn full_database_is_reported_and_store_stays_sound() {
    let (_directory, mut store) = store();
    add(&mut store, "fits").unwrap();
    let pages: u32 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let long = "x".repeat(60_000);
    let refused = (0..100).find_map(|_| add(&mut store, &long).err()).unwrap();
    assert!(matches!(refused, ExecuteError::Store(StoreError::Full { .. })), "{refused:?}");
    assert!(store.inspect_store().unwrap().is_sound());
    store.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
    add(&mut store, &long).unwrap();
    assert!(store.inspect_store().unwrap().is_sound());
}

#[test]
fn writer_without_turn_reports_busy_store() {
    let (_directory, mut store) = store();
    let other = open_connection(&store.path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.connection.busy_handler(Some(random_wait_handler(Duration::ZERO))).unwrap();
    let refused = add(&mut store, "no turn").unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::Busy { .. })), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(add(&mut store, "its turn").unwrap().len(), 2);
}

#[test]
fn store_removed_during_wait_refuses_commit() {
    let (_directory, mut store) = store();
    let other = open_connection(&store.path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let path = store.path.clone();
    let go_away = move |_| {
        std::fs::rename(&path, path.with_extension("away")).unwrap();
        other.execute_batch("ROLLBACK").is_ok()
    };
    store.connection.busy_handler(Some(go_away)).unwrap();
    let refused = add(&mut store, "late").unwrap_err();
    assert!(matches!(refused, ExecuteError::Store(StoreError::Replaced(_))), "{refused:?}");
    assert_eq!(queries::read_head(&store).unwrap(), Seq::START, "nothing was written");
}

/// A caller that ignores a failed write must not make half of it durable.
#[test]
fn failed_transaction_is_not_committed_although_caller_ignores_error() {
    let (_directory, mut store) = store();
    add(&mut store, "whole").unwrap();
    // The events can be written, the rows cannot.
    let refusing = "DROP TABLE sessions; CREATE TABLE sessions (name TEXT, row TEXT CHECK (0))";
    store.connection.execute_batch(refusing).unwrap();
    let origin = CommandOrigin {
        by: "ada".to_owned(),
        at: Timestamp::from_millis(0),
        authority: Authority::Forced,
        run: None,
        via: None,
    };
    let start = Command::StartSession(NewSession { task: None, ..sample_session() });
    store
        .run_transaction(|transaction| {
            transaction.execute_command(&EngineRules::default(), &origin, &start, 8).unwrap_err();
            Ok(())
        })
        .unwrap_err();
    assert_eq!(queries::read_head(&store).unwrap(), Seq(2));
}

/// Returns the steps of the plan of a query.
fn explain_query(store: &SqliteStore, sql: &str) -> String {
    let mut query = store.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let count = query.parameter_count();
    let rows = query.query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get::<_, String>(3)).unwrap();
    rows.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
}

#[test]
fn queries_of_tasks_sort_nothing_and_scan_nothing() {
    let (_directory, store) = store();
    let claim = explain_query(&store, rows::NEXT_CLAIMABLE_SQL);
    assert!(claim.contains("tasks_claimable") && !claim.contains("TEMP B-TREE"), "{claim}");
    for states in 1..=8 {
        let plan = explain_query(&store, &queries::select_tasks_sql(states));
        assert!(plan.contains("tasks_in_state (state=? AND id>?)"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{plan}");
    }
}
