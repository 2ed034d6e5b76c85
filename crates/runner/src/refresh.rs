//! Refresh of a worktree: moves it onto the present base when its task is taken up again.
//!
//! Invariants:
//! - A branch without work of its own starts afresh: from the present base, and from the present work of the tasks below it.
//! - A branch with work is rebased if there is no conflict. Otherwise nothing moves, and the agent is told about the conflict.
//! - An agent that was told of a conflict submits its work only when the conflict is gone (`submission.rs`).
//! - Work that waits for a gate alone stays as it was judged, unless the hook of that gate is broken.

use std::path::PathBuf;

use windlass_engine::{EngineLimits, GateFinding, Task, Workspace};
use windlass_hooks::{clean_output, excerpt_text};
use windlass_vcs::git::{BaseBranch, BranchRebaseOutcome, Error, GitClient, GitCommitId, Worktree};

use crate::stacked_branches::{self, ParentStackTask};
use crate::wording::list_file_names;
use crate::workspace::{WorkStack, commit_message};
use crate::workspace_problem::{WorkspaceProblem, explain_git_error};
use crate::{EffectRunner, RunError, Runner};

/// Maximum size of a conflict in feedback.
const MAX_CONFLICT_TEXT: usize = 16 * 1024;
/// Maximum number of commits of the base in feedback.
const MAX_LISTED_COMMITS: usize = 10;

/// Source of the feedback about a conflict: the name of the step.
pub(crate) const CONFLICT_FEEDBACK_SOURCE: &str = "rebase_on_main";

/// Outcome of a refresh.
#[derive(Debug)]
pub(crate) enum RefreshOutcome {
    /// It is on the present base already, or must not move.
    Unchanged,
    /// It was moved, with the new base in words.
    Moved(String),
    /// It cannot be moved, with the reason.
    Left(String),
    /// Its work conflicts with the base: a text for people, and one for the agent.
    Conflict { said: String, feedback: String },
}

impl RefreshOutcome {
    /// Returns the message for people, and the finding for the agent.
    pub(crate) fn into_messages(self) -> (Option<String>, Option<GateFinding>) {
        match self {
            Self::Unchanged => (None, None),
            Self::Moved(said) | Self::Left(said) => (Some(said), None),
            Self::Conflict { said, feedback } => {
                (Some(said), Some(GateFinding { source: CONFLICT_FEEDBACK_SOURCE.to_owned(), text: feedback }))
            }
        }
    }
}

/// Conflict of work with a base: a text for people, and one for the agent.
#[derive(Debug)]
pub(crate) struct BaseConflict {
    pub(crate) why: String,
    pub(crate) feedback: String,
}

/// State of a task's work against the newest base.
#[derive(Debug)]
pub enum BaseComparison {
    Clean,
    Conflict,
    /// It is stacked on the unmerged work of another task, which has to be merged first.
    Stacked(WorkspaceProblem),
}

impl Runner<'_> {
    /// Compares the work of a task with the newest base. Changes nothing.
    pub fn compare_with_base(&self, task: &Task) -> Result<Result<BaseComparison, Error>, RunError> {
        let Some(workspace) = &task.workspace else { return Ok(Ok(BaseComparison::Clean)) };
        let below = self.effects.load_lower_tasks(workspace)?;
        Ok(self.effects.with_git(|git| {
            let base = self.effects.load_base(git)?;
            if let Some(below) = stacked_branches::first_unmerged(git, workspace, &below, &base.commit)? {
                let (cause, hint) = (below.describe_state(), Some(below.merge_hint(workspace, &base.display_name())));
                return Ok(BaseComparison::Stacked(WorkspaceProblem { cause, hint }));
            }
            let found = self.effects.find_conflict(git, workspace, &base, &below)?;
            Ok(found.map_or(BaseComparison::Clean, |_| BaseComparison::Conflict))
        }))
    }
}

impl EffectRunner<'_> {
    /// Returns the conflict of work with a base, if there is one. Changes nothing. Work that is stacked on the work of others meets
    /// the base after theirs.
    pub(crate) fn find_conflict(
        &self,
        git: &GitClient<'_>,
        workspace: &Workspace,
        base: &BaseBranch,
        below: &[ParentStackTask],
    ) -> Result<Option<BaseConflict>, Error> {
        if stacked_branches::first_unmerged(git, workspace, below, &base.commit)?.is_some() {
            return Ok(None);
        }
        let worktree = self.task_worktree(workspace)?;
        match git.try_rebase_after(&worktree, stacked_branches::own_work_start(workspace)?.as_ref(), &base.commit)? {
            BranchRebaseOutcome::Conflict { files, why } => {
                self.describe_conflict(git, &worktree, base, (&files, why)).map(Some)
            }
            BranchRebaseOutcome::UpToDate | BranchRebaseOutcome::Done { .. } => Ok(None),
        }
    }

    fn describe_conflict(
        &self,
        git: &GitClient<'_>,
        worktree: &Worktree,
        base: &BaseBranch,
        (files, why): (&[PathBuf], String),
    ) -> Result<BaseConflict, Error> {
        let feedback = conflict_feedback(git, worktree, base, files, &why)?;
        // As in the feedback of hooks: pending pieces that it is compared with have no secrets either.
        let feedback = excerpt_text(&self.settings.mask.mask_text(&feedback), EngineLimits::FEEDBACK_BYTES);
        Ok(BaseConflict { why, feedback })
    }

    /// Moves the worktree of a task onto the present base and onto the work that it is stacked on now. Changes the workspace if the
    /// work starts afresh.
    pub(crate) fn refresh_worktree(
        &self,
        git: &GitClient<'_>,
        task: &Task,
        workspace: &mut Workspace,
        present: (&BaseBranch, &WorkStack),
    ) -> Result<RefreshOutcome, Error> {
        let Ok(below) = self.load_lower_tasks(workspace) else { return Ok(RefreshOutcome::Unchanged) };
        if task.stalled.is_some() {
            return Ok(RefreshOutcome::Unchanged);
        }
        match self.move_worktree(git, task, workspace, (present, &below)) {
            Err(error) if self.control.is_cancelled() => Err(error),
            // The agent ends the operation that it has begun. Other errors show up when the work is submitted.
            Err(error) => {
                let why = explain_git_error(&error);
                Ok(RefreshOutcome::Left(format!("the worktree keeps its base: {why}")))
            }
            moved => moved,
        }
    }

    /// Moves work onto the present base if the hook of its gate was broken: the base may have the hook repaired. Work that differs
    /// from the judged work stays.
    pub(crate) fn move_judged_work(&self, task: &Task, workspace: &Workspace) -> Result<RefreshOutcome, RunError> {
        let broken = task.stalled.as_ref().filter(|stalled| stalled.unstarted);
        let Some(stalled) = broken else { return Ok(RefreshOutcome::Unchanged) };
        let below = self.load_lower_tasks(workspace)?;
        let moved: Result<_, Error> = self.with_git(|git| {
            let (base, worktree) = (self.load_base(git)?, self.task_worktree(workspace)?);
            let is_other = git.branch_tip(&worktree.branch)?.is_none_or(|tip| tip.as_str() != stalled.head);
            if is_other || stacked_branches::first_unmerged(git, workspace, &below, &base.commit)?.is_some() {
                return Ok(RefreshOutcome::Unchanged);
            }
            let shown = base.display_name();
            match git.rebase_after(&worktree, stacked_branches::own_work_start(workspace)?.as_ref(), &base.commit) {
                Ok(BranchRebaseOutcome::Done { .. }) => {
                    let said = format!("rebased the worktree onto {shown} ({})", base.commit.short_id());
                    Ok(RefreshOutcome::Moved(said))
                }
                // The end of the run offers the way on, since the hook may run by now.
                Ok(BranchRebaseOutcome::Conflict { why, .. }) => Ok(RefreshOutcome::Left(format!(
                    "the worktree keeps its base: the work conflicts with {shown}: {why}"
                ))),
                Ok(BranchRebaseOutcome::UpToDate) | Err(Error::Dirty { .. }) => Ok(RefreshOutcome::Unchanged),
                Err(error) => Err(error),
            }
        });
        // An error shows up when the work is submitted.
        Ok(moved.unwrap_or(RefreshOutcome::Unchanged))
    }

    fn move_worktree(
        &self,
        git: &GitClient<'_>,
        task: &Task,
        workspace: &mut Workspace,
        ((base, stack), below): ((&BaseBranch, &WorkStack), &[ParentStackTask]),
    ) -> Result<RefreshOutcome, Error> {
        let worktree = &self.task_worktree(workspace)?;
        let shown = || format!("rebased the worktree onto {} ({})", base.display_name(), base.commit.short_id());
        let is_stacked = !workspace.stacked_on.is_empty() || !stack.open_tasks().is_empty();
        let is_report = task.report.is_some();
        if (is_stacked || is_report) && is_untouched(git, worktree, workspace, (base, below))? {
            return match git.restart_branch(worktree, &stack.start_commits(&base.commit)) {
                Ok(Some(start)) if start.as_str() != workspace.start => {
                    (workspace.start, workspace.stacked_on) = (start.to_string(), stack.open_tasks());
                    Ok(RefreshOutcome::Moved(shown()))
                }
                // The tasks below conflict with the base. The work goes on from its start.
                Ok(_) | Err(Error::Conflict { .. } | Error::Dirty { .. }) => Ok(RefreshOutcome::Unchanged),
                Err(error) => Err(error),
            };
        }
        if is_report || stacked_branches::first_unmerged(git, workspace, below, &base.commit)?.is_some() {
            return Ok(RefreshOutcome::Unchanged);
        }
        let start = stacked_branches::own_work_start(workspace)?;
        let rebase = || git.rebase_after(worktree, start.as_ref(), &base.commit);
        let rebased = match rebase() {
            // As at the submission of the work.
            Err(Error::Dirty { .. }) => {
                git.commit_all(worktree, &commit_message(task))?;
                rebase()?
            }
            rebased => rebased?,
        };
        Ok(match rebased {
            BranchRebaseOutcome::UpToDate => RefreshOutcome::Unchanged,
            BranchRebaseOutcome::Done { .. } => RefreshOutcome::Moved(shown()),
            BranchRebaseOutcome::Conflict { files, why } => {
                let BaseConflict { why, feedback } = self.describe_conflict(git, worktree, base, (&files, why))?;
                let said =
                    format!("the work conflicts with {}: {why}; the agent gets the conflict", base.display_name());
                RefreshOutcome::Conflict { said, feedback }
            }
        })
    }
}

/// Returns whether a worktree has no commit of its own, nor one that came into the base without a record.
fn is_untouched(
    git: &GitClient<'_>,
    worktree: &Worktree,
    workspace: &Workspace,
    (base, below): (&BaseBranch, &[ParentStackTask]),
) -> Result<bool, Error> {
    let own = stacked_branches::own_work_base(git, workspace, below, &base.commit)?;
    if git.read_branch_work(&worktree.branch, &own)?.commits > 0 {
        return Ok(false);
    }
    match git.commits_made_in(worktree, &GitCommitId::new(&workspace.start)?, &base.commit) {
        Err(Error::Unnoted { .. }) => Ok(false),
        made => Ok(made?.is_empty()),
    }
}

/// Describes a conflict for an agent: the files, and both sides of the places as a merge shows them. The text is clean, but may
/// have secrets.
pub(crate) fn conflict_feedback(
    git: &GitClient<'_>,
    worktree: &Worktree,
    base: &BaseBranch,
    files: &[PathBuf],
    why: &str,
) -> Result<String, Error> {
    let shown = base.display_name();
    let names = list_file_names(files.iter().map(|file| file.display()));
    let head = git
        .branch_tip(&worktree.branch)?
        .ok_or_else(|| Error::UnknownCommit { commit: worktree.branch.to_string() })?;
    let parted = git.merge_base(&head, &base.commit)?;
    let subjects = git.commit_subjects(&parted, &base.commit, MAX_LISTED_COMMITS)?;
    let subjects = list_file_names(subjects.iter());
    // Cleaned by itself: a control sequence without an end hides nothing behind it.
    let places = clean_output(&git.conflict_text((&head, &base.commit), files, &shown, MAX_CONFLICT_TEXT)?);
    let places = if places.is_empty() { places } else { format!("Both sides, as a merge shows them:\n{places}\n") };
    Ok(format!(
        "The work conflicts with the newest {shown} ({}): {why}\n\nFiles:\n{names}\n\
         The last commits of {shown} that this branch does not have:\n{subjects}\n{places}\
         Nothing was changed. Rebase the work onto `{shown}`, or merge it (`git rebase {shown}` or \
         `git merge {shown}` in this directory), resolve the conflicts in these files so that both changes \
         are kept, run the tests, and commit.",
        base.commit.short_id(),
    ))
}
