//! Concurrent writers, each with its own handle.

use std::collections::BTreeSet;
use std::thread;

use windlass_engine::{Event, MemoryView, Refusal, StateView, TaskId};
use windlass_store::{ExecuteError, Store};

use crate::handles::Backend;
use crate::support::{
    claim_task, command_origin, commit_command, complete_task, create_dependent_task, create_task, engine_rules,
    holder_origin, next_nonce, read_log,
};

const WRITER_COUNT: u64 = 6;
const TASKS_PER_WRITER: u64 = 6;

pub fn many_writers_lose_and_double_nothing<B: Backend>() {
    let backend = B::new();
    let work = |writer: u64| {
        let mut store = backend.open();
        let mut acknowledged = Vec::new();
        for _ in 0..TASKS_PER_WRITER {
            acknowledged.extend(commit_command(&mut store, &create_task("alone")));
        }
        let own = acknowledged[0].envelope.node.task_id().unwrap();
        acknowledged.extend(commit_command(&mut store, &create_dependent_task("waits", &[own.0])));
        loop {
            match store.execute_command(
                &engine_rules(),
                &command_origin(),
                &claim_task(&format!("w{writer}")),
                next_nonce(),
            ) {
                Err(ExecuteError::Refused(Refusal::NothingReady)) => return acknowledged,
                claimed => acknowledged.extend(claimed.unwrap()),
            }
            let task = acknowledged.last().unwrap().envelope.node.task_id().unwrap();
            let done = store.execute_command(&engine_rules(), &holder_origin(1), &complete_task(task.0), next_nonce());
            acknowledged.extend(done.unwrap());
        }
    };
    let mut acknowledged = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITER_COUNT).map(|writer| scope.spawn(move || work(writer))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });

    // The log holds exactly the acknowledged events: none is lost, and none is there twice.
    acknowledged.sort_by_key(|record| record.seq);
    let store = backend.reopen(backend.open());
    let log = read_log(&store);
    assert_eq!(acknowledged, log);
    assert!(log.windows(2).all(|pair| pair[0].seq < pair[1].seq));

    let created: Vec<TaskId> = tasks_of_events(&log, |event| matches!(event, Event::TaskCreated(_)));
    assert_eq!(created, (1..=WRITER_COUNT * (TASKS_PER_WRITER + 1)).map(TaskId).collect::<Vec<_>>());
    let claimed = tasks_of_events(&log, |event| matches!(event, Event::TaskClaimed(_)));
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), claimed.len(), "a task had two owners");
    assert_eq!(claimed.len(), tasks_of_events(&log, |event| matches!(event, Event::TaskCompleted(_))).len());
    assert_eq!(claimed.len(), created.len());

    // The state of the store equals the state that the log folds to.
    let mut memory = MemoryView::default();
    log.iter().for_each(|record| memory.apply_event(record).unwrap());
    let view = store.open_view().unwrap();
    for id in created {
        assert_eq!(view.find_task(id).unwrap(), memory.find_task(id).unwrap());
    }
}

/// Returns the tasks of the matching events, in the order of the log.
fn tasks_of_events(log: &[windlass_engine::EventRecord], wanted: fn(&Event) -> bool) -> Vec<TaskId> {
    let wanted = log.iter().filter(|record| wanted(&record.envelope.event));
    wanted.filter_map(|record| record.envelope.node.task_id()).collect()
}
