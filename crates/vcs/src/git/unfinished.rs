//! Unfinished operations of an agent in its worktree: a merge, a rebase, and the like.
//!
//! The next commit finishes a resolved merge. Everything else stays as it is, for the agent to finish.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{Entry, text};
use super::{Error, Git, Operation, obstacle, paths};

/// Returns the operation in progress, from a worktree's admin directory.
pub(super) fn under_way(admin: &Path) -> Option<Operation> {
    let has = |name: &str| fs::symlink_metadata(admin.join(name)).is_ok();
    let sequence = || text(&admin.join("sequencer/todo")).unwrap_or_default();
    if has("rebase-merge") || has("rebase-apply/rebasing") {
        Some(Operation::Rebase)
    } else if has("rebase-apply") {
        Some(Operation::Am)
    } else if has("MERGE_HEAD") {
        Some(Operation::Merge)
    } else if has("CHERRY_PICK_HEAD") || sequence().starts_with("pick") {
        Some(Operation::CherryPick)
    } else if has("REVERT_HEAD") || sequence().starts_with("revert") {
        Some(Operation::Revert)
    } else if has("BISECT_START") {
        Some(Operation::Bisect)
    } else {
        None
    }
}

impl Git<'_> {
    /// Refuses a worktree with an operation in progress, or with unresolved files.
    pub(super) fn refuse_unfinished(&self, entry: &Entry) -> Result<(), Error> {
        refuse_unmerged(entry, self.unmerged(&entry.path)?)?;
        refuse_under_way(entry)
    }

    /// Stages everything that is not ignored.
    pub(super) fn stage(&self, worktree: &Path) -> Result<(), Error> {
        // Git gets a minimum of time for this, even if the session has little left.
        obstacle::find(worktree)?;
        self.call(&["add", "--all"]).set("advice.addEmbeddedRepo=false").within(worktree).done()?;
        Ok(())
    }

    /// Returns the files that the index has in several versions.
    fn unmerged(&self, worktree: &Path) -> Result<Vec<PathBuf>, Error> {
        let listed = self.call(&["diff-files", "-z", "--name-only", "--diff-filter=U"]).within(worktree).done()?;
        Ok(paths(listed.entries()))
    }
}

/// Refuses a worktree with an operation in progress.
pub(super) fn refuse_under_way(entry: &Entry) -> Result<(), Error> {
    match under_way(&entry.admin) {
        Some(operation) => Err(Error::Unfinished { operation, files: Vec::new() }),
        None => Ok(()),
    }
}

/// Refuses a worktree with unresolved files.
pub(super) fn refuse_unmerged(entry: &Entry, files: Vec<PathBuf>) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let operation = under_way(&entry.admin).unwrap_or(Operation::Merge);
    Err(Error::Unfinished { operation, files })
}
