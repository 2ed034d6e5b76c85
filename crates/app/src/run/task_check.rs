//! The check whether a task can be worked on, and the command to type otherwise.

use windlass_engine::{Lease, State, Task, TaskId, Wanted};
use windlass_process::is_alive;

use super::dependencies::{find_open_dependencies, list_ids};
use crate::changes::has_open_change;
use crate::context::Opened;
use crate::next_step::{next_step, own_step, take_up_again};
use crate::times::holder;
use crate::{Code, Failure, environment, hints};

/// Refuses a task that cannot be worked on now, with the reason and the next command.
pub fn check_task(opened: &Opened, id: TaskId) -> Result<(), Failure> {
    let (task, now) = (opened.task(id)?, environment::now());
    let is_free = match &task.lease {
        Some(lease) => lease.until.is_some_and(|until| until < now),
        None => task.state.is_claimable() || task.state == State::Created && task.open_dependencies == 0,
    };
    if is_free {
        return Ok(());
    }
    let open = match task.state {
        State::Created => find_open_dependencies(&opened.store.snapshot().map_err(hints::store)?, &task)?,
        _ => Vec::new(),
    };
    let why = match (&task.blocked, &task.lease, &task.reason) {
        (Some(blocked), ..) => format!(": {}", blocked.reason),
        (None, Some(lease), _) => format!(", held by {}", holder(lease, now)),
        (None, None, Some(reason)) => format!(": {reason}"),
        (None, None, None) if !open.is_empty() => format!(", and waits for {}", list_ids(&open)),
        _ => String::new(),
    };
    let failure = Failure::new(Code::Refused, format!("cannot work on {id}: it is {}{why}", task.state));
    let step = match task.state {
        State::Completed if !has_open_change(&task) => Some(take_up_again(opened, &task, "")),
        _ => next_step(opened, id)?,
    };
    let step = step.map(|step| format!("`{}` to {}", step.command, step.purpose));
    Err(match (open.first(), step) {
        (Some(first), step) => {
            let step = step.map(|step| format!(": {step}")).unwrap_or_default();
            failure
                .hint(format!("{first} comes first{step}; `windlass task undepend {id} {first}` drops the dependency"))
        }
        (None, Some(step)) => failure.hint(step),
        (None, None) => {
            failure.hint(format!("wait for its holder; `windlass task release {id} --force` takes it away"))
        }
    })
}

/// Returns whether a task is held by a session that goes on only after a person acts.
pub fn is_left(opened: &Opened, task: &Task) -> Result<bool, Failure> {
    let Some(name) = task.lease.as_ref().and_then(|lease| lease.session.as_ref()) else { return Ok(false) };
    let session = opened.session(name)?;
    Ok(session.wanted() == Wanted::Answer || !is_alive(&opened.project.owners(), session.owner.as_str()))
}

/// Describes the holder of a task, with the next command if the holder does not go on by itself.
pub fn held_in_words(opened: &Opened, task: &Task, lease: &Lease) -> Result<String, Failure> {
    let step = if is_left(opened, task)? { own_step(opened, task)? } else { None };
    let leads_on = step.map(|step| format!("; `{}` leads on", step.command)).unwrap_or_default();
    Ok(format!("held by {}{leads_on}", lease.holder()))
}
