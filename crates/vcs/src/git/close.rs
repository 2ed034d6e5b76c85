//! Removes worktrees and branches of ours on request.

use std::fs;
use std::path::PathBuf;

use super::discard::discard;
use super::open::INITIALIZING;
use super::repository::{Entry, Head};
use super::unfinished::refuse_under_way;
use super::{Branch, Commit, Error, Git, Worktree, canonical};

/// The treatment of the branch after the directory is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchAfter {
    Kept,
    /// Deletes the branch if this commit contains it.
    GoneIfIn(Commit),
    Gone,
}

/// The outcome of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The directory is removed, and the branch as requested.
    Gone,
    /// Nothing is removed: there is uncommitted work.
    Dirty { files: Vec<PathBuf> },
    /// The directory is removed, but not the branch: it has commits that are nowhere else.
    BranchKept,
}

impl Git<'_> {
    /// Removes a worktree of ours, unless it has uncommitted work. If the worktree is already gone, only its branch is handled.
    pub fn close(&self, worktree: &Worktree, branch: &BranchAfter) -> Result<Closed, Error> {
        let path = canonical(&worktree.path);
        let _held = self.repository.hold(&path)?;
        let is_there = fs::symlink_metadata(&path).is_ok();
        let Some(entry) = self.repository.entry(&path) else {
            return if is_there { Err(Error::Occupied { path }) } else { self.put_away(&worktree.branch, branch) };
        };
        let is_whole = entry.is_whole();
        match &entry.locked {
            Some(reason) if reason != INITIALIZING => {
                return Err(Error::WorktreeLocked { path, reason: reason.clone() });
            }
            None if is_whole => {
                let files = self.uncommitted(&path, "all")?;
                if !files.is_empty() {
                    return Ok(Closed::Dirty { files });
                }
                self.refuse_lost(&entry, &worktree.branch)?;
            }
            _ if is_there && !is_whole => return Err(Error::Occupied { path }),
            _ => {}
        }
        discard(&entry)?;
        self.put_away(&worktree.branch, branch)
    }

    /// Refuses to remove commits that no branch has, and unfinished operations.
    fn refuse_lost(&self, entry: &Entry, branch: &Branch) -> Result<(), Error> {
        refuse_under_way(entry)?;
        let (Head::Detached(head), Some(tip)) = (entry.head()?, self.resolve(&branch.full())?) else { return Ok(()) };
        if self.contains(&tip, &head)? {
            return Ok(());
        }
        Err(Error::Strayed { at: head.short().to_owned(), branch: branch.clone() })
    }

    /// Returns every branch of ours with its start.
    pub fn branches(&self) -> Result<Vec<(Branch, Commit)>, Error> {
        let call = self.call(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/windlass/start/"]);
        let listed = call.done()?.line();
        let branch = |line: &str| {
            let (start, full) = line.split_once(' ')?;
            let branch = Branch::new(full.strip_prefix("refs/windlass/start/")?).ok()?;
            Some((branch, Commit::new(start).ok()?))
        };
        Ok(listed.lines().filter_map(branch).collect())
    }

    /// Refuses to delete a branch whose tip is not in the merged commit, was not pushed to be merged, and is on no other
    /// branch. `remote_name` is the branch's name on remotes.
    pub fn refuse_unmerged_branch(&self, branch: &Branch, remote_name: &Branch, merged: &Commit) -> Result<(), Error> {
        let Some(tip) = self.resolve(&branch.full())? else { return Ok(()) };
        if self.resolve(&remote_name.pushed())?.as_ref() == Some(&tip) {
            return Ok(());
        }
        // The forge's merge commit may not be fetched yet.
        if self.is_known(merged)? && self.has_all(merged, &tip)? {
            return Ok(());
        }
        match self.is_on_other_branch([branch, remote_name], &tip)? {
            true => Ok(()),
            false => {
                // The main worktree cannot be removed.
                let worktree = self.repository.checked_out(branch).filter(|path| *path != self.repository.root);
                Err(Error::Unmerged { branch: branch.clone(), worktree })
            }
        }
    }

    /// Returns whether a forge has merged all of a branch: the tip, or a commit on top of it; or the base contains all of
    /// it by now.
    pub fn is_merged_whole(&self, branch: &Branch, merged_head: &Commit, base: &Commit) -> Result<bool, Error> {
        let Some(tip) = self.resolve(&branch.full())? else { return Ok(true) };
        Ok(tip == *merged_head
            || self.is_known(merged_head)? && self.contains(merged_head, &tip)?
            || self.has_all(base, &tip)?)
    }

    /// Returns whether a branch other than these two, local or remote, contains a commit. The remote side of a branch of
    /// ours does not count.
    fn is_on_other_branch(&self, own: [&Branch; 2], commit: &Commit) -> Result<bool, Error> {
        let call = self.call(&["for-each-ref", "--format=%(refname)"]).word(format!("--contains={commit}"));
        let names = call.word("refs/heads/").word("refs/remotes/").done()?.line();
        let is_of = |name: &str, branch: &Branch| {
            name == branch.full() || name.starts_with("refs/remotes/") && name.ends_with(&format!("/{branch}"))
        };
        Ok(names.lines().any(|name| !own.iter().any(|branch| is_of(name, branch))))
    }

    fn put_away(&self, branch: &Branch, after: &BranchAfter) -> Result<Closed, Error> {
        if *after == BranchAfter::Kept {
            return Ok(Closed::Gone);
        }
        let [tip, pushed, mark] = [branch.full(), branch.pushed(), branch.mark()].map(|full| self.resolve(&full));
        let (tip, pushed, mark) = (tip?, pushed?.filter(|_| *after == BranchAfter::Gone), mark?);
        if let Some(tip) = &tip {
            if mark.is_none() {
                return Err(Error::BranchTaken { branch: branch.clone() });
            }
            if let Some(path) = self.repository.checked_out(branch) {
                return Err(Error::CheckedOut { branch: branch.clone(), path });
            }
            if let BranchAfter::GoneIfIn(base) = after
                && !self.contains(base, tip)?
            {
                return Ok(Closed::BranchKept);
            }
        }
        // One transaction each, in one call: our mark goes last.
        let refs = [(branch.full(), tip), (branch.pushed(), pushed), (branch.mark(), mark)];
        let steps: String = refs
            .into_iter()
            .filter_map(|(full, at)| at.map(|at| format!("start\ndelete {full} {at}\ncommit\n")))
            .collect();
        if !steps.is_empty() {
            self.call(&["update-ref", "--stdin"]).stdin(steps).done()?;
        }
        Ok(Closed::Gone)
    }
}
