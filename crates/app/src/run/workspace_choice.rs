//! The workspace of a run: the project's own directory, or a worktree for each task.
//!
//! Invariant: work that was begun in place goes on in place, because a worktree would not have it. A run of the graph leaves such
//! tasks to a run that names them.

use windlass_config::Config;
use windlass_engine::{Session, SessionName, StateView, Task, TaskId, WorkspaceMode};
use windlass_store::SqliteStore;
use windlass_vcs::git::GitRepository;

use super::run_target::RunTarget;
use crate::caller::CallerContext;
use crate::changes;
use crate::context::OpenedProject;
use crate::fleet::FleetMembership;
use crate::project::Project;
use crate::resume_command::{ResumeCommand, quote_typed_word};
use crate::{Failure, FailureCode, Notice, hints};

/// The workspace of a run.
#[derive(Clone, Copy)]
pub struct WorkspaceChoice {
    pub workspace_mode: WorkspaceMode,
    /// Whether the work leads to no change that gatekeepers could judge.
    pub is_unjudged: bool,
}

impl WorkspaceChoice {
    /// Finds the workspace of a run. A goal is worked on in place, and so is a task that was begun in place. A resumed session
    /// keeps its workspace.
    pub fn find_for_run(
        target: RunTarget<'_>,
        resumed: Option<&Session>,
        opened: &OpenedProject,
        config: &Config,
    ) -> Result<Self, Failure> {
        let place = Self::find_unchecked(target, resumed, opened, config)?;
        if place.workspace_mode.is_in_place() {
            refuse_inside_worktree(target, resumed, opened)?;
        }
        Ok(place)
    }

    fn find_unchecked(
        target: RunTarget<'_>,
        resumed: Option<&Session>,
        opened: &OpenedProject,
        config: &Config,
    ) -> Result<Self, Failure> {
        if matches!(target, RunTarget::Goal(_)) {
            return Ok(Self { workspace_mode: WorkspaceMode::InPlace, is_unjudged: true });
        }
        let usual = find_workspace_mode(&opened.project, config)?;
        let is_begun = !usual.is_in_place() && was_begun_in_place(target, &opened.store)?;
        let fresh = if is_begun { WorkspaceMode::InPlace } else { usual };
        Ok(Self { workspace_mode: resumed.map_or(fresh, |session| session.workspace_mode), is_unjudged: is_begun })
    }
}

/// Refuses a run in the person's own tree that an agent starts from a worktree.
fn refuse_inside_worktree(
    target: RunTarget<'_>,
    resumed: Option<&Session>,
    opened: &OpenedProject,
) -> Result<(), Failure> {
    let Some(run) = CallerContext::detect_from_ancestors(opened)?.run else { return Ok(()) };
    let around = opened
        .store
        .begin_snapshot()
        .map_err(hints::store_failure)?
        .find_session(&run.session)
        .map_err(hints::view_failure)?;
    if around.is_none_or(|session| session.workspace.is_none()) {
        return Ok(());
    }
    let by_person =
        |again: ResumeCommand| format!("leave it to a person: {}", again.describe_in_sentence("resumes it there"));
    let hint = match (target, resumed) {
        (RunTarget::Goal(goal), _) => {
            let goal =
                quote_typed_word(goal).map(|goal| if goal.starts_with('-') { format!("-- {goal}") } else { goal });
            let add =
                goal.map_or_else(|| "`windlass task add`".to_owned(), |goal| format!("`windlass task add {goal}`"));
            format!("{add} leaves the goal for a run that works on it in a worktree")
        }
        (_, Some(session)) => by_person(ResumeCommand::for_session(opened, session)),
        (RunTarget::Task(id), None) => by_person(ResumeCommand::for_task(opened, id)?),
        (RunTarget::Graph, None) => "leave the work to a person".to_owned(),
    };
    let message = "cannot work in the project's own directory: this command comes from a turn in a worktree";
    Err(Failure::new(FailureCode::Refused, message).with_hint(hint))
}

/// Returns whether the target is a task whose work lies in the project's own directory.
fn was_begun_in_place(target: RunTarget<'_>, store: &SqliteStore) -> Result<bool, Failure> {
    let RunTarget::Task(id) = target else { return Ok(false) };
    let task = store.begin_snapshot().map_err(hints::store_failure)?.find_task(id).map_err(hints::view_failure)?;
    Ok(task.is_some_and(|task| task.in_place))
}

/// Returns the workspace mode for tasks of the graph: a worktree for each task, if there is git.
pub fn find_workspace_mode(project: &Project, config: &Config) -> Result<WorkspaceMode, Failure> {
    if config.settings.worktrees == Some(false) {
        return Ok(WorkspaceMode::InPlace);
    }
    let repository = GitRepository::discover(&project.root).map_err(hints::git_failure)?;
    Ok(if repository.is_some() { WorkspaceMode::Worktrees } else { WorkspaceMode::InPlace })
}

/// Refuses worktrees in a fleet whose machines share no remote: another machine could not go on with the work.
pub fn check_shared_remote(opened: &OpenedProject, config: &Config, mode: WorkspaceMode) -> Result<(), Failure> {
    if mode.is_in_place() || FleetMembership::find(&opened.project)?.is_none() {
        return Ok(());
    }
    match changes::find_shared_remote(&opened.project, config)? {
        Some(_) => Ok(()),
        None => Err(Failure::new(FailureCode::Fleet, "cannot work on tasks in worktrees")
            .with_cause("this project is in a fleet, and its repository has no remote that all machines share")
            .with_hint("`git remote add origin URL` adds one; with `worktrees: false`, tasks are worked on in place")),
    }
}

/// Warns if another session works in the project's own directory now: each changes the files of the other.
pub fn warn_of_shared_directory(opened: &OpenedProject, own: &SessionName) -> Result<(), Failure> {
    let sessions =
        opened.store.begin_snapshot().map_err(hints::store_failure)?.open_sessions().map_err(hints::store_failure)?;
    let is_at_work = |session: &&Session| {
        let is_there = session.workspace_mode.is_in_place() && session.ending_kind().is_none() && session.name != *own;
        is_there && opened.is_session_running_here(session)
    };
    if let Some(other) = sessions.iter().find(is_at_work) {
        let shared = format!(
            "session `{}` works in the same directory: each changes the files of the other. `windlass task add` and \
             `windlass run` work in a git worktree for each task",
            other.name
        );
        opened.front_end.show_notice(Notice::Warning(&shared));
    }
    Ok(())
}

/// Returns whether a run of the graph leaves a task alone because its work lies in the person's own tree.
pub fn is_left_in_place(task: &Task, workspace_mode: WorkspaceMode) -> bool {
    task.in_place && !workspace_mode.is_in_place()
}

/// Returns the explanation for a task that is left alone in place.
pub fn explain_left_in_place(opened: &OpenedProject, id: TaskId) -> String {
    let go_on = ResumeCommand::for_task(opened, id).map(|again| again.describe_in_sentence("resumes it there"));
    format!("started in place; {}", go_on.unwrap_or_else(|failure| failure.to_string()))
}
