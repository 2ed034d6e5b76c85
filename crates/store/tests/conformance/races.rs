//! Many writers at once, each with a handle of its own.

use std::collections::BTreeSet;
use std::thread;

use windlass_engine::{Event, MemoryView, Refusal, StateView, TaskId};
use windlass_store::{ExecuteError, Store};

use crate::backends::Backend;
use crate::scene::{claim, complete, create, create_after, everything, give, holder, nonce, origin, rules};

const WRITERS: u64 = 6;
const EACH: u64 = 6;

pub fn many_writers_lose_and_double_nothing<B: Backend>() {
    let backend = B::new();
    let work = |writer: u64| {
        let mut store = backend.open();
        let mut acknowledged = Vec::new();
        for _ in 0..EACH {
            acknowledged.extend(give(&mut store, &create("alone")));
        }
        let own = acknowledged[0].envelope.node.task_id().unwrap();
        acknowledged.extend(give(&mut store, &create_after("waits", &[own.0])));
        loop {
            match store.execute_command(&rules(), &origin(), &claim(&format!("w{writer}")), nonce()) {
                Err(ExecuteError::Refused(Refusal::NothingReady)) => return acknowledged,
                claimed => acknowledged.extend(claimed.unwrap()),
            }
            let task = acknowledged.last().unwrap().envelope.node.task_id().unwrap();
            let done = store.execute_command(&rules(), &holder(1), &complete(task.0), nonce());
            acknowledged.extend(done.unwrap());
        }
    };
    let mut acknowledged = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || work(writer))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });

    // The log holds exactly the acknowledged events: nothing lost, nothing doubled.
    acknowledged.sort_by_key(|record| record.seq);
    let store = backend.reopen(backend.open());
    let log = everything(&store);
    assert_eq!(acknowledged, log);
    assert!(log.windows(2).all(|pair| pair[0].seq < pair[1].seq));

    let created: Vec<TaskId> = picked(&log, |event| matches!(event, Event::TaskCreated(_)));
    assert_eq!(created, (1..=WRITERS * (EACH + 1)).map(TaskId).collect::<Vec<_>>());
    let claimed = picked(&log, |event| matches!(event, Event::TaskClaimed(_)));
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), claimed.len(), "a task had two owners");
    assert_eq!(claimed.len(), picked(&log, |event| matches!(event, Event::TaskCompleted(_))).len());
    assert_eq!(claimed.len(), created.len());

    // The state is the one that the log folds to.
    let mut memory = MemoryView::default();
    log.iter().for_each(|record| memory.apply_event(record).unwrap());
    let view = store.open_view().unwrap();
    for id in created {
        assert_eq!(view.task(id).unwrap(), memory.task(id).unwrap());
    }
}

/// Returns the tasks of the matching events, in the order of the log.
fn picked(log: &[windlass_engine::EventRecord], wanted: fn(&Event) -> bool) -> Vec<TaskId> {
    let wanted = log.iter().filter(|record| wanted(&record.envelope.event));
    wanted.filter_map(|record| record.envelope.node.task_id()).collect()
}
