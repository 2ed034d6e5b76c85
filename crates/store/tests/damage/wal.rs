//! Write-ahead logs that are cut or changed: what a crash of the whole machine can leave behind.

use std::fs;

use windlass_engine::Record;

use crate::scene::{Place, everything, fill};

const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;

/// A store whose last commits are in its write-ahead log only, with that log and the commits.
fn unfolded() -> (Place, Vec<u8>, Vec<Vec<Record>>) {
    let place = Place::new();
    let mut store = place.create();
    let commits = fill(&mut store, 6);
    let wal = fs::read(place.wal()).unwrap();
    // As the machine would leave it: nobody closed anything.
    let copy = Place::new();
    fs::copy(&place.path, &copy.path).unwrap();
    drop(store);
    (copy, wal, commits)
}

/// The store with this write-ahead log holds a prefix of the commits, and is sound. Answers how many.
fn check(place: &Place, wal: &[u8], commits: &[Vec<Record>], what: &str) -> usize {
    let copy = Place::new();
    fs::copy(&place.path, &copy.path).unwrap();
    fs::write(copy.wal(), wal).unwrap();
    let store = copy.open();
    let log = everything(&store);
    let kept = (0..=commits.len()).find(|kept| commits[..*kept].concat() == log);
    let kept = kept.unwrap_or_else(|| panic!("{what}: {} events are no prefix of the commits", log.len()));
    assert!(store.inspect().unwrap().is_sound(), "{what}");
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

#[test]
fn a_changed_log_ends_before_the_change() {
    let (place, wal, commits) = unfolded();
    let mut kept = 0;
    for frame in 0..used_frames(&wal) {
        for within in [6, 20, 1000, FRAME - 1] {
            let mut wal = wal.clone();
            wal[HEADER + frame * FRAME + within] ^= 0x10;
            let now = check(&place, &wal, &commits, &format!("byte {within} of frame {frame}"));
            assert!(now < commits.len() && now >= kept, "frame {frame}");
            kept = now;
        }
    }
    for byte in (0..HEADER).step_by(5) {
        let mut wal = wal.clone();
        wal[byte] ^= 0x10;
        assert_eq!(check(&place, &wal, &commits, &format!("byte {byte} of the header")), 0);
    }
}

#[test]
fn a_log_of_another_store_is_ignored() {
    let (place, _, commits) = unfolded();
    let (_, other, _) = unfolded();
    // It may even be valid in itself: then it is taken for what it says, and everything still fits together.
    check(&place, &vec![0x5a; other.len()], &commits, "garbage");
}
