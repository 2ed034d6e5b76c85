//! Damage of every kind: an error names it, nothing panics or hangs, and sound events can be saved.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]
#![expect(clippy::disallowed_methods, reason = "some damage needs a child process, and the child has to be told")]

#[path = "../scene/mod.rs"]
mod scene;

mod disk;
mod events;
mod files;
mod foreign;
mod wal;

use std::path::Path;

use rusqlite::Connection;
use windlass_engine::{EventRecord, Seq};
use windlass_store::{Lifetime, SalvageReport, SqliteStore, StoreError, StoreReport};

use scene::{Place, everything, fill};

/// Makes a store with a history, all of it in the file itself, and returns that history too.
fn filled(tasks: u64) -> (Place, Vec<EventRecord>) {
    let place = Place::new();
    let mut store = place.create();
    fill(&mut store, tasks);
    let log = everything(&store);
    drop(store);
    fold_back(&place.raw());
    (place, log)
}

/// Moves everything from the write-ahead log into the file, and truncates the log.
fn fold_back(connection: &Connection) {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

/// Verifies a store, if it can be opened.
fn inspect(path: &Path) -> Result<StoreReport, StoreError> {
    SqliteStore::open(path, Lifetime::Command)?.inspect_store()
}

fn salvage(path: &Path) -> Result<(Vec<EventRecord>, SalvageReport), StoreError> {
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

/// Checks a damaged store: the damage is noticed or harmless, and every sound event is saved or named as lost. Returns how many
/// events were saved.
fn check_damage(path: &Path, log: &[EventRecord], what: &str) -> usize {
    match SqliteStore::open(path, Lifetime::Command).and_then(|store| Ok((store.inspect_store()?, store))) {
        Ok((report, store)) if report.is_sound() => assert_eq!(everything(&store), log, "{what}: not noticed"),
        Ok((report, _)) => {
            let seqs = report.log.iter().map(|found| found.seq);
            assert!(seqs.into_iter().all(|seq| seq > Seq::START), "{what}: {report:?}");
        }
        Err(error) => assert!(is_named(&error), "{what}: {error:?}"),
    }
    match salvage(path) {
        Ok((saved, salvage)) => {
            for record in log {
                let is_saved = saved.iter().any(|saved| saved == record);
                let is_lost = salvage.lost.iter().any(|(first, last)| (*first..=*last).contains(&record.seq));
                let is_beyond = salvage.open_end && saved.last().is_none_or(|last| last.seq < record.seq);
                assert!(is_saved != (is_lost || is_beyond), "{what}: event {} of {salvage:?}", record.seq);
            }
            assert!(saved.iter().all(|saved| log.contains(saved)), "{what}: something was made up");
            saved.len()
        }
        Err(error) => {
            assert!(is_named(&error), "{what}: {error:?}");
            0
        }
    }
}
