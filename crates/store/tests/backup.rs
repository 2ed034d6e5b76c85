//! Backups of a store, and stores that several threads create or read at the same time.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use windlass_store::{Lifetime, SqliteStore, Store, StoreError};

use support::{TempStore, commit_command, create_task, fill_store, read_log};

/// A guard that stops the writer, also when the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` several times while another thread writes.
fn run_during_writes(temp_store: &TempStore, mut work: impl FnMut(usize)) {
    let is_stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut store = temp_store.open();
            while !is_stopped.load(Ordering::Relaxed) {
                commit_command(&mut store, &create_task("meanwhile"));
            }
        });
        let _stop = StopOnDrop(&is_stopped);
        (0..5).for_each(&mut work);
    });
}

#[test]
fn backup_during_concurrent_writes_is_sound_log_prefix() {
    let temp_store = TempStore::new();
    fill_store(&mut temp_store.create(), 6);
    let store = temp_store.open();
    run_during_writes(&temp_store, |round| {
        let before = read_log(&store).len();
        let target = temp_store.directory.path().join(format!("copy-{round}.db"));
        store.backup_to(&target).unwrap();
        let copy = SqliteStore::open(&target, Lifetime::Command).unwrap();
        assert!(copy.inspect_store().unwrap().is_sound());
        let copied = read_log(&copy);
        assert!(copied.len() >= before);
        assert_eq!(copied, read_log(&store)[..copied.len()]);
    });
    let names = fs::read_dir(temp_store.directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
}

#[test]
fn inspection_during_writes_finds_no_problem() {
    let temp_store = TempStore::new();
    fill_store(&mut temp_store.create(), 6);
    let store = temp_store.open();
    run_during_writes(&temp_store, |_| {
        let report = store.inspect_store().unwrap();
        assert!(report.is_sound(), "{report:?}");
    });
}

#[test]
fn backup_copy_accepts_commits_independent_of_original() {
    let temp_store = TempStore::new();
    let mut store = temp_store.create();
    fill_store(&mut store, 6);
    // An open view must not prevent the copy.
    let view = store.open_view().unwrap();
    let target = temp_store.directory.path().join("copy.db");
    store.backup_to(&target).unwrap();
    drop(view);
    let mut copy = SqliteStore::open(&target, Lifetime::Command).unwrap();
    assert_eq!(read_log(&copy), read_log(&store));
    commit_command(&mut copy, &create_task("in the copy only"));
    assert!(copy.inspect_store().unwrap().is_sound());
    assert_ne!(read_log(&copy), read_log(&store));
}

#[test]
fn backup_overwrites_no_file() {
    let temp_store = TempStore::new();
    let store = temp_store.create();
    let taken = temp_store.directory.path().join("taken");
    fs::write(&taken, "mine").unwrap();
    let dangling = temp_store.directory.path().join("dangling");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    for path in [&taken, &dangling, &temp_store.path, &temp_store.directory.path().to_owned()] {
        let refused = store.backup_to(path).unwrap_err();
        assert!(matches!(refused, StoreError::Exists(_)), "{refused}");
    }
    assert_eq!(fs::read(&taken).unwrap(), b"mine");
    let nowhere = store.backup_to(&temp_store.directory.path().join("no/such/copy.db")).unwrap_err();
    assert!(matches!(nowhere, StoreError::Open { .. }), "{nowhere:?}");

    // Several threads back up to the same path. One of them succeeds and writes a complete copy.
    let wanted = temp_store.directory.path().join("wanted.db");
    let success_count = thread::scope(|scope| {
        let tries: Vec<_> = (0..6).map(|_| scope.spawn(|| temp_store.open().backup_to(&wanted))).collect();
        tries.into_iter().map(|one| one.join().unwrap()).filter(Result::is_ok).count()
    });
    assert_eq!(success_count, 1);
    assert!(SqliteStore::open(&wanted, Lifetime::Command).unwrap().inspect_store().unwrap().is_sound());
}

#[test]
fn store_path_need_not_be_utf8() {
    let temp_store = TempStore::new();
    let directory = temp_store.directory.path().join(OsStr::from_bytes(b"caf\xe9 100%? #1"));
    fs::create_dir(&directory).unwrap();
    let path = directory.join("windlass.db");
    let mut store = SqliteStore::create(&path, Lifetime::Command).unwrap();
    fill_store(&mut store, 3);
    let target = directory.join(OsStr::from_bytes(b"copy\xff.db"));
    store.backup_to(&target).unwrap();
    assert_eq!(read_log(&SqliteStore::open(&target, Lifetime::Command).unwrap()), read_log(&store));
    assert_eq!(SqliteStore::salvage_events(&target, |_| Ok(())).unwrap().saved, read_log(&store).len() as u64);
}

#[test]
fn concurrent_creation_makes_one_store() {
    for _ in 0..15 {
        let temp_store = TempStore::new();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| commit_command(&mut temp_store.create(), &create_task("mine")));
            }
        });
        let store = temp_store.open();
        assert_eq!(read_log(&store).len(), 16);
        assert!(store.inspect_store().unwrap().is_sound());
    }
}

#[test]
fn half_made_store_counts_as_missing() {
    let half_made_states: [&[&str]; 3] = [&[], &["PRAGMA journal_mode = wal"], &["CREATE TABLE x (y)", "DROP TABLE x"]];
    for statements in half_made_states {
        let temp_store = TempStore::new();
        assert!(SqliteStore::is_missing_or_blank(&temp_store.path));
        let connection = rusqlite::Connection::open(&temp_store.path).unwrap();
        statements.iter().for_each(|statements| connection.execute_batch(statements).unwrap());
        drop(connection);
        assert!(SqliteStore::is_missing_or_blank(&temp_store.path), "{statements:?}");
        let mut store = temp_store.create();
        assert!(!SqliteStore::is_missing_or_blank(&temp_store.path), "{statements:?}");
        fill_store(&mut store, 3);
        assert!(store.inspect_store().unwrap().is_sound());
    }
    let temp_store = TempStore::new();
    fs::write(&temp_store.path, "another program's text, which is much longer than nothing").unwrap();
    assert!(!SqliteStore::is_missing_or_blank(&temp_store.path));
}
