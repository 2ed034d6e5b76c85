//! Unfinished operations of an agent in its worktree: a merge, a rebase, and the like.
//!
//! The next commit finishes a resolved merge. Everything else stays as it is, for the agent to finish.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{WorktreeEntry, read_small_text};
use super::{Error, GitClient, GitOperation, obstacle, parse_paths};

/// Returns the operation in progress, from a worktree's admin directory.
pub(super) fn operation_in_progress(admin: &Path) -> Option<GitOperation> {
    let has = |name: &str| fs::symlink_metadata(admin.join(name)).is_ok();
    let sequence = || read_small_text(&admin.join("sequencer/todo")).unwrap_or_default();
    if has("rebase-merge") || has("rebase-apply/rebasing") {
        Some(GitOperation::Rebase)
    } else if has("rebase-apply") {
        Some(GitOperation::Am)
    } else if has("MERGE_HEAD") {
        Some(GitOperation::Merge)
    } else if has("CHERRY_PICK_HEAD") || sequence().starts_with("pick") {
        Some(GitOperation::CherryPick)
    } else if has("REVERT_HEAD") || sequence().starts_with("revert") {
        Some(GitOperation::Revert)
    } else if has("BISECT_START") {
        Some(GitOperation::Bisect)
    } else {
        None
    }
}

impl GitClient<'_> {
    /// Refuses a worktree with an operation in progress, or with unresolved files.
    pub(super) fn refuse_unfinished(&self, entry: &WorktreeEntry) -> Result<(), Error> {
        refuse_unmerged_files(entry, self.unmerged_files(&entry.path)?)?;
        refuse_operation(entry)
    }

    /// Stages everything that is not ignored.
    pub(super) fn stage_everything(&self, worktree: &Path) -> Result<(), Error> {
        // Git gets a minimum of time for this, even if the session has little left.
        obstacle::check_tree(worktree)?;
        self.build_command(&["add", "--all"])
            .with_setting("advice.addEmbeddedRepo=false")
            .in_directory(worktree)
            .run_checked()?;
        Ok(())
    }

    /// Returns the files that the index has in several versions.
    fn unmerged_files(&self, worktree: &Path) -> Result<Vec<PathBuf>, Error> {
        let listed = self
            .build_command(&["diff-files", "-z", "--name-only", "--diff-filter=U"])
            .in_directory(worktree)
            .run_checked()?;
        Ok(parse_paths(listed.split_entries()))
    }
}

/// Refuses a worktree with an operation in progress.
pub(super) fn refuse_operation(entry: &WorktreeEntry) -> Result<(), Error> {
    match operation_in_progress(&entry.admin) {
        Some(operation) => Err(Error::Unfinished { operation, files: Vec::new() }),
        None => Ok(()),
    }
}

/// Refuses a worktree with unresolved files.
pub(super) fn refuse_unmerged_files(entry: &WorktreeEntry, files: Vec<PathBuf>) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let operation = operation_in_progress(&entry.admin).unwrap_or(GitOperation::Merge);
    Err(Error::Unfinished { operation, files })
}
