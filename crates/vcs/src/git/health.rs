//! The state of a repository, for diagnosis. Nothing here changes it.

use std::path::{Path, PathBuf};

use super::open::INITIALIZING;
use super::{Branch, Error, Git, discard};

/// A linked worktree, as the repository knows it.
#[derive(Debug)]
pub struct Linked {
    pub path: PathBuf,
    /// The reason why no work is possible in it.
    pub trouble: Option<Error>,
}

impl Git<'_> {
    /// Returns which of these files below a directory the index has.
    pub fn tracked(&self, directory: &Path, files: &[&str]) -> Result<Vec<String>, Error> {
        let call = files.iter().fold(self.call(&["ls-files", "-z", "--"]), |call, file| call.word(file));
        let listed = call.within(directory).done()?;
        Ok(listed.entries().into_iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Returns the linked worktrees, from the repository's files alone.
    pub fn linked(&self) -> Vec<Linked> {
        let entries = self.repository.entries().into_iter();
        let linked = entries.map(|entry| {
            let path = entry.path.clone();
            let trouble = match &entry.locked {
                Some(reason) if reason != INITIALIZING => Some(Error::WorktreeLocked { path, reason: reason.clone() }),
                _ if std::fs::symlink_metadata(&path).is_err() => {
                    (!discard::is_going(&path)).then_some(Error::Vanished { path })
                }
                _ if !entry.is_whole() => Some(Error::Occupied { path }),
                _ => None,
            };
            Linked { path: entry.path, trouble }
        });
        linked.collect()
    }

    /// Returns the local branches with this prefix.
    pub fn branches_under(&self, prefix: &str) -> Result<Vec<Branch>, Error> {
        let call = self.call(&["for-each-ref", "--format=%(refname)"]).word(format!("refs/heads/{prefix}"));
        Ok(call.done()?.line().lines().filter_map(Branch::from_full).collect())
    }
}
