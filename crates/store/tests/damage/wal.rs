//! Truncated and changed write-ahead logs, as a crash of the machine can leave them.

use std::fs;

use windlass_engine::EventRecord;
use windlass_store::{Lifetime, SqliteStore, StoreError};

use crate::salvage_store;
use crate::support::{TempStore, fill_store, read_log};

const HEADER_SIZE: usize = 32;
const FRAME_SIZE: usize = 24 + 4096;

/// Creates a store without its write-ahead log, which alone has the last commits. Returns the store, this log and the commits.
fn store_with_wal() -> (TempStore, Vec<u8>, Vec<Vec<EventRecord>>) {
    let temp_store = TempStore::new();
    let mut store = temp_store.create();
    let commits = fill_store(&mut store, 6);
    let wal = fs::read(temp_store.wal_path()).unwrap();
    // The copy happens before a handle closes, as in a crash of the machine.
    let copy = TempStore::new();
    fs::copy(&temp_store.path, &copy.path).unwrap();
    drop(store);
    (copy, wal, commits)
}

/// Opens the store with this write-ahead log.
fn open_with_wal(temp_store: &TempStore, wal: &[u8]) -> (TempStore, Result<SqliteStore, StoreError>) {
    let copy = TempStore::new();
    fs::copy(&temp_store.path, &copy.path).unwrap();
    fs::write(copy.wal_path(), wal).unwrap();
    let opened = SqliteStore::open(&copy.path, Lifetime::Command);
    (copy, opened)
}

/// Checks that the store with this write-ahead log is sound and holds a prefix of the commits. Returns the length of the prefix.
fn check_prefix(temp_store: &TempStore, wal: &[u8], commits: &[Vec<EventRecord>], description: &str) -> usize {
    let (_copy, opened) = open_with_wal(temp_store, wal);
    let store = opened.unwrap();
    let log = read_log(&store);
    let kept = (0..=commits.len()).find(|kept| commits[..*kept].concat() == log);
    let kept = kept.unwrap_or_else(|| panic!("{description}: {} events are no prefix of the commits", log.len()));
    assert!(store.inspect_store().unwrap().is_sound(), "{description}");
    kept
}

fn used_frames(wal: &[u8]) -> usize {
    wal[HEADER_SIZE..]
        .chunks(FRAME_SIZE)
        .take_while(|frame| frame.len() == FRAME_SIZE && frame[8..16] == wal[16..24])
        .count()
}

#[test]
fn truncated_wal_yields_prefix_of_commits() {
    let (temp_store, wal, commits) = store_with_wal();
    let frames = used_frames(&wal);
    assert!(frames > commits.len(), "every commit is in the log");
    let mut kept = 0;
    let ends = (0..=frames).map(|frame| HEADER_SIZE + frame * FRAME_SIZE);
    let cuts = ends.flat_map(|end| [end.saturating_sub(1), end, end + FRAME_SIZE / 2]);
    for cut in [0, 1, HEADER_SIZE - 1].into_iter().chain(cuts).filter(|cut| *cut <= wal.len()) {
        let now = check_prefix(&temp_store, &wal[..cut], &commits, &format!("cut at {cut}"));
        assert!(now >= kept, "a longer piece holds no less");
        kept = now;
    }
    assert_eq!(kept, commits.len(), "what was acknowledged is in the whole log");
}

/// Returns the index of the commit that a frame belongs to.
fn commit_of(wal: &[u8], frame: usize) -> usize {
    let ends_commit = |frame: &&[u8]| frame[4..8] != [0; 4];
    wal[HEADER_SIZE..].chunks(FRAME_SIZE).take(frame).filter(ends_commit).count()
}

/// The store neither loses acknowledged commits silently nor overwrites them.
#[test]
fn wal_with_changed_frame_is_refused_and_prefix_salvaged() {
    let (temp_store, wal, commits) = store_with_wal();
    for frame in 0..used_frames(&wal) {
        for offset in [6, 20, 1000, FRAME_SIZE - 1] {
            let mut wal = wal.clone();
            wal[HEADER_SIZE + frame * FRAME_SIZE + offset] ^= 0x10;
            let commit = commit_of(&wal, frame);
            let (copy, opened) = open_with_wal(&temp_store, &wal);
            let description = format!("byte {offset} of frame {frame}, in commit {commit}");
            let before = commits[..commit].concat();
            match opened {
                Err(StoreError::LostCommits { last, .. }) => assert_eq!(last.0, before.len() as u64, "{description}"),
                // A damaged last commit looks like one that a crash tore before it was acknowledged.
                Ok(store) if commit + 1 == commits.len() => assert_eq!(read_log(&store), before, "{description}"),
                other => panic!("{description}: {:?}", other.map(drop)),
            }
            assert_eq!(salvage_store(&copy.path).unwrap().0, before, "{description}");
        }
    }
}

#[test]
fn wal_with_changed_header_is_refused() {
    let (temp_store, wal, _) = store_with_wal();
    for byte in (0..HEADER_SIZE).step_by(5) {
        let mut wal = wal.clone();
        wal[byte] ^= 0x10;
        let refused = open_with_wal(&temp_store, &wal).1.map(drop);
        assert!(matches!(refused, Err(StoreError::LostCommits { .. })), "byte {byte}: {refused:?}");
    }
}

#[test]
fn wal_of_other_content_is_refused() {
    let (temp_store, wal, _) = store_with_wal();
    let refused = open_with_wal(&temp_store, &vec![0x5a; wal.len()]).1.map(drop);
    assert!(matches!(refused, Err(StoreError::LostCommits { .. })), "{refused:?}");
}
