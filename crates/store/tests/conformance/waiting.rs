//! Waiting for commits of other handles.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::Seq;
use windlass_store::{EventFilter, Store};

use crate::backends::Backend;
use crate::scene::{complete, create, give, nonce, origin, rules};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

pub fn what_is_there_is_not_waited_for<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    give(&mut store, &create("first"));
    backend.open().wait_for_events(Seq::START, LONG).unwrap();
}

pub fn patience_ends<B: Backend>() {
    let backend = B::new();
    let mut store = backend.open();
    let head = give(&mut store, &create("first")).last().unwrap().seq;
    for patience in [Duration::ZERO, Duration::from_millis(30)] {
        let began = Instant::now();
        store.wait_for_events(head, patience).unwrap();
        assert!(began.elapsed() >= patience);
    }
}

pub fn a_waiter_is_woken_by_an_append_and_by_nothing_else<B: Backend>() {
    const ROUNDS: u32 = 20;
    let backend = B::new();
    let mut store = backend.open();
    let waiter = backend.open();
    let mut head = give(&mut store, &create("first")).last().unwrap().seq;
    let (ready, is_ready) = channel();
    let (woken, is_woken) = channel();
    let (next, is_next) = channel();
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            for after in is_next {
                ready.send(()).unwrap();
                waiter.wait_for_events(after, LONG).unwrap();
                woken.send(waiter.read_events(&EventFilter::default(), after, 1).unwrap().len()).unwrap();
            }
        });
        for _ in 0..ROUNDS {
            next.send(head).unwrap();
            is_ready.recv().unwrap();
            // None of this adds an event.
            backend.open().open_view().unwrap().head_position().unwrap();
            store.execute_command(&rules(), &origin(), &complete(99), nonce()).unwrap_err();
            head = give(&mut store, &create("news")).last().unwrap().seq;
            assert_eq!(is_woken.recv().unwrap(), 1, "it was woken before there was anything");
        }
        drop(next);
    });
    // A waiter that polls only every second would take many times as long.
    assert!(began.elapsed() < Duration::from_millis(500) * ROUNDS);
}
