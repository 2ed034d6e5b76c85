//! The import of open tasks from a log that a project has put away to join a fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windlass_engine::{
    Authority, Command, Event, EventType, NewTask, ReportRequest, Seq, Task, TaskId, TaskState, awaited_tasks,
};
use windlass_store::{EventFilter, SqliteStore, Store, StoreError, TaskFilter};

use crate::context::OpenedProject;
use crate::{Failure, hints, store_records};

/// Creates the open tasks of another store in this project, with the dependencies among them. Returns the old and the new ids.
pub fn import_open_tasks(opened: &mut OpenedProject, file: &Path) -> Result<Vec<(TaskId, TaskId)>, Failure> {
    let mut new_ids = BTreeMap::new();
    for (task, awaited) in list_open_tasks(file, &opened.store)? {
        // A task waits only for tasks that exist; later edges are added when both do.
        let depends_on = awaited.iter().filter_map(|id| new_ids.get(id).copied()).collect();
        let report = task
            .report
            .map(|report| ReportRequest { reviews: report.reviews.and_then(|id| new_ids.get(&id).copied()), ..report });
        let new = NewTask {
            goal: task.goal,
            body: task.body,
            deliverables: task.deliverables,
            labels: task.labels,
            priority: task.priority,
            kind: task.kind,
            report,
            depends_on,
            parent: None,
        };
        let records = opened.execute_command(&Command::CreateTask(new), Authority::Person)?;
        let created = records.iter().find(|record| matches!(record.envelope.event, Event::TaskCreated(_)));
        let id = created.and_then(|record| record.envelope.node.task_id()).expect("the command creates a task");
        new_ids.insert(task.id, id);
    }
    Ok(new_ids.into_iter().collect())
}

/// Returns the open tasks of a store that the fleet does not have, with the tasks that they wait for, dependencies first.
fn list_open_tasks(file: &Path, fleet: &SqliteStore) -> Result<Vec<(Task, Vec<TaskId>)>, Failure> {
    let store = store_records::open_put_away_store(file)?;
    let common = find_common_event(&store, fleet).map_err(hints::store_failure)?;
    let created = EventFilter { types: vec![EventType::TaskCreated], ..EventFilter::default() };
    let created = store.read_events(&created, common, usize::MAX).map_err(hints::store_failure)?;
    let own: BTreeSet<TaskId> = created.iter().filter_map(|record| record.envelope.node.task_id()).collect();
    let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
    let mut open = Vec::new();
    let is_open = |task: &Task| !matches!(task.state, TaskState::Completed | TaskState::Deleted);
    snapshot
        .visit_tasks(&TaskFilter::default(), |task| {
            if is_open(&task) && own.contains(&task.id) {
                open.push(task);
            }
            true
        })
        .map_err(hints::store_failure)?;
    let mut left = Vec::new();
    for task in open {
        let awaited = awaited_tasks(&snapshot, task.id).map_err(hints::view_failure)?;
        left.push((task, awaited));
    }
    Ok(sort_by_dependencies(left))
}

/// Returns the last event that two logs share: a project that has left a fleet shares the fleet's log up to then.
fn find_common_event(one: &SqliteStore, other: &SqliteStore) -> Result<Seq, StoreError> {
    let (mut shared, mut different) = (0, one.head()?.min(other.head()?).0 + 1);
    while different - shared > 1 {
        let middle = shared + (different - shared) / 2;
        match one.chain_link_at(Seq(middle))? == other.chain_link_at(Seq(middle))? {
            true => shared = middle,
            false => different = middle,
        }
    }
    Ok(Seq(shared))
}

/// Sorts tasks so that each one comes after those that it waits for. The graph of tasks has no circles.
fn sort_by_dependencies(mut left: Vec<(Task, Vec<TaskId>)>) -> Vec<(Task, Vec<TaskId>)> {
    let mut sorted = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ids: Vec<TaskId> = left.iter().map(|(task, _)| task.id).collect();
        let (ready, waiting): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, awaited)| !awaited.iter().any(|id| ids.contains(id)));
        let is_stuck = ready.is_empty();
        sorted.extend(ready);
        if is_stuck {
            sorted.extend(waiting);
            break;
        }
        left = waiting;
    }
    sorted
}
