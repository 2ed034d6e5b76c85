//! `run --resolve`: has an agent work again on a task whose change conflicts with its base.
//!
//! Not here: what the agent is told of the conflict (`runner/src/refresh.rs`, which finds it when the worktree is opened).

use windlass_engine::{Authority, Command, Origin, Refusal, Resolution, State, TaskId};
use windlass_runner::Runner;

use super::wish::check_task;
use crate::context::Opened;
use crate::dispatch::Inside;
use crate::failure::{Code, Failure};
use crate::{environment, remedy};

/// Says why the conflicts of a task's change cannot be resolved now, if they cannot.
pub fn check(opened: &Opened, id: TaskId) -> Result<(), Failure> {
    let inside = Inside::look_above(opened)?;
    if inside.run.is_some() || inside.via.is_some() {
        return Err(remedy::refusal(&Refusal::NoPerson { what: "take accepted work up again" }));
    }
    let task = opened.task(id)?;
    let is_open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
    match task.state {
        State::Completed | State::Blocked if is_open => Ok(()),
        State::Completed | State::Blocked => {
            let failure = Failure::new(Code::Refused, format!("cannot resolve conflicts of {id}"));
            Err(failure.caused_by("it has no open change").hint("`windlass change list` shows the open changes"))
        }
        _ => check_task(opened, id),
    }
}

/// Takes a task up again that was accepted, or that waits for a person.
pub fn take_up(runner: &mut Runner<'_>, id: TaskId) -> Result<(), Failure> {
    let Some(task) = runner.task(id).map_err(remedy::run)? else { return Ok(()) };
    let base = task.workspace.map_or_else(|| "its base".to_owned(), |workspace| workspace.base);
    let reason = format!("The change conflicts with {base}. Resolve the conflicts so that it can be merged.");
    let command = match task.state {
        State::Completed => Command::ReopenTask { id, reason },
        State::Blocked => {
            let (answer, text) = (Resolution::Continue, Some(reason));
            Command::AnswerTask { id, answer, text, ignores: vec![], work: None }
        }
        _ => return Ok(()),
    };
    let (by, at) = (environment::user(), environment::now());
    let origin = Origin { by, at, authority: Authority::Forced, run: None, via: None };
    runner.begin(&origin, &command).map_err(remedy::run)
}
