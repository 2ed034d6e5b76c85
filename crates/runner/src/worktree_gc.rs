//! Removal of worktrees and branches of tasks that are merged or deleted.
//!
//! Invariants:
//! - Uncommitted work is never removed, and no branch whose tip is not merged.
//! - A worktree that cannot be removed stays, and is reported. The next sweep tries again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use windlass_engine::{Session, State, Task, TaskId, View, ViewError, Workspace};
use windlass_vcs::git::{Branch, BranchAfter, Closed, Commit, Error, Git, Shared, Worktree, half_removed};

use crate::workspace::commit_message;
use crate::workspace_problem::explained;
use crate::{EffectRunner, RunError, Runner, RunnerEvent};

/// A task whose worktree was left over, and why it still is, if it is.
pub type GcResult = (TaskId, Result<(), String>);

/// Returns the merged or deleted tasks that still have worktrees in a directory.
pub fn left_in<V: View>(worktrees: &Path, view: &V) -> Result<Vec<Task>, ViewError> {
    let found = fs::read_dir(worktrees).into_iter().flatten().flatten();
    let ids: BTreeSet<TaskId> = found.filter_map(|entry| task_of(entry.file_name().to_str()?)).collect();
    let mut left = Vec::new();
    for id in ids {
        left.extend(view.task(id)?.filter(|task| is_over(task).is_some()));
    }
    // The directory may belong to something else.
    left.retain(|task| task.workspace.as_ref().is_some_and(|place| worktrees.join(&place.name).is_dir()));
    Ok(left)
}

/// Returns the task that a worktree or a branch is named after: `t7-fix-the-login`, or `windlass/t7-fix-the-login`.
pub fn task_of(name: &str) -> Option<TaskId> {
    let name = name.trim_start_matches("windlass/");
    name.split('-').next()?.to_ascii_uppercase().parse().ok()
}

/// Returns what happens to the branch of a task that needs no worktree any more.
fn is_over(task: &Task) -> Option<BranchAfter> {
    let merged = task.change.as_ref().is_some_and(|change| change.merged.is_some());
    match task.state {
        // A squashed change is in no commit of its branch, but the log knows that it is merged.
        State::Completed if merged => Some(BranchAfter::Gone),
        // A report needs no checkout any more. Commits in it stay.
        State::Completed if task.report.is_some() => {
            let start = task.workspace.as_ref().map(|workspace| Commit::new(&workspace.start));
            start.and_then(Result::ok).map(BranchAfter::GoneIfIn)
        }
        State::Deleted => Some(BranchAfter::Kept),
        _ => None,
    }
}

/// Returns the name of a task's branch on remotes.
fn remote_name(task: &Task, worktree: &Worktree) -> Result<Branch, Error> {
    let known = task.change.as_ref().and_then(|change| change.at.branch.as_deref());
    known.map_or_else(|| Ok(worktree.branch.clone()), Branch::new)
}

impl EffectRunner<'_> {
    /// Removes the worktree and the branch of a task that is merged or deleted, as far as nothing is lost with it.
    pub fn clear_away(&mut self, task: &Task) -> Result<(), Error> {
        let (Some(workspace), Some(branch)) = (&task.workspace, is_over(task)) else { return Ok(()) };
        let worktree = self.worktree(workspace)?;
        let is_there = fs::symlink_metadata(&worktree.path).is_ok();
        if !is_there && branch == BranchAfter::Kept {
            return Ok(());
        }
        let on_forge = task.change.as_ref().is_some_and(|change| change.at.number.is_some());
        let merged = task.change.as_ref().and_then(|change| change.merged.as_deref());
        let stays = self.with_git(|git| {
            if !is_there && git.tip(&worktree.branch)?.is_none() {
                return git.close(&worktree, &branch).map(|_| None);
            }
            if let (BranchAfter::Gone, Some(merged)) = (&branch, merged) {
                git.refuse_unmerged_branch(&worktree.branch, &remote_name(task, &worktree)?, &Commit::new(merged)?)?;
            }
            let closed = git.close(&worktree, &BranchAfter::Kept)?;
            if let Closed::Dirty { files } = closed {
                return Err(Error::Dirty { path: worktree.path.clone(), files });
            }
            let ours = branch == BranchAfter::Gone && !on_forge;
            // Remove the local branch last: after a crash, the next sweep finds the task by it.
            let stays = if ours { self.take_back(git, task, &worktree).err() } else { None };
            git.close(&worktree, &branch)?;
            Ok(stays)
        })?;
        if let Some(error) = stays {
            let words = format!("the branch {} stays on the remote: {}", worktree.branch, explained(&error));
            (self.outside.tell)(RunnerEvent::Note(&words));
        }
        Ok(())
    }

    /// Removes a merged branch from the remote, unless others have pushed to it.
    fn take_back(&self, git: &Git<'_>, task: &Task, worktree: &Worktree) -> Result<(), Error> {
        let Some(remote) = self.known_base(git)?.remote else { return Ok(()) };
        let (branch, local) = (remote_name(task, worktree)?, worktree.branch.clone());
        git.unshare(&Shared { remote, branch, local }).map(drop)
    }

    /// Removes the worktree of a task in its current state. Returns the reason as text if it stays.
    pub fn clear_away_now(&mut self, id: TaskId) -> Result<Result<(), String>, RunError> {
        let Some(task) = self.store.snapshot()?.task(id)? else { return Ok(Ok(())) };
        Ok(self.clear_away(&task).map_err(|error| explained(&error)))
    }

    /// Removes worktrees that other runs have left: after a crash, a deletion of the task, or a loss of its lease. Worktrees in use
    /// stay. Returns the removed ones, and those that stay with the reason.
    pub fn sweep(&mut self, in_use: &[String]) -> Result<Vec<GcResult>, RunError> {
        let worktrees = self.settings.delivery.worktrees.clone();
        if !worktrees.is_dir() || !matches!(self.repository(), Ok(Some(_))) {
            return Ok(Vec::new());
        }
        self.sweep_checkouts();
        let mut swept = self.finish_removals(&worktrees);
        let mut left = left_in(&worktrees, &self.store.snapshot()?)?;
        let known: BTreeSet<TaskId> = left.iter().map(|task| task.id).collect();
        let branches = self.with_git(|git| git.branches()).unwrap_or_default();
        for id in branches.iter().filter_map(|(branch, _)| task_of(branch.as_str())).filter(|id| !known.contains(id)) {
            let task = self.store.snapshot()?.task(id)?;
            left.extend(task.filter(|task| is_over(task) == Some(BranchAfter::Gone)));
        }
        left.retain(|task| task.workspace.as_ref().is_none_or(|place| !in_use.contains(&place.name)));
        swept.extend(self.sweep_former(&branches, in_use)?);
        for task in left {
            swept.push((task.id, self.clear_away(&task).map_err(|error| explained(&error))));
        }
        Ok(swept)
    }
}

impl EffectRunner<'_> {
    /// Finishes removals that were killed. Returns only those that fail.
    pub(crate) fn finish_removals(&self, worktrees: &Path) -> Vec<GcResult> {
        let found = fs::read_dir(worktrees).into_iter().flatten().flatten();
        let names = found.filter_map(|entry| Some(half_removed(entry.file_name().to_str()?)?.to_owned()));
        let finish = |name: String| {
            let stays = self.with_git(|git| git.finish_removal(&worktrees.join(&name))).err()?;
            Some((task_of(&name)?, Err(explained(&stays))))
        };
        names.filter_map(finish).collect()
    }

    /// Removes the worktrees of earlier attempts.
    fn sweep_former(&mut self, branches: &[(Branch, Commit)], in_use: &[String]) -> Result<Vec<GcResult>, RunError> {
        let mut swept = Vec::new();
        for (branch, _) in branches {
            let Some(id) = task_of(branch.as_str()) else { continue };
            let Some(task) = self.store.snapshot()?.task(id)? else { continue };
            let is_it = |place: &&Workspace| place.branch == branch.as_str() && !in_use.contains(&place.name);
            let is_there = |place: &&Workspace| self.settings.delivery.worktrees.join(&place.name).is_dir();
            if let Some(former) = task.former.iter().filter(is_it).find(is_there) {
                swept.push((id, self.gc_lost_task(&task, former).map_err(|error| explained(&error))));
            }
        }
        Ok(swept)
    }

    /// Commits the changes in a worktree that is out of use, and removes the worktree. The branch stays if it has commits that the
    /// base has not.
    fn gc_lost_task(&self, task: &Task, workspace: &Workspace) -> Result<(), Error> {
        let worktree = self.worktree(workspace)?;
        self.with_git(|git| {
            if fs::symlink_metadata(&worktree.path).is_ok() {
                git.commit_all(&worktree, &commit_message(task))?;
            }
            let base = self.base(git)?.commit;
            git.close(&worktree, &BranchAfter::GoneIfIn(base)).map(drop)
        })
    }
}

impl Runner<'_> {
    /// Removes the worktree of a session that has lost its task.
    pub(crate) fn gc_lost_task(&mut self, session: &Session) -> Result<(), RunError> {
        let Some(workspace) = session.workspace.as_ref().filter(|_| session.epoch().is_none()) else { return Ok(()) };
        let task = self.task_of(session)?;
        if task.former.contains(workspace)
            && let Err(error) = self.dispatch.gc_lost_task(&task, workspace)
        {
            let said = format!("what was done in {} stays there: {}", workspace.name, explained(&error));
            (self.dispatch.outside.tell)(RunnerEvent::Note(&said));
        }
        Ok(())
    }

    /// Removes the worktrees of merged tasks, and reports those that stay. The worktree of a running agent stays until the session
    /// is over.
    pub(crate) fn gc_worktrees(&mut self, session: &Session) -> Result<(), RunError> {
        let in_it = session.task.filter(|_| !session.is_over());
        let (later, now) = std::mem::take(&mut self.done).into_iter().partition(|id| Some(*id) == in_it);
        self.done = later;
        let now: Vec<TaskId> = now;
        for id in now {
            if let Err(why) = self.dispatch.clear_away_now(id)? {
                (self.dispatch.outside.tell)(RunnerEvent::Note(&format!("the worktree of {id} stays: {why}")));
            }
        }
        Ok(())
    }

    /// Removes worktrees that earlier runs have left, and reports those that stay.
    pub fn sweep(&mut self, in_use: &[String]) -> Result<(), RunError> {
        for (id, swept) in self.dispatch.sweep(in_use)? {
            let words = match swept {
                Ok(()) => format!("the worktree of {id} was left, and is put away"),
                Err(why) => format!("the worktree of {id} stays: {why}"),
            };
            (self.dispatch.outside.tell)(RunnerEvent::Note(&words));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_worktrees_and_branches_tell_the_task() {
        let of = |name: &str| task_of(name).map(|id| id.to_string());
        assert_eq!(of("t7-fix-the-login").as_deref(), Some("T7"));
        assert_eq!(of("windlass/t12").as_deref(), Some("T12"));
        assert_eq!(of("feature-t7"), None);
        assert_eq!(of(""), None);
    }
}
