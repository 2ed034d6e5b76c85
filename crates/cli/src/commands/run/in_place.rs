//! Where work is done: in the project's own directory, or in a worktree for each task.
//!
//! Invariant: what was begun in place goes on in place. A worktree would not have the work, and in the person's own tree
//! nobody works unasked: a run of whatever is ready leaves such tasks to a run that names them.

use windlass_app::caller::Inside;
use windlass_app::context::Opened;
use windlass_app::project::Project;
use windlass_app::{Code, Failure, hints};
use windlass_config::Config;
use windlass_engine::{Grounds, Session, SessionName, Task, TaskId, View};
use windlass_process::is_alive;
use windlass_store::Sqlite;
use windlass_vcs::git::Repository;

use super::again::{Again, quoted};
use super::wish::Wish;
use crate::output::Messages;

/// Where a run works.
#[derive(Clone, Copy)]
pub struct Whereabouts {
    pub grounds: Grounds,
    /// No change comes of it that others could judge.
    pub is_unjudged: bool,
}

impl Whereabouts {
    /// A goal is worked on where the person stands, and so is what was begun there. A session stays where it is.
    pub fn of(wish: Wish<'_>, resumed: Option<&Session>, opened: &Opened, config: &Config) -> Result<Self, Failure> {
        let place = Self::find(wish, resumed, opened, config)?;
        if place.grounds.is_in_place() {
            refuse_inside_worktree(wish, resumed, opened)?;
        }
        Ok(place)
    }

    fn find(wish: Wish<'_>, resumed: Option<&Session>, opened: &Opened, config: &Config) -> Result<Self, Failure> {
        if matches!(wish, Wish::Goal(_)) {
            return Ok(Self { grounds: Grounds::InPlace, is_unjudged: true });
        }
        let usual = grounds(&opened.project, config)?;
        let is_begun = !usual.is_in_place() && begun_in_place(wish, &opened.store)?;
        let fresh = if is_begun { Grounds::InPlace } else { usual };
        Ok(Self { grounds: resumed.map_or(fresh, |session| session.grounds), is_unjudged: is_begun })
    }
}

/// Refuses an agent that works in a worktree to have another one work in the person's own tree.
fn refuse_inside_worktree(wish: Wish<'_>, resumed: Option<&Session>, opened: &Opened) -> Result<(), Failure> {
    let Some(run) = Inside::look_above(opened)?.run else { return Ok(()) };
    let around = opened.store.snapshot().map_err(hints::store)?.session(&run.session).map_err(hints::view)?;
    if around.is_none_or(|session| session.workspace.is_none()) {
        return Ok(());
    }
    let by_person = |again: Again| format!("leave it to a person: {}", again.said("goes on with it there"));
    let hint = match (wish, resumed) {
        (Wish::Goal(goal), _) => {
            let goal = quoted(goal).map(|goal| if goal.starts_with('-') { format!("-- {goal}") } else { goal });
            let add =
                goal.map_or_else(|| "`windlass task add`".to_owned(), |goal| format!("`windlass task add {goal}`"));
            format!("{add} leaves the goal for a run that works on it in a worktree")
        }
        (_, Some(session)) => by_person(Again::with_session(opened, session)),
        (Wish::Task(id), None) => by_person(Again::with_task(opened, id)?),
        (Wish::Graph, None) => "leave the work to a person".to_owned(),
    };
    let message = "cannot work in the project's own directory: this command comes from a turn in a worktree";
    Err(Failure::new(Code::Refused, message).hint(hint))
}

/// Whether a run means a task whose work lies in the project's own directory.
fn begun_in_place(wish: Wish<'_>, store: &Sqlite) -> Result<bool, Failure> {
    let Wish::Task(id) = wish else { return Ok(false) };
    let task = store.snapshot().map_err(hints::store)?.task(id).map_err(hints::view)?;
    Ok(task.is_some_and(|task| task.in_place))
}

/// A task of the graph has a worktree of its own, where there is git.
pub fn grounds(project: &Project, config: &Config) -> Result<Grounds, Failure> {
    if config.settings.worktrees == Some(false) {
        return Ok(Grounds::InPlace);
    }
    let repository = Repository::find(&project.root).map_err(hints::git)?;
    Ok(if repository.is_some() { Grounds::Worktrees } else { Grounds::InPlace })
}

/// Warns where another session works in the project's own directory now: each changes the files of the other.
pub fn warn_of_others(opened: &Opened, own: &SessionName) -> Result<(), Failure> {
    let sessions = opened.store.snapshot().map_err(hints::store)?.sessions().map_err(hints::store)?;
    let is_at_work = |session: &&Session| {
        let is_there = session.grounds.is_in_place() && session.ended().is_none() && session.name != *own;
        is_there && is_alive(&opened.project.owners(), session.owner.as_str())
    };
    if let Some(other) = sessions.iter().find(is_at_work) {
        Messages::new().warning(&format!(
            "session `{}` works in the same directory: each changes the files of the other. `windlass task add` and \
             `windlass run` work in a git worktree for each task",
            other.name
        ));
    }
    Ok(())
}

/// Whether whoever takes what is ready leaves a task alone: its work lies in the person's own tree.
pub fn is_elsewhere(task: &Task, grounds: Grounds) -> bool {
    task.in_place && !grounds.is_in_place()
}

/// What a person is told of a task that is left alone for this.
pub fn in_words(opened: &Opened, id: TaskId) -> String {
    let go_on = Again::with_task(opened, id).map(|again| again.said("goes on with it there"));
    format!("begun in place; {}", go_on.unwrap_or_else(|failure| failure.to_string()))
}
