//! Where work is done: in the project's own directory, or in a worktree for each task.
//!
//! Invariant: what was begun in place goes on in place. A worktree would not have the work, and in the person's own tree
//! nobody works unasked: a run of whatever is ready leaves such tasks to a run that names them.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{Grounds, Session, State, TaskId, View};
use windlass_store::Sqlite;
use windlass_vcs::git::Repository;

use super::again::Again;
use super::wish::Wish;
use crate::config::Config;
use crate::context::Opened;
use crate::failure::Failure;
use crate::project::Project;
use crate::remedy;

/// Where a run works, and which tasks it leaves alone because they are worked on elsewhere.
pub struct Whereabouts {
    pub grounds: Grounds,
    /// Begun in place, where there are worktrees for what is ready.
    pub elsewhere: BTreeSet<TaskId>,
    /// No change comes of it that others could judge.
    pub is_unjudged: bool,
}

impl Whereabouts {
    /// A goal is worked on where the person stands, and so is what was begun there.
    pub fn of(wish: Wish<'_>, project: &Project, config: &Config, store: &Sqlite) -> Result<Self, Failure> {
        let in_place = |is_unjudged| Self { grounds: Grounds::InPlace, elsewhere: BTreeSet::new(), is_unjudged };
        if matches!(wish, Wish::Goal(_)) {
            return Ok(in_place(true));
        }
        if grounds(project, config)?.is_in_place() {
            return Ok(in_place(false));
        }
        let begun = begun_in_place(store)?;
        Ok(match wish {
            Wish::Task(id) if begun.contains(&id) => in_place(true),
            _ => Self { grounds: Grounds::Worktrees, elsewhere: begun, is_unjudged: false },
        })
    }
}

/// A task of the graph has a worktree of its own, where there is git.
pub fn grounds(project: &Project, config: &Config) -> Result<Grounds, Failure> {
    if config.settings.worktrees == Some(false) {
        return Ok(Grounds::InPlace);
    }
    let repository = Repository::find(&project.root).map_err(remedy::git)?;
    Ok(if repository.is_some() { Grounds::Worktrees } else { Grounds::InPlace })
}

/// The open tasks whose work lies in the project's own directory: their last session worked there.
pub fn begun_in_place(store: &Sqlite) -> Result<BTreeSet<TaskId>, Failure> {
    let snapshot = store.snapshot().map_err(remedy::store)?;
    let sessions = snapshot.sessions().map_err(remedy::store)?;
    let mut last: BTreeMap<TaskId, &Session> = BTreeMap::new();
    for session in &sessions {
        let Some(id) = session.task else { continue };
        let before = last.entry(id).or_insert(session);
        if session.version > before.version {
            *before = session;
        }
    }
    let mut begun = BTreeSet::new();
    for (id, _) in last.into_iter().filter(|(_, session)| session.grounds.is_in_place()) {
        let task = snapshot.task(id).map_err(remedy::view)?;
        let is_open = task.is_some_and(|task| {
            task.workspace.is_none() && !matches!(task.state, State::Completed | State::Failed | State::Deleted)
        });
        begun.extend(is_open.then_some(id));
    }
    Ok(begun)
}

/// What a person is told of a task that is left alone for this.
pub fn in_words(opened: &Opened, id: TaskId) -> String {
    let go_on = Again::with_task(opened, id).map(|again| again.said("goes on with it there"));
    format!("begun in place; {}", go_on.unwrap_or_else(|failure| failure.to_string()))
}
