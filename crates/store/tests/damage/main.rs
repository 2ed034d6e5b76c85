//! Damaged stores: an error names the damage, no call panics or hangs, and a salvage saves the valid events.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![expect(clippy::disallowed_methods, reason = "some damage needs a child process with environment variables")]

#[path = "../support/mod.rs"]
mod support;

mod disk;
mod events;
mod files;
mod foreign;
mod wal;

use std::path::Path;

use rusqlite::Connection;
use windlass_engine::{EventRecord, Seq};
use windlass_store::{Lifetime, SalvageReport, SqliteStore, StoreError, StoreReport};

use support::{TempStore, fill_store, read_log};

/// Creates a store whose events are all in the database file, not in the write-ahead log. Returns the store and its events.
fn filled_store(tasks: u64) -> (TempStore, Vec<EventRecord>) {
    let temp_store = TempStore::new();
    let mut store = temp_store.create();
    fill_store(&mut store, tasks);
    let log = read_log(&store);
    drop(store);
    checkpoint_wal(&temp_store.open_connection());
    (temp_store, log)
}

/// Moves all pages from the write-ahead log into the database file, and truncates the log.
fn checkpoint_wal(connection: &Connection) {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

/// Opens a store and inspects it.
fn inspect_store(path: &Path) -> Result<StoreReport, StoreError> {
    SqliteStore::open(path, Lifetime::Command)?.inspect_store()
}

fn salvage_store(path: &Path) -> Result<(Vec<EventRecord>, SalvageReport), StoreError> {
    let mut saved = Vec::new();
    let salvage = SqliteStore::salvage_events(path, |record| {
        saved.push(record);
        Ok(())
    })?;
    assert_eq!(salvage.saved, saved.len() as u64);
    Ok((saved, salvage))
}

/// Returns whether an error names a specific cause.
fn is_named(error: &StoreError) -> bool {
    !matches!(error, StoreError::Sqlite { .. } | StoreError::Io { .. } | StoreError::OutcomeUnknown { .. })
}

/// Checks that the damage of a store is reported or harmless, and that a salvage saves each event or names it as lost. Returns
/// the number of saved events.
fn check_damage(path: &Path, log: &[EventRecord], description: &str) -> usize {
    match SqliteStore::open(path, Lifetime::Command).and_then(|store| Ok((store.inspect_store()?, store))) {
        Ok((report, store)) if report.is_sound() => assert_eq!(read_log(&store), log, "{description}: not noticed"),
        Ok((report, _)) => {
            let seqs = report.log.iter().map(|found| found.seq);
            assert!(seqs.into_iter().all(|seq| seq > Seq::START), "{description}: {report:?}");
        }
        Err(error) => assert!(is_named(&error), "{description}: {error:?}"),
    }
    match salvage_store(path) {
        Ok((saved, salvage)) => {
            for record in log {
                let is_saved = saved.iter().any(|saved| saved == record);
                let is_lost = salvage.lost.iter().any(|(first, last)| (*first..=*last).contains(&record.seq));
                let is_beyond = salvage.open_end && saved.last().is_none_or(|last| last.seq < record.seq);
                assert!(is_saved != (is_lost || is_beyond), "{description}: event {} of {salvage:?}", record.seq);
            }
            assert!(saved.iter().all(|saved| log.contains(saved)), "{description}: something was made up");
            saved.len()
        }
        Err(error) => {
            assert!(is_named(&error), "{description}: {error:?}");
            0
        }
    }
}
