//! Copies of a store, and stores that many threads create or read at once.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

mod scene;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use windlass_store::{Lifetime, SqliteStore, Store, StoreError};

use scene::{Place, create, everything, fill, give};

/// Ends the writer, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` several times while another thread writes.
fn while_written(place: &Place, mut work: impl FnMut(usize)) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut store = place.open();
            while !over.load(Ordering::Relaxed) {
                give(&mut store, &create("meanwhile"));
            }
        });
        let _ends = Ends(&over);
        (0..5).for_each(&mut work);
    });
}

#[test]
fn a_copy_of_a_store_that_is_being_written_is_a_whole_store() {
    let place = Place::new();
    fill(&mut place.create(), 6);
    let store = place.open();
    while_written(&place, |round| {
        let before = everything(&store).len();
        let to = place.directory.path().join(format!("copy-{round}.db"));
        store.backup_to(&to).unwrap();
        let copy = SqliteStore::open(&to, Lifetime::Command).unwrap();
        assert!(copy.inspect_store().unwrap().is_sound());
        let copied = everything(&copy);
        assert!(copied.len() >= before);
        assert_eq!(copied, everything(&store)[..copied.len()]);
    });
    let names = fs::read_dir(place.directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
}

#[test]
fn inspection_during_writes_finds_no_problem() {
    let place = Place::new();
    fill(&mut place.create(), 6);
    let store = place.open();
    while_written(&place, |_| {
        let report = store.inspect_store().unwrap();
        assert!(report.is_sound(), "{report:?}");
    });
}

#[test]
fn a_copy_can_be_written_to_like_any_store() {
    let place = Place::new();
    let mut store = place.create();
    fill(&mut store, 6);
    // An open view must not prevent the copy.
    let view = store.open_view().unwrap();
    let to = place.directory.path().join("copy.db");
    store.backup_to(&to).unwrap();
    drop(view);
    let mut copy = SqliteStore::open(&to, Lifetime::Command).unwrap();
    assert_eq!(everything(&copy), everything(&store));
    give(&mut copy, &create("in the copy only"));
    assert!(copy.inspect_store().unwrap().is_sound());
    assert_ne!(everything(&copy), everything(&store));
}

#[test]
fn backup_overwrites_no_file() {
    let place = Place::new();
    let store = place.create();
    let taken = place.directory.path().join("taken");
    fs::write(&taken, "mine").unwrap();
    let dangling = place.directory.path().join("dangling");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    for path in [&taken, &dangling, &place.path, &place.directory.path().to_owned()] {
        let refused = store.backup_to(path).unwrap_err();
        assert!(matches!(refused, StoreError::Exists(_)), "{refused}");
    }
    assert_eq!(fs::read(&taken).unwrap(), b"mine");
    let nowhere = store.backup_to(&place.directory.path().join("no/such/copy.db")).unwrap_err();
    assert!(matches!(nowhere, StoreError::Open { .. }), "{nowhere:?}");

    // Of many threads that want the same name, one gets it, with a whole copy.
    let wanted = place.directory.path().join("wanted.db");
    let got = thread::scope(|scope| {
        let tries: Vec<_> = (0..6).map(|_| scope.spawn(|| place.open().backup_to(&wanted))).collect();
        tries.into_iter().map(|one| one.join().unwrap()).filter(Result::is_ok).count()
    });
    assert_eq!(got, 1);
    assert!(SqliteStore::open(&wanted, Lifetime::Command).unwrap().inspect_store().unwrap().is_sound());
}

#[test]
fn store_path_need_not_be_utf8() {
    let place = Place::new();
    let directory = place.directory.path().join(OsStr::from_bytes(b"caf\xe9 100%? #1"));
    fs::create_dir(&directory).unwrap();
    let path = directory.join("windlass.db");
    let mut store = SqliteStore::create(&path, Lifetime::Command).unwrap();
    fill(&mut store, 3);
    let to = directory.join(OsStr::from_bytes(b"copy\xff.db"));
    store.backup_to(&to).unwrap();
    assert_eq!(everything(&SqliteStore::open(&to, Lifetime::Command).unwrap()), everything(&store));
    assert_eq!(SqliteStore::salvage_events(&to, |_| Ok(())).unwrap().saved, everything(&store).len() as u64);
}

#[test]
fn concurrent_creation_makes_one_store() {
    for _ in 0..15 {
        let place = Place::new();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| give(&mut place.create(), &create("mine")));
            }
        });
        let store = place.open();
        assert_eq!(everything(&store).len(), 16);
        assert!(store.inspect_store().unwrap().is_sound());
    }
}

#[test]
fn half_made_store_counts_as_missing() {
    let begun: [&[&str]; 3] = [&[], &["PRAGMA journal_mode = wal"], &["CREATE TABLE x (y)", "DROP TABLE x"]];
    for words in begun {
        let place = Place::new();
        assert!(SqliteStore::is_missing_or_blank(&place.path));
        let connection = rusqlite::Connection::open(&place.path).unwrap();
        words.iter().for_each(|words| connection.execute_batch(words).unwrap());
        drop(connection);
        assert!(SqliteStore::is_missing_or_blank(&place.path), "{words:?}");
        let mut store = place.create();
        assert!(!SqliteStore::is_missing_or_blank(&place.path), "{words:?}");
        fill(&mut store, 3);
        assert!(store.inspect_store().unwrap().is_sound());
    }
    let place = Place::new();
    fs::write(&place.path, "another program's text, which is much longer than nothing").unwrap();
    assert!(!SqliteStore::is_missing_or_blank(&place.path));
}
