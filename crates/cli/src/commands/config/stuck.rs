//! Tasks that this configuration lets nobody carry on.

use std::collections::BTreeSet;

use windlass_engine::{State, Task, TaskId, TypeName};
use windlass_store::{Snapshot, Sqlite, TaskFilter};

use crate::config::Config;
use crate::failure::Failure;
use crate::project::Project;
use crate::{plan, remedy};

/// So many submitted tasks are looked at.
const MOST: usize = 100;

/// Something that nobody comes for, or that comes to nothing.
pub struct Stuck {
    /// The task that it is about, if it is about one.
    pub task: Option<TaskId>,
    pub message: String,
    pub remedy: String,
}

/// Looks the project's tasks over. A store that cannot be opened says nothing about the configuration: that is for
/// `doctor` to tell.
pub fn look(project: &Project, config: &Config) -> Result<Vec<Stuck>, Failure> {
    let Ok(store) = Sqlite::open_foreign(&project.store_file()) else { return Ok(Vec::new()) };
    let snapshot = store.snapshot().map_err(remedy::store)?;
    let mut stuck = of_types(&snapshot, config)?;
    stuck.extend(submitted(&snapshot)?);
    Ok(stuck)
}

/// Open tasks whose type no agent may work on, or that the configuration does not know.
fn of_types(snapshot: &Snapshot<'_>, config: &Config) -> Result<Vec<Stuck>, Failure> {
    let types = plan::types(config);
    let known: BTreeSet<&str> = config.task_types().map(|(name, _)| name).collect();
    let mut stuck = Vec::new();
    for (kind, count, task) in snapshot.open_by_type().map_err(remedy::store)? {
        let Some(kind) = kind else { continue };
        let tasks = match count {
            1 => format!("{task} is of the type `{kind}`"),
            count => format!("{count} tasks, {task} for one, are of the type `{kind}`"),
        };
        let able = |kind: &TypeName| types.implementers(Some(kind)).is_none_or(|names| is_any_agent(names, config));
        if !known.is_empty() && !known.contains(kind.as_str()) {
            let message =
                format!("{tasks}, which the configuration does not know: open to all, with the project's hooks");
            stuck.push(Stuck {
                task: Some(task),
                message,
                remedy: format!("`windlass task update {task} --type TYPE` gives another"),
            });
        } else if !able(&kind) {
            let message = format!("{tasks}, on which no agent that is known here may work");
            let remedy =
                format!("name one under `task_types.{kind}.agents.implementer`, or set those up under `agents`");
            stuck.push(Stuck { task: Some(task), message, remedy });
        }
    }
    Ok(stuck)
}

fn is_any_agent(names: &BTreeSet<String>, config: &Config) -> bool {
    names.iter().any(|name| config.is_agent(name))
}

/// Tasks that are submitted, and that no session is going to accept.
fn submitted(snapshot: &Snapshot<'_>) -> Result<Vec<Stuck>, Failure> {
    let mut found: Vec<Task> = Vec::new();
    let filter = TaskFilter { states: vec![State::Submitted], ..TaskFilter::default() };
    snapshot
        .tasks(&filter, |task| {
            found.push(task);
            found.len() < MOST
        })
        .map_err(remedy::store)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = snapshot.sessions().map_err(remedy::store)?;
    let at_work: BTreeSet<TaskId> =
        sessions.iter().filter(|session| !session.is_over()).filter_map(|session| session.task).collect();
    let left = found.into_iter().filter(|task| task.lease.is_none() && !at_work.contains(&task.id));
    let told = left.map(|Task { id, .. }| Stuck {
        task: Some(id),
        message: format!("{id} is submitted, and no session accepts it"),
        remedy: format!("`windlass task complete {id}` accepts it"),
    });
    Ok(told.collect())
}
