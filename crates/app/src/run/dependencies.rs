//! The open dependencies of a task.

use windlass_engine::{StateView, Task, TaskId, TaskState, awaited_tasks};

use crate::{Failure, hints};

/// Returns the incomplete tasks that a task waits for.
pub fn find_open_dependencies(view: &dyn StateView, task: &Task) -> Result<Vec<TaskId>, Failure> {
    let mut open = Vec::new();
    for other in awaited_tasks(view, task.id).map_err(hints::view_failure)? {
        let other = view.find_task(other).map_err(hints::view_failure)?;
        open.extend(other.filter(|other| other.state != TaskState::Completed).map(|other| other.id));
    }
    Ok(open)
}

/// Returns the ids of the first few tasks as a phrase.
pub fn join_task_ids(ids: &[TaskId]) -> String {
    const MAX_NAMED_TASKS: usize = 5;
    let mut words: Vec<String> = ids.iter().take(MAX_NAMED_TASKS).map(ToString::to_string).collect();
    if ids.len() > MAX_NAMED_TASKS {
        words.push(format!("{} more", ids.len() - NAMED));
    }
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}
