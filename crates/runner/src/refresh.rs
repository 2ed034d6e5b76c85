//! Bringing a worktree onto the present base when its task is taken up again.
//!
//! Invariants:
//! - A branch without work of its own starts anew: from the present base, and from the present work of the tasks below it.
//! - A branch with work is rebased where that is clean. Otherwise nothing moves, and the agent is told what conflicts.
//! - An agent that was told of a conflict submits its work only when the conflict is gone (`submission.rs`).
//! - Work that waits for a gate alone stays as it was judged, unless the hook of that gate is broken.

use std::path::PathBuf;

use windlass_engine::{Finding, Limits, Task, Workspace};
use windlass_hooks::{clean, cut};
use windlass_vcs::git::{Base, Commit, Error, Git, Rebased, Worktree};

use crate::stacked_branches::{self, LowerTask};
use crate::wording::listed;
use crate::workspace::{Stack, commit_message};
use crate::workspace_problem::{WorkspaceProblem, explained};
use crate::{EffectRunner, RunError, Runner};

/// How much of a conflict an agent is shown.
const MAX_SHOWN: usize = 16 * 1024;
/// How many commits of the base an agent is told.
const MAX_COMMITS: usize = 10;

/// The step whose name the feedback about a conflict carries.
pub(crate) const CONFLICT_SOURCE: &str = "rebase_on_main";

/// What became of a worktree whose task is taken up again.
#[derive(Debug)]
pub(crate) enum RefreshOutcome {
    /// It stands on the present base already, or is not to be moved.
    Unchanged,
    /// It was moved, and where to.
    Moved(String),
    /// It cannot be moved, and why.
    Left(String),
    /// Its work does not go together with the base: for people, and for the agent.
    Conflict { said: String, feedback: String },
}

impl RefreshOutcome {
    /// Returns what people are told, and what the agent is told.
    pub(crate) fn told(self) -> (Option<String>, Option<Finding>) {
        match self {
            Self::Unchanged => (None, None),
            Self::Moved(said) | Self::Left(said) => (Some(said), None),
            Self::Conflict { said, feedback } => {
                (Some(said), Some(Finding { source: CONFLICT_SOURCE.to_owned(), text: feedback }))
            }
        }
    }
}

/// What keeps work from being brought onto a base: for people, and for the agent.
#[derive(Debug)]
pub(crate) struct BaseConflict {
    pub(crate) why: String,
    pub(crate) feedback: String,
}

/// How the work of a task stands to the newest base.
#[derive(Debug)]
pub enum BaseFit {
    Clean,
    Conflict,
    /// It stands on the work of another task that is not merged: that one meets the base first.
    Stacked(WorkspaceProblem),
}

impl Runner<'_> {
    /// Compares the work of a task with the newest base. Nothing is changed.
    pub fn compare_with_base(&self, task: &Task) -> Result<Result<BaseFit, Error>, RunError> {
        let Some(workspace) = &task.workspace else { return Ok(Ok(BaseFit::Clean)) };
        let below = self.dispatch.below(workspace)?;
        Ok(self.dispatch.with_git(|git| {
            let base = self.dispatch.base(git)?;
            if let Some(below) = stacked_branches::first_unmerged(git, workspace, &below, &base.commit)? {
                let (cause, hint) = (below.in_words(), Some(below.hint(workspace, &base.shown())));
                return Ok(BaseFit::Stacked(WorkspaceProblem { cause, hint }));
            }
            let found = self.dispatch.find_conflict(git, workspace, &base, &below)?;
            Ok(found.map_or(BaseFit::Clean, |_| BaseFit::Conflict))
        }))
    }
}

impl EffectRunner<'_> {
    /// Returns what keeps work from being brought onto a base, if something does. Nothing is changed. Work that stands on the
    /// work of others meets the base after theirs.
    pub(crate) fn find_conflict(
        &self,
        git: &Git<'_>,
        workspace: &Workspace,
        base: &Base,
        below: &[LowerTask],
    ) -> Result<Option<BaseConflict>, Error> {
        if stacked_branches::first_unmerged(git, workspace, below, &base.commit)?.is_some() {
            return Ok(None);
        }
        let worktree = self.worktree(workspace)?;
        match git.try_rebase_after(&worktree, stacked_branches::beginning(workspace)?.as_ref(), &base.commit)? {
            Rebased::Conflict { files, why } => self.describe_conflict(git, &worktree, base, (&files, why)).map(Some),
            Rebased::UpToDate | Rebased::Done { .. } => Ok(None),
        }
    }

    fn describe_conflict(
        &self,
        git: &Git<'_>,
        worktree: &Worktree,
        base: &Base,
        (files, why): (&[PathBuf], String),
    ) -> Result<BaseConflict, Error> {
        let feedback = conflict_feedback(git, worktree, base, files, &why)?;
        // As the feedback of hooks: pending pieces that are compared with it have no secrets either.
        let feedback = cut(&self.settings.mask.text(&feedback), Limits::FEEDBACK);
        Ok(BaseConflict { why, feedback })
    }

    /// Brings the worktree of a task onto the present base, and what it is stacked on now. The workspace is changed where it
    /// starts anew.
    pub(crate) fn refresh(
        &self,
        git: &Git<'_>,
        task: &Task,
        workspace: &mut Workspace,
        present: (&Base, &Stack),
    ) -> Result<RefreshOutcome, Error> {
        let Ok(below) = self.below(workspace) else { return Ok(RefreshOutcome::Unchanged) };
        if task.stalled.is_some() {
            return Ok(RefreshOutcome::Unchanged);
        }
        match self.move_worktree(git, task, workspace, (present, &below)) {
            Err(error) if self.control.is_cancelled() => Err(error),
            // The agent ends what it has begun. Whatever else is wrong shows itself when the work is submitted.
            Err(error) => {
                let why = explained(&error);
                Ok(RefreshOutcome::Left(format!("the worktree stays on the base that it has: {why}")))
            }
            moved => moved,
        }
    }

    /// Brings work onto the present base that a gate could not be asked about because its hook is broken: the base may have the
    /// hook mended. Work that is not what was judged stays.
    pub(crate) fn move_judged_work(&self, task: &Task, workspace: &Workspace) -> Result<RefreshOutcome, RunError> {
        let broken = task.stalled.as_ref().filter(|stalled| stalled.unstarted);
        let Some(stalled) = broken else { return Ok(RefreshOutcome::Unchanged) };
        let below = self.below(workspace)?;
        let moved: Result<_, Error> = self.with_git(|git| {
            let (base, worktree) = (self.base(git)?, self.worktree(workspace)?);
            let is_other = git.tip(&worktree.branch)?.is_none_or(|tip| tip.as_str() != stalled.head);
            if is_other || stacked_branches::first_unmerged(git, workspace, &below, &base.commit)?.is_some() {
                return Ok(RefreshOutcome::Unchanged);
            }
            let shown = base.shown();
            match git.rebase_after(&worktree, stacked_branches::beginning(workspace)?.as_ref(), &base.commit) {
                Ok(Rebased::Done { .. }) => {
                    let said = format!("the worktree is brought onto {shown} ({})", base.commit.short());
                    Ok(RefreshOutcome::Moved(said))
                }
                // The end of the run offers what leads on: the hook may run by now.
                Ok(Rebased::Conflict { why, .. }) => Ok(RefreshOutcome::Left(format!(
                    "the worktree stays on the base that it has: the work conflicts with {shown}: {why}"
                ))),
                Ok(Rebased::UpToDate) | Err(Error::Dirty { .. }) => Ok(RefreshOutcome::Unchanged),
                Err(error) => Err(error),
            }
        });
        // Whatever is wrong shows itself when the work is submitted.
        Ok(moved.unwrap_or(RefreshOutcome::Unchanged))
    }

    fn move_worktree(
        &self,
        git: &Git<'_>,
        task: &Task,
        workspace: &mut Workspace,
        ((base, stack), below): ((&Base, &Stack), &[LowerTask]),
    ) -> Result<RefreshOutcome, Error> {
        let worktree = &self.worktree(workspace)?;
        let shown = || format!("the worktree is brought onto {} ({})", base.shown(), base.commit.short());
        let is_stacked = !workspace.stacked_on.is_empty() || !stack.tasks().is_empty();
        let is_report = task.report.is_some();
        if (is_stacked || is_report) && is_untouched(git, worktree, workspace, (base, below))? {
            return match git.restart(worktree, &stack.with_base(&base.commit)) {
                Ok(Some(start)) if start.as_str() != workspace.start => {
                    (workspace.start, workspace.stacked_on) = (start.to_string(), stack.tasks());
                    Ok(RefreshOutcome::Moved(shown()))
                }
                // The tasks below do not go together with the base; the work goes on from what it has.
                Ok(_) | Err(Error::Conflict { .. } | Error::Dirty { .. }) => Ok(RefreshOutcome::Unchanged),
                Err(error) => Err(error),
            };
        }
        if is_report || stacked_branches::first_unmerged(git, workspace, below, &base.commit)?.is_some() {
            return Ok(RefreshOutcome::Unchanged);
        }
        let start = stacked_branches::beginning(workspace)?;
        let rebase = || git.rebase_after(worktree, start.as_ref(), &base.commit);
        let rebased = match rebase() {
            // As it would be when the work is submitted.
            Err(Error::Dirty { .. }) => {
                git.commit_all(worktree, &commit_message(task))?;
                rebase()?
            }
            rebased => rebased?,
        };
        Ok(match rebased {
            Rebased::UpToDate => RefreshOutcome::Unchanged,
            Rebased::Done { .. } => RefreshOutcome::Moved(shown()),
            Rebased::Conflict { files, why } => {
                let BaseConflict { why, feedback } = self.describe_conflict(git, worktree, base, (&files, why))?;
                let said = format!("the work conflicts with {}: {why}; the agent is told", base.shown());
                RefreshOutcome::Conflict { said, feedback }
            }
        })
    }
}

/// Returns whether a worktree has no commit of its own, nor one that came into the base without a record.
fn is_untouched(
    git: &Git<'_>,
    worktree: &Worktree,
    workspace: &Workspace,
    (base, below): (&Base, &[LowerTask]),
) -> Result<bool, Error> {
    let own = stacked_branches::own_base(git, workspace, below, &base.commit)?;
    if git.work(&worktree.branch, &own)?.commits > 0 {
        return Ok(false);
    }
    match git.made_in(worktree, &Commit::new(&workspace.start)?, &base.commit) {
        Err(Error::Unnoted { .. }) => Ok(false),
        made => Ok(made?.is_empty()),
    }
}

/// Tells an agent what keeps its work from being brought onto a base: the files, and both sides of the places as a merge
/// shows them. The text is clean; secrets may be in it.
pub(crate) fn conflict_feedback(
    git: &Git<'_>,
    worktree: &Worktree,
    base: &Base,
    files: &[PathBuf],
    why: &str,
) -> Result<String, Error> {
    let shown = base.shown();
    let names = listed(files.iter().map(|file| file.display()));
    let head =
        git.tip(&worktree.branch)?.ok_or_else(|| Error::UnknownCommit { commit: worktree.branch.to_string() })?;
    let parted = git.merge_base(&head, &base.commit)?;
    let subjects = git.subjects(&parted, &base.commit, MAX_COMMITS)?;
    let subjects = listed(subjects.iter());
    // Cleaned by itself: a control sequence without an end hides nothing behind it.
    let places = clean(&git.conflict_text((&head, &base.commit), files, &shown, MAX_SHOWN)?);
    let places = if places.is_empty() { places } else { format!("Both sides, as a merge shows them:\n{places}\n") };
    Ok(format!(
        "The work does not go together with the newest {shown} ({}): {why}\n\nFiles:\n{names}\n\
         The last commits of {shown} that this branch has not:\n{subjects}\n{places}\
         Nothing was changed. Bring the work onto `{shown}` yourself (`git rebase {shown}` or \
         `git merge {shown}` in this directory), resolve the conflicts in these files so that both changes \
         are kept, run the tests, and commit.",
        base.commit.short(),
    ))
}
