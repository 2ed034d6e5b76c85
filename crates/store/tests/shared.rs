//! One store for many threads.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod scene;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use windlass_engine::{Refusal, Rules, TaskId};
use windlass_store::{ExecuteError, Shared, StoreError};

use scene::{Place, complete, create, everything, nonce, origin, rules};

const THREADS: u64 = 64;
const EACH: u64 = 8;

fn shared_rules() -> Arc<Rules> {
    Arc::new(rules())
}

/// How many transactions the write-ahead log holds: the frames that end one name the size of the file after it.
fn transactions(wal: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let bytes = std::fs::read(wal).unwrap();
    let salt = &bytes[16..24];
    let frames = bytes[HEADER..].chunks(FRAME).take_while(|frame| frame.len() == FRAME && &frame[8..16] == salt);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

#[test]
fn threads_share_their_commits() {
    let place = Place::new();
    let shared = Shared::new(place.create());
    let rules = shared_rules();
    let (begin, refused) = (Barrier::new(THREADS as usize), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (shared, rules, begin, refused) = (shared.clone(), &rules, &begin, &refused);
            scope.spawn(move || {
                begin.wait();
                for _ in 0..EACH {
                    let made = shared.execute(rules, origin(), create("one of many"), nonce()).unwrap();
                    assert_eq!(made.len(), 2, "created and ready");
                    // A refused command refuses only itself.
                    let answer = shared.execute(rules, origin(), complete(1_000_000), nonce());
                    assert!(matches!(answer, Err(ExecuteError::Refused(Refusal::UnknownTask(TaskId(1_000_000))))));
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    drop(shared);
    assert_eq!(refused.into_inner(), THREADS * EACH);

    let commands = (THREADS * EACH) as usize;
    let store = place.open();
    let log = everything(&store);
    assert_eq!(log.len(), 2 * commands);
    let mut tasks: Vec<_> = log.iter().filter_map(|record| record.envelope.node.task()).collect();
    tasks.dedup();
    assert_eq!(tasks, (1..=THREADS * EACH).map(TaskId).collect::<Vec<_>>(), "each command's events lie together");
    assert!(store.inspect().unwrap().is_sound());

    let transactions = transactions(&place.wal());
    println!("{commands} commands in {transactions} transactions");
    assert!(transactions * 4 < commands, "{commands} commands took {transactions} transactions");
}

#[test]
fn a_failing_store_answers_all() {
    let place = Place::new();
    let shared = Shared::new(place.create());
    let rules = shared_rules();
    shared.execute(&rules, origin(), create("while all is well"), nonce()).unwrap();
    // A newer program takes the store over.
    place.raw().pragma_update(None, "user_version", 99).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| match shared.execute(&rules, origin(), create("too late"), nonce()) {
                Err(ExecuteError::Store(StoreError::Shared(error))) => {
                    assert!(matches!(*error, StoreError::Newer { found: 99, known: 6, .. }), "{error}");
                }
                other => panic!("{other:?}"),
            });
        }
    });
    // And it goes on when the trouble is over.
    place.raw().pragma_update(None, "user_version", 6).unwrap();
    shared.execute(&rules, origin(), create("all is well again"), nonce()).unwrap();
    drop(shared);
    assert_eq!(everything(&place.open()).len(), 4);
}

#[test]
fn the_writer_ends_with_its_last_handle() {
    let place = Place::new();
    let shared = Shared::new(place.create());
    let other = shared.clone();
    drop(shared);
    other.execute(&shared_rules(), origin(), create("still there"), nonce()).unwrap();
    drop(other);
    // Nobody holds the file any more: it can be had alone.
    place.raw().execute_batch("PRAGMA locking_mode = exclusive; BEGIN EXCLUSIVE; COMMIT").unwrap();
}
