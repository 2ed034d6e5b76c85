//! What an agent has begun in its worktree and not ended: a merge, a rebase, and the like.
//!
//! A merge that is resolved is finished by the commit that follows. Everything else stays as it is, for the agent to finish.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{Entry, text};
use super::{Error, Git, Operation, obstacle, paths};

/// What is under way where this is kept.
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
    /// Refuses a worktree in which something is under way, or has to be resolved.
    pub(super) fn refuse_unfinished(&self, entry: &Entry) -> Result<(), Error> {
        refuse_unmerged(entry, self.unmerged(&entry.path)?)?;
        refuse_under_way(entry)
    }

    /// Everything that is there and not ignored, into the index.
    pub(super) fn stage(&self, worktree: &Path) -> Result<(), Error> {
        // Git gets some time for this, however little the session has left.
        obstacle::find(worktree)?;
        self.call(&["add", "--all"]).set("advice.addEmbeddedRepo=false").within(worktree).done()?;
        Ok(())
    }

    /// Files that the index has in several versions.
    fn unmerged(&self, worktree: &Path) -> Result<Vec<PathBuf>, Error> {
        let listed = self.call(&["diff-files", "-z", "--name-only", "--diff-filter=U"]).within(worktree).done()?;
        Ok(paths(listed.entries()))
    }
}

/// Refuses a worktree in which something is under way.
pub(super) fn refuse_under_way(entry: &Entry) -> Result<(), Error> {
    match under_way(&entry.admin) {
        Some(operation) => Err(Error::Unfinished { operation, files: Vec::new() }),
        None => Ok(()),
    }
}

/// Refuses a worktree with files that have to be resolved first.
pub(super) fn refuse_unmerged(entry: &Entry, files: Vec<PathBuf>) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let operation = under_way(&entry.admin).unwrap_or(Operation::Merge);
    Err(Error::Unfinished { operation, files })
}
