//! Write-ahead logs that are cut or changed, as a crash of the whole machine can leave them.

use std::fs;

use windlass_engine::EventRecord;
use windlass_store::{Lifetime, SqliteStore, StoreError};

use crate::salvage;
use crate::scene::{Place, everything, fill};

const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;

/// Makes a store whose last commits are in its write-ahead log only, with that log and the commits.
fn unfolded() -> (Place, Vec<u8>, Vec<Vec<EventRecord>>) {
    let place = Place::new();
    let mut store = place.create();
    let commits = fill(&mut store, 6);
    let wal = fs::read(place.wal()).unwrap();
    // As after a crash of the machine: no handle was closed.
    let copy = Place::new();
    fs::copy(&place.path, &copy.path).unwrap();
    drop(store);
    (copy, wal, commits)
}

/// Opens the store with this write-ahead log.
fn open_with(place: &Place, wal: &[u8]) -> (Place, Result<SqliteStore, StoreError>) {
    let copy = Place::new();
    fs::copy(&place.path, &copy.path).unwrap();
    fs::write(copy.wal(), wal).unwrap();
    let opened = SqliteStore::open(&copy.path, Lifetime::Command);
    (copy, opened)
}

/// Checks that the store with this write-ahead log holds a prefix of the commits, and is sound. Returns how many.
fn check(place: &Place, wal: &[u8], commits: &[Vec<EventRecord>], what: &str) -> usize {
    let (_copy, opened) = open_with(place, wal);
    let store = opened.unwrap();
    let log = everything(&store);
    let kept = (0..=commits.len()).find(|kept| commits[..*kept].concat() == log);
    let kept = kept.unwrap_or_else(|| panic!("{what}: {} events are no prefix of the commits", log.len()));
    assert!(store.inspect_store().unwrap().is_sound(), "{what}");
    kept
}

fn used_frames(wal: &[u8]) -> usize {
    wal[HEADER..].chunks(FRAME).take_while(|frame| frame.len() == FRAME && frame[8..16] == wal[16..24]).count()
}

#[test]
fn a_cut_log_holds_a_prefix_of_the_commits() {
    let (place, wal, commits) = unfolded();
    let frames = used_frames(&wal);
    assert!(frames > commits.len(), "every commit is in the log");
    let mut kept = 0;
    let ends = (0..=frames).map(|frame| HEADER + frame * FRAME);
    let cuts = ends.flat_map(|end| [end.saturating_sub(1), end, end + FRAME / 2]);
    for cut in [0, 1, HEADER - 1].into_iter().chain(cuts).filter(|cut| *cut <= wal.len()) {
        let now = check(&place, &wal[..cut], &commits, &format!("cut at {cut}"));
        assert!(now >= kept, "a longer piece holds no less");
        kept = now;
    }
    assert_eq!(kept, commits.len(), "what was acknowledged is in the whole log");
}

/// Returns the commit that a frame belongs to, counted from 0.
fn commit_of(wal: &[u8], frame: usize) -> usize {
    let ends_commit = |frame: &&[u8]| frame[4..8] != [0; 4];
    wal[HEADER..].chunks(FRAME).take(frame).filter(ends_commit).count()
}

/// Acknowledged commits are neither lost silently nor overwritten.
#[test]
fn a_changed_log_that_loses_commits_is_refused_and_what_comes_before_is_saved() {
    let (place, wal, commits) = unfolded();
    for frame in 0..used_frames(&wal) {
        for within in [6, 20, 1000, FRAME - 1] {
            let mut wal = wal.clone();
            wal[HEADER + frame * FRAME + within] ^= 0x10;
            let hit = commit_of(&wal, frame);
            let (copy, opened) = open_with(&place, &wal);
            let what = format!("byte {within} of frame {frame}, in commit {hit}");
            let before = commits[..hit].concat();
            match opened {
                Err(StoreError::LostCommits { last, .. }) => assert_eq!(last.0, before.len() as u64, "{what}"),
                // A damaged last commit looks like one that a crash tore before it was acknowledged.
                Ok(store) if hit + 1 == commits.len() => assert_eq!(everything(&store), before, "{what}"),
                other => panic!("{what}: {:?}", other.map(drop)),
            }
            assert_eq!(salvage(&copy.path).unwrap().0, before, "{what}");
        }
    }
}

#[test]
fn a_log_with_a_changed_header_is_refused() {
    let (place, wal, _) = unfolded();
    for byte in (0..HEADER).step_by(5) {
        let mut wal = wal.clone();
        wal[byte] ^= 0x10;
        let refused = open_with(&place, &wal).1.map(drop);
        assert!(matches!(refused, Err(StoreError::LostCommits { .. })), "byte {byte}: {refused:?}");
    }
}

#[test]
fn wal_of_other_content_is_refused() {
    let (place, wal, _) = unfolded();
    let refused = open_with(&place, &vec![0x5a; wal.len()]).1.map(drop);
    assert!(matches!(refused, Err(StoreError::LostCommits { .. })), "{refused:?}");
}
