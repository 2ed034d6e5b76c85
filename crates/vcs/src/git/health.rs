//! The state of a repository, for diagnosis. Nothing here changes it.

use std::path::{Path, PathBuf};

use super::worktree_setup::INITIALIZING_REASON;
use super::{BranchName, Error, GitClient, removal};

/// A linked worktree, as the repository knows it.
#[derive(Debug)]
pub struct LinkedWorktree {
    pub path: PathBuf,
    /// The reason why no work is possible in it.
    pub trouble: Option<Error>,
}

impl GitClient<'_> {
    /// Returns which of these files below a directory the index has.
    pub fn tracked_files(&self, directory: &Path, files: &[&str]) -> Result<Vec<String>, Error> {
        let call =
            files.iter().fold(self.build_command(&["ls-files", "-z", "--"]), |call, file| call.with_argument(file));
        let listed = call.in_directory(directory).run_checked()?;
        Ok(listed.split_entries().into_iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Returns the linked worktrees, from the repository's files alone.
    pub fn linked_worktrees(&self) -> Vec<LinkedWorktree> {
        let entries = self.repository.worktree_entries().into_iter();
        let linked = entries.map(|entry| {
            let path = entry.path.clone();
            let trouble = match &entry.locked {
                Some(reason) if reason != INITIALIZING_REASON => {
                    Some(Error::WorktreeLocked { path, reason: reason.clone() })
                }
                _ if std::fs::symlink_metadata(&path).is_err() => {
                    (!removal::is_removal_pending(&path)).then_some(Error::Vanished { path })
                }
                _ if !entry.is_linked_back() => Some(Error::Occupied { path }),
                _ => None,
            };
            LinkedWorktree { path: entry.path, trouble }
        });
        linked.collect()
    }

    /// Returns the local branches with this prefix.
    pub fn branches_under(&self, prefix: &str) -> Result<Vec<BranchName>, Error> {
        let call =
            self.build_command(&["for-each-ref", "--format=%(refname)"]).with_argument(format!("refs/heads/{prefix}"));
        Ok(call.run_checked()?.trimmed_text().lines().filter_map(BranchName::from_full_ref).collect())
    }
}
