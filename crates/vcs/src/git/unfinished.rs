//! What an agent has begun in its worktree and not ended: a merge, a rebase, and the like.
//!
//! Where everything is resolved it is finished. Otherwise it stays as it is, for the agent to finish.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{Entry, text};
use super::{Error, Git, Operation, obstacle, paths};

/// How often a rebase may stop on its way (`edit`, `break`) and be sent on.
const STOPS: usize = 100;

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

    /// Finishes what is under way, if that needs no decision. A merge is finished by the commit that follows.
    pub(super) fn finish(&self, entry: &Entry) -> Result<(), Error> {
        for _ in 0..STOPS {
            let Some(operation) = under_way(&entry.admin) else { return Ok(()) };
            refuse_unmerged(entry, self.unmerged(&entry.path)?)?;
            let unfinished = || Error::Unfinished { operation, files: Vec::new() };
            let command = match operation {
                Operation::Merge => return Ok(()),
                Operation::Rebase if !runs_programs(&entry.admin) => "rebase",
                Operation::CherryPick => "cherry-pick",
                Operation::Revert => "revert",
                Operation::Rebase | Operation::Am | Operation::Bisect => return Err(unfinished()),
            };
            self.stage(&entry.path)?;
            let go_on = |how| self.call(&[command, how]).within(&entry.path).signed();
            // What has become empty has to be left out by name.
            if go_on("--continue")?.answer()?.code != 0
                && self.unmerged(&entry.path)?.is_empty()
                && under_way(&entry.admin).is_some()
                && self.is_clean(&entry.path)?
            {
                go_on("--skip")?.answer()?;
            }
        }
        self.refuse_unfinished(entry)
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

    fn is_clean(&self, worktree: &Path) -> Result<bool, Error> {
        Ok(self.uncommitted(worktree, "no")?.is_empty())
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

/// Whether a rebase would run something of its own on its way.
fn runs_programs(admin: &Path) -> bool {
    let todo = text(&admin.join("rebase-merge/git-rebase-todo")).unwrap_or_default();
    todo.lines().any(|line| matches!(line.split_whitespace().next(), Some("exec" | "x")))
}
