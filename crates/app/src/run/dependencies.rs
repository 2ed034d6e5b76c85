//! The open dependencies of a task.

use windlass_engine::{State, Task, TaskId, View, awaited};

use crate::{Failure, hints};

/// Returns the incomplete tasks that a task waits for.
pub fn find_open_dependencies(view: &dyn View, task: &Task) -> Result<Vec<TaskId>, Failure> {
    let mut open = Vec::new();
    for other in awaited(view, task.id).map_err(hints::view)? {
        let other = view.task(other).map_err(hints::view)?;
        open.extend(other.filter(|other| other.state != State::Completed).map(|other| other.id));
    }
    Ok(open)
}

/// Returns the ids of the first few tasks as a phrase.
pub fn list_ids(ids: &[TaskId]) -> String {
    const NAMED: usize = 5;
    let mut words: Vec<String> = ids.iter().take(NAMED).map(ToString::to_string).collect();
    if ids.len() > NAMED {
        words.push(format!("{} more", ids.len() - NAMED));
    }
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}
