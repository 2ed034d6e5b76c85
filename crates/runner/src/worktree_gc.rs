//! Removal of worktrees and branches of tasks that are merged or deleted.
//!
//! Invariants:
//! - Uncommitted work is never removed, and no branch whose tip is not merged.
//! - A worktree that cannot be removed stays, and is reported. The next sweep tries again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use windlass_engine::{Session, StateView, Task, TaskId, TaskState, ViewError, Workspace};
use windlass_vcs::git::{
    BranchDisposal, BranchName, Error, GitClient, GitCommitId, RemoteBranch, Worktree, WorktreeCloseOutcome,
    strip_removal_prefix,
};

use crate::workspace::commit_message;
use crate::workspace_problem::explain_git_error;
use crate::{EffectRunner, RunError, Runner, RunnerEvent};

/// A task whose worktree was left over, and why it still is, if it is.
pub type WorktreeRemoval = (TaskId, Result<(), String>);

/// Returns the merged or deleted tasks that still have worktrees in a directory.
pub fn find_leftover_tasks<V: StateView>(worktrees: &Path, view: &V) -> Result<Vec<Task>, ViewError> {
    let found = fs::read_dir(worktrees).into_iter().flatten().flatten();
    let ids: BTreeSet<TaskId> = found.filter_map(|entry| task_of_name(entry.file_name().to_str()?)).collect();
    let mut left = Vec::new();
    for id in ids {
        left.extend(view.find_task(id)?.filter(|task| branch_disposal(task).is_some()));
    }
    // The directory may belong to something else.
    left.retain(|task| task.workspace.as_ref().is_some_and(|place| worktrees.join(&place.name).is_dir()));
    Ok(left)
}

/// Returns the task that a worktree or a branch is named after: `t7-fix-the-login`, or `windlass/t7-fix-the-login`.
pub fn task_of_name(name: &str) -> Option<TaskId> {
    let name = name.trim_start_matches("windlass/");
    name.split('-').next()?.to_ascii_uppercase().parse().ok()
}

/// Returns what happens to the branch of a task that needs no worktree any more.
fn branch_disposal(task: &Task) -> Option<BranchDisposal> {
    let merged = task.change.as_ref().is_some_and(|change| change.merged.is_some());
    match task.state {
        // A squashed change is in no commit of its branch, but the log knows that it is merged.
        TaskState::Completed if merged => Some(BranchDisposal::Delete),
        // A report needs no checkout any more. Commits in it stay.
        TaskState::Completed if task.report.is_some() => {
            let start = task.workspace.as_ref().map(|workspace| GitCommitId::new(&workspace.start));
            start.and_then(Result::ok).map(BranchDisposal::DeleteIfContained)
        }
        TaskState::Deleted => Some(BranchDisposal::Keep),
        _ => None,
    }
}

/// Returns the name of a task's branch on remotes.
fn remote_branch_name(task: &Task, worktree: &Worktree) -> Result<BranchName, Error> {
    let known = task.change.as_ref().and_then(|change| change.at.branch.as_deref());
    known.map_or_else(|| Ok(worktree.branch.clone()), BranchName::new)
}

impl EffectRunner<'_> {
    /// Removes the worktree and the branch of a task that is merged or deleted, as far as nothing is lost with it.
    pub fn remove_task_worktree(&mut self, task: &Task) -> Result<(), Error> {
        let (Some(workspace), Some(branch)) = (&task.workspace, branch_disposal(task)) else { return Ok(()) };
        let worktree = self.task_worktree(workspace)?;
        let is_there = fs::symlink_metadata(&worktree.path).is_ok();
        if !is_there && branch == BranchDisposal::Keep {
            return Ok(());
        }
        let on_forge = task.change.as_ref().is_some_and(|change| change.at.number.is_some());
        let merged = task.change.as_ref().and_then(|change| change.merged.as_deref());
        let stays = self.with_git(|git| {
            if !is_there && git.branch_tip(&worktree.branch)?.is_none() {
                return git.close_worktree(&worktree, &branch).map(|_| None);
            }
            if let (BranchDisposal::Delete, Some(merged)) = (&branch, merged) {
                git.refuse_unmerged_branch(
                    &worktree.branch,
                    &remote_branch_name(task, &worktree)?,
                    &GitCommitId::new(merged)?,
                )?;
            }
            let closed = git.close_worktree(&worktree, &BranchDisposal::Keep)?;
            if let WorktreeCloseOutcome::Dirty { files } = closed {
                return Err(Error::Dirty { path: worktree.path.clone(), files });
            }
            let ours = branch == BranchDisposal::Delete && !on_forge;
            // Remove the local branch last: after a crash, the next sweep finds the task by it.
            let stays = if ours { self.remove_remote_branch(git, task, &worktree).err() } else { None };
            git.close_worktree(&worktree, &branch)?;
            Ok(stays)
        })?;
        if let Some(error) = stays {
            let words = format!("the branch {} stays on the remote: {}", worktree.branch, explain_git_error(&error));
            (self.env.observe)(RunnerEvent::Note(&words));
        }
        Ok(())
    }

    /// Removes a merged branch from the remote, unless others have pushed to it.
    fn remove_remote_branch(&self, git: &GitClient<'_>, task: &Task, worktree: &Worktree) -> Result<(), Error> {
        let Some(remote) = self.last_known_base(git)?.remote else { return Ok(()) };
        let (branch, local) = (remote_branch_name(task, worktree)?, worktree.branch.clone());
        git.unpublish_branch(&RemoteBranch { remote, branch, local }).map(drop)
    }

    /// Removes the worktree of a task in its current state. Returns the reason as text if it stays.
    pub fn remove_worktree_by_id(&mut self, id: TaskId) -> Result<Result<(), String>, RunError> {
        let Some(task) = self.store.begin_snapshot()?.find_task(id)? else { return Ok(Ok(())) };
        Ok(self.remove_task_worktree(&task).map_err(|error| explain_git_error(&error)))
    }

    /// Removes worktrees that other runs have left: after a crash, a deletion of the task, or a loss of its lease. Worktrees in use
    /// stay. Returns the removed ones, and those that stay with the reason.
    pub fn sweep_worktrees(&mut self, in_use: &[String]) -> Result<Vec<WorktreeRemoval>, RunError> {
        let worktrees = self.settings.delivery.worktrees.clone();
        if !worktrees.is_dir() || !matches!(self.find_repository(), Ok(Some(_))) {
            return Ok(Vec::new());
        }
        self.sweep_checkouts();
        let mut swept = self.finish_killed_removals(&worktrees);
        let mut left = find_leftover_tasks(&worktrees, &self.store.begin_snapshot()?)?;
        let known: BTreeSet<TaskId> = left.iter().map(|task| task.id).collect();
        let branches = self.with_git(|git| git.list_branches()).unwrap_or_default();
        for id in
            branches.iter().filter_map(|(branch, _)| task_of_name(branch.as_str())).filter(|id| !known.contains(id))
        {
            let task = self.store.begin_snapshot()?.find_task(id)?;
            left.extend(task.filter(|task| branch_disposal(task) == Some(BranchDisposal::Delete)));
        }
        left.retain(|task| task.workspace.as_ref().is_none_or(|place| !in_use.contains(&place.name)));
        swept.extend(self.sweep_former_worktrees(&branches, in_use)?);
        for task in left {
            swept.push((task.id, self.remove_task_worktree(&task).map_err(|error| explain_git_error(&error))));
        }
        Ok(swept)
    }
}

impl EffectRunner<'_> {
    /// Finishes removals that were killed. Returns only those that fail.
    pub(crate) fn finish_killed_removals(&self, worktrees: &Path) -> Vec<WorktreeRemoval> {
        let found = fs::read_dir(worktrees).into_iter().flatten().flatten();
        let names = found.filter_map(|entry| Some(strip_removal_prefix(entry.file_name().to_str()?)?.to_owned()));
        let finish = |name: String| {
            let stays = self.with_git(|git| git.finish_removal(&worktrees.join(&name))).err()?;
            Some((task_of_name(&name)?, Err(explain_git_error(&stays))))
        };
        names.filter_map(finish).collect()
    }

    /// Removes the worktrees of earlier attempts.
    fn sweep_former_worktrees(
        &mut self,
        branches: &[(BranchName, GitCommitId)],
        in_use: &[String],
    ) -> Result<Vec<WorktreeRemoval>, RunError> {
        let mut swept = Vec::new();
        for (branch, _) in branches {
            let Some(id) = task_of_name(branch.as_str()) else { continue };
            let Some(task) = self.store.begin_snapshot()?.find_task(id)? else { continue };
            let is_it = |place: &&Workspace| place.branch == branch.as_str() && !in_use.contains(&place.name);
            let is_there = |place: &&Workspace| self.settings.delivery.worktrees.join(&place.name).is_dir();
            if let Some(former) = task.former_workspaces.iter().filter(is_it).find(is_there) {
                swept.push((id, self.remove_lost_worktree(&task, former).map_err(|error| explain_git_error(&error))));
            }
        }
        Ok(swept)
    }

    /// Commits the changes in a worktree that is out of use, and removes the worktree. The branch stays if it has commits that the
    /// base has not.
    fn remove_lost_worktree(&self, task: &Task, workspace: &Workspace) -> Result<(), Error> {
        let worktree = self.task_worktree(workspace)?;
        self.with_git(|git| {
            if fs::symlink_metadata(&worktree.path).is_ok() {
                git.commit_all(&worktree, &commit_message(task))?;
            }
            let base = self.load_base(git)?.commit;
            git.close_worktree(&worktree, &BranchDisposal::DeleteIfContained(base)).map(drop)
        })
    }
}

impl Runner<'_> {
    /// Removes the worktree of a session that has lost its task.
    pub(crate) fn remove_lost_task_worktree(&mut self, session: &Session) -> Result<(), RunError> {
        let Some(workspace) = session.workspace.as_ref().filter(|_| session.held_epoch().is_none()) else {
            return Ok(());
        };
        let task = self.load_session_task(session)?;
        if task.former_workspaces.contains(workspace)
            && let Err(error) = self.effects.remove_lost_worktree(&task, workspace)
        {
            let said = format!("the work in {} stays there: {}", workspace.name, explain_git_error(&error));
            (self.effects.env.observe)(RunnerEvent::Note(&said));
        }
        Ok(())
    }

    /// Removes the worktrees of merged tasks, and reports those that stay. The worktree of a running agent stays until the session
    /// is over.
    pub(crate) fn remove_merged_worktrees(&mut self, session: &Session) -> Result<(), RunError> {
        let in_it = session.task.filter(|_| !session.is_over());
        let (later, now) = std::mem::take(&mut self.done).into_iter().partition(|id| Some(*id) == in_it);
        self.done = later;
        let now: Vec<TaskId> = now;
        for id in now {
            if let Err(why) = self.effects.remove_worktree_by_id(id)? {
                (self.effects.env.observe)(RunnerEvent::Note(&format!("the worktree of {id} stays: {why}")));
            }
        }
        Ok(())
    }

    /// Removes worktrees that earlier runs have left, and reports those that stay.
    pub fn sweep_and_report(&mut self, in_use: &[String]) -> Result<(), RunError> {
        for (id, swept) in self.effects.sweep_worktrees(in_use)? {
            let words = match swept {
                Ok(()) => format!("removed the leftover worktree of {id}"),
                Err(why) => format!("the worktree of {id} stays: {why}"),
            };
            (self.effects.env.observe)(RunnerEvent::Note(&words));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktree_and_branch_names_yield_the_task() {
        let of = |name: &str| task_of_name(name).map(|id| id.to_string());
        assert_eq!(of("t7-fix-the-login").as_deref(), Some("T7"));
        assert_eq!(of("windlass/t12").as_deref(), Some("T12"));
        assert_eq!(of("feature-t7"), None);
        assert_eq!(of(""), None);
    }
}
