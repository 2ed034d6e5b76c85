//! The check whether a task can be worked on, and the command to type otherwise.

use windlass_engine::{Lease, NextAction, Task, TaskId, TaskState};

use super::dependencies::{find_open_dependencies, join_task_ids};
use crate::changes::has_open_change;
use crate::context::OpenedProject;
use crate::next_step::{find_next_step, find_own_step, reopen_task_step};
use crate::time_format::describe_lease_holder;
use crate::{Failure, FailureCode, environment, hints};

/// Refuses a task that cannot be worked on now, with the reason and the next command.
pub fn check_task_workable(opened: &OpenedProject, id: TaskId) -> Result<(), Failure> {
    let (task, now) = (opened.require_task(id)?, environment::current_timestamp());
    let is_free = match &task.lease {
        Some(lease) => lease.until.is_some_and(|until| until < now),
        None => task.state.is_claimable() || task.state == TaskState::Created && task.open_dependencies == 0,
    };
    if is_free {
        return Ok(());
    }
    let open = match task.state {
        TaskState::Created => {
            find_open_dependencies(&opened.store.begin_snapshot().map_err(hints::store_failure)?, &task)?
        }
        _ => Vec::new(),
    };
    let why = match (&task.blocked, &task.lease, &task.reason) {
        (Some(blocked), ..) => format!(": {}", blocked.reason),
        (None, Some(lease), _) => format!(", held by {}", describe_lease_holder(lease, now)),
        (None, None, Some(reason)) => format!(": {reason}"),
        (None, None, None) if !open.is_empty() => format!(", and waits for {}", join_task_ids(&open)),
        _ => String::new(),
    };
    let failure = Failure::new(FailureCode::Refused, format!("cannot work on {id}: it is {}{why}", task.state));
    let step = match task.state {
        TaskState::Completed if !has_open_change(&task) => Some(reopen_task_step(opened, &task, "")),
        _ => find_next_step(opened, id)?,
    };
    let step = step.map(|step| format!("`{}` to {}", step.command, step.purpose));
    Err(match (open.first(), step) {
        (Some(first), step) => {
            let step = step.map(|step| format!(": {step}")).unwrap_or_default();
            failure.with_hint(format!(
                "{first} comes first{step}; `windlass task undepend {id} {first}` drops the dependency"
            ))
        }
        (None, Some(step)) => failure.with_hint(step),
        (None, None) => {
            failure.with_hint(format!("wait for its holder; `windlass task release {id} --force` ends its lease"))
        }
    })
}

/// Returns whether a task is held by a session that goes on only after a person acts.
pub fn is_held_by_idle_session(opened: &OpenedProject, task: &Task) -> Result<bool, Failure> {
    let Some(name) = task.lease.as_ref().and_then(|lease| lease.session.as_ref()) else { return Ok(false) };
    let session = opened.require_session(name)?;
    Ok(session.next_action() == NextAction::Answer
        || opened.project.is_owner_dead(session.owner.as_str()))
}

/// Describes the holder of a task, with the next command if the holder does not go on by itself.
pub fn describe_holder(opened: &OpenedProject, task: &Task, lease: &Lease) -> Result<String, Failure> {
    let step = if is_held_by_idle_session(opened, task)? { find_own_step(opened, task)? } else { None };
    let leads_on = step.map(|step| format!("; next step: `{}`", step.command)).unwrap_or_default();
    Ok(format!("held by {}{leads_on}", lease.holder_name()))
}
