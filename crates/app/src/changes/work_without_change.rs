//! Work of completed tasks that lies on a branch without a change.

use windlass_engine::{Task, TaskId, Workspace};
use windlass_process::RunControl;
use windlass_runner::external_merges::last_seen_base;
use windlass_runner::stacked_branches::{own_work_base, unmerged_lower_tasks, work_without_change};
use windlass_vcs::git::{BranchName, Error, GitClient, Worktree};

use super::with_git;
use crate::context::OpenedProject;
use crate::{Failure, hints};

/// How many tasks are named.
const MAX_NAMED_TASKS: usize = 8;

/// Returns the branch with the work of a completed task that has no change.
pub fn find_branch_without_change<'t>(opened: &OpenedProject, task: &'t Task) -> Option<&'t str> {
    let workspace = work_without_change(task)?;
    // If git fails, the branch is named.
    has_unmerged_work(opened, workspace).unwrap_or(true).then_some(workspace.branch.as_str())
}

/// Returns notes for those of these tasks whose work is in no change: the first ones by name, then the number of the others.
pub fn note_work_without_change(opened: &OpenedProject, tasks: impl Iterator<Item = TaskId>) -> Vec<String> {
    let note = |task: Task| {
        let (id, branch) = (task.id, find_branch_without_change(opened, &task)?);
        let opens = "`create_pr` at `before_submit` opens one";
        Some(format!("no change was opened for {id}: its work is on the branch {branch}; {opens}"))
    };
    let mut candidates =
        tasks.filter_map(|id| opened.require_task(id).ok()).filter(|task| work_without_change(task).is_some());
    let mut notes: Vec<String> = candidates.by_ref().filter_map(note).take(MAX_NAMED_TASKS).collect();
    // The rest may be many, so git is not asked about it.
    let more = candidates.count();
    if more > 0 {
        notes.push(format!("{more} more completed without a change: `windlass task show ID` names the branch"));
    }
    notes
}

/// Returns whether a branch has commits of its own, or its worktree has uncommitted files.
fn has_unmerged_work(opened: &OpenedProject, workspace: &Workspace) -> Result<bool, Failure> {
    let below = unmerged_lower_tasks(&opened.store.begin_snapshot().map_err(hints::store_failure)?, workspace)
        .map_err(hints::view_failure)?;
    let look = |git: &GitClient<'_>| -> Result<bool, Error> {
        let branch = BranchName::new(&workspace.branch)?;
        if let (Some(_), Some(base)) = (git.branch_tip(&branch)?, last_seen_base(git, &workspace.base)?) {
            let own = own_work_base(git, workspace, &below, &base.commit)?;
            if git.read_branch_work(&branch, &own)?.commit_count() > 0 {
                return Ok(true);
            }
        }
        let path = opened.project.worktree_directory().join(&workspace.name);
        Ok(path.is_dir() && !git.uncommitted_files(&Worktree { path, branch })?.is_empty())
    };
    Ok(with_git(&opened.project, &RunControl::new(), look)?.unwrap_or(true))
}
