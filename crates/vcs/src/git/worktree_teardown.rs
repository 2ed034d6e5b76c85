//! Removes Windlass worktrees and branches on request.

use std::fs;
use std::path::PathBuf;

use super::operation::refuse_operation;
use super::removal::remove_worktree_files;
use super::repository::{WorktreeEntry, WorktreeHead};
use super::worktree_setup::INITIALIZING_REASON;
use super::{BranchName, Error, GitClient, GitCommitId, Worktree, canonical_path};

/// The treatment of the branch after the directory is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchDisposal {
    Keep,
    /// Deletes the branch if this commit contains it.
    DeleteIfContained(GitCommitId),
    Delete,
}

/// The outcome of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeCloseOutcome {
    /// The directory is removed, and the branch as requested.
    Removed,
    /// Nothing is removed: there is uncommitted work.
    Dirty { files: Vec<PathBuf> },
    /// The directory is removed, but not the branch: it has commits that are nowhere else.
    BranchKept,
}

impl GitClient<'_> {
    /// Removes a Windlass worktree, unless it has uncommitted work. If the worktree is already gone, only its branch is handled.
    pub fn close_worktree(&self, worktree: &Worktree, branch: &BranchDisposal) -> Result<WorktreeCloseOutcome, Error> {
        let path = canonical_path(&worktree.path);
        let _held = self.repository.lock_worktree(&path)?;
        let is_there = fs::symlink_metadata(&path).is_ok();
        let Some(entry) = self.repository.worktree_entry(&path) else {
            return if is_there {
                Err(Error::Occupied { path })
            } else {
                self.delete_branch_refs(&worktree.branch, branch)
            };
        };
        let is_whole = entry.is_linked_back();
        match &entry.locked {
            Some(reason) if reason != INITIALIZING_REASON => {
                return Err(Error::WorktreeLocked { path, reason: reason.clone() });
            }
            None if is_whole => {
                let files = self.find_uncommitted(&path, "all")?;
                if !files.is_empty() {
                    return Ok(WorktreeCloseOutcome::Dirty { files });
                }
                self.refuse_unsaved_commits(&entry, &worktree.branch)?;
            }
            _ if is_there && !is_whole => return Err(Error::Occupied { path }),
            _ => {}
        }
        remove_worktree_files(&entry)?;
        self.delete_branch_refs(&worktree.branch, branch)
    }

    /// Refuses to remove commits that no branch has, and unfinished operations.
    fn refuse_unsaved_commits(&self, entry: &WorktreeEntry, branch: &BranchName) -> Result<(), Error> {
        refuse_operation(entry)?;
        let (WorktreeHead::Detached(head), Some(tip)) = (entry.read_head()?, self.resolve_ref(&branch.full_ref())?)
        else {
            return Ok(());
        };
        if self.contains_commit(&tip, &head)? {
            return Ok(());
        }
        Err(Error::Strayed { at: head.short_id().to_owned(), branch: branch.clone() })
    }

    /// Returns every Windlass branch with its start.
    pub fn list_branches(&self) -> Result<Vec<(BranchName, GitCommitId)>, Error> {
        let call = self.build_command(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/windlass/start/"]);
        let listed = call.run_checked()?.trimmed_text();
        let branch = |line: &str| {
            let (start, full) = line.split_once(' ')?;
            let branch = BranchName::new(full.strip_prefix("refs/windlass/start/")?).ok()?;
            Some((branch, GitCommitId::new(start).ok()?))
        };
        Ok(listed.lines().filter_map(branch).collect())
    }

    /// Refuses to delete a branch whose tip is not in the merged commit, was not pushed to be merged, and is on no other
    /// branch. `remote_name` is the branch's name on remotes.
    pub fn refuse_unmerged_branch(
        &self,
        branch: &BranchName,
        remote_name: &BranchName,
        merged: &GitCommitId,
    ) -> Result<(), Error> {
        let Some(tip) = self.resolve_ref(&branch.full_ref())? else { return Ok(()) };
        if self.resolve_ref(&remote_name.pushed_ref())?.as_ref() == Some(&tip) {
            return Ok(());
        }
        // The forge's merge commit may not be fetched yet.
        if self.has_commit(merged)? && self.has_all_changes(merged, &tip)? {
            return Ok(());
        }
        match self.is_on_other_branch([branch, remote_name], &tip)? {
            true => Ok(()),
            false => {
                // The main worktree cannot be removed.
                let worktree = self.repository.checkout_path(branch).filter(|path| *path != self.repository.root);
                Err(Error::Unmerged { branch: branch.clone(), worktree })
            }
        }
    }

    /// Returns whether a forge has merged all of a branch: the tip, or a commit on top of it; or the base contains all of
    /// it by now.
    pub fn is_fully_merged(
        &self,
        branch: &BranchName,
        merged_head: &GitCommitId,
        base: &GitCommitId,
    ) -> Result<bool, Error> {
        let Some(tip) = self.resolve_ref(&branch.full_ref())? else { return Ok(true) };
        Ok(tip == *merged_head
            || self.has_commit(merged_head)? && self.contains_commit(merged_head, &tip)?
            || self.has_all_changes(base, &tip)?)
    }

    /// Returns whether a branch other than these two, local or remote, contains a commit. The remote side of a Windlass
    /// branch does not count.
    fn is_on_other_branch(&self, own: [&BranchName; 2], commit: &GitCommitId) -> Result<bool, Error> {
        let call =
            self.build_command(&["for-each-ref", "--format=%(refname)"]).with_argument(format!("--contains={commit}"));
        let names = call.with_argument("refs/heads/").with_argument("refs/remotes/").run_checked()?.trimmed_text();
        let is_of = |name: &str, branch: &BranchName| {
            name == branch.full_ref() || name.starts_with("refs/remotes/") && name.ends_with(&format!("/{branch}"))
        };
        Ok(names.lines().any(|name| !own.iter().any(|branch| is_of(name, branch))))
    }

    fn delete_branch_refs(&self, branch: &BranchName, after: &BranchDisposal) -> Result<WorktreeCloseOutcome, Error> {
        if *after == BranchDisposal::Keep {
            return Ok(WorktreeCloseOutcome::Removed);
        }
        let [tip, pushed, mark] =
            [branch.full_ref(), branch.pushed_ref(), branch.start_ref()].map(|full| self.resolve_ref(&full));
        let (tip, pushed, mark) = (tip?, pushed?.filter(|_| *after == BranchDisposal::Delete), mark?);
        if let Some(tip) = &tip {
            if mark.is_none() {
                return Err(Error::BranchTaken { branch: branch.clone() });
            }
            if let Some(path) = self.repository.checkout_path(branch) {
                return Err(Error::CheckedOut { branch: branch.clone(), path });
            }
            if let BranchDisposal::DeleteIfContained(base) = after
                && !self.contains_commit(base, tip)?
            {
                return Ok(WorktreeCloseOutcome::BranchKept);
            }
        }
        // One transaction each, in one call: our mark goes last.
        let refs = [(branch.full_ref(), tip), (branch.pushed_ref(), pushed), (branch.start_ref(), mark)];
        let steps: String = refs
            .into_iter()
            .filter_map(|(full, at)| at.map(|at| format!("start\ndelete {full} {at}\ncommit\n")))
            .collect();
        if !steps.is_empty() {
            self.build_command(&["update-ref", "--stdin"]).with_stdin(steps).run_checked()?;
        }
        Ok(WorktreeCloseOutcome::Removed)
    }
}
