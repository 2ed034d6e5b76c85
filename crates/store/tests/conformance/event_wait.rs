//! The wait for commits of other handles.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::Seq;
use windlass_store::{EventFilter, Store};

use crate::handles::Backend;
use crate::support::{command_origin, commit_command, complete_task, create_task, engine_rules, next_nonce};

/// A timeout that is longer than any test.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

pub fn what_is_there_is_not_waited_for<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    commit_command(&mut store, &create_task("first"));
    backend.open().wait_for_events(Seq::START, LONG_TIMEOUT).unwrap();
}

pub fn patience_ends<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    let head = commit_command(&mut store, &create_task("first")).last().unwrap().seq;
    for patience in [Duration::ZERO, Duration::from_millis(30)] {
        let began = Instant::now();
        store.wait_for_events(head, patience).unwrap();
        assert!(began.elapsed() >= patience);
    }
}

pub fn a_waiter_is_woken_by_an_append_and_by_nothing_else<B: Backend>() {
    const ROUND_COUNT: u32 = 20;
    let backend = B::new();
    let mut store = backend.open();
    let waiter = backend.open();
    let mut head = commit_command(&mut store, &create_task("first")).last().unwrap().seq;
    let (ready, is_ready) = channel();
    let (woken, is_woken) = channel();
    let (next, is_next) = channel();
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            for after in is_next {
                ready.send(()).unwrap();
                waiter.wait_for_events(after, LONG_TIMEOUT).unwrap();
                woken.send(waiter.read_events(&EventFilter::default(), after, 1).unwrap().len()).unwrap();
            }
        });
        for _ in 0..ROUND_COUNT {
            next.send(head).unwrap();
            is_ready.recv().unwrap();
            // A read and a refused command add no event.
            backend.open().open_view().unwrap().head_position().unwrap();
            store.execute_command(&engine_rules(), &command_origin(), &complete_task(99), next_nonce()).unwrap_err();
            head = commit_command(&mut store, &create_task("news")).last().unwrap().seq;
            assert_eq!(is_woken.recv().unwrap(), 1, "it was woken before there was anything");
        }
        drop(next);
    });
    // A waiter that polls once per second would need many times as long.
    assert!(began.elapsed() < Duration::from_millis(500) * ROUND_COUNT);
}
