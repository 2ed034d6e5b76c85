//! How a repository stands, for somebody who looks for trouble. Nothing of it is changed.

use std::path::{Path, PathBuf};

use super::open::INITIALIZING;
use super::repository::Head;
use super::{Branch, Error, Git, discard, locks};

/// Files that a git which was killed leaves behind, and that keep the next one from its work.
const SHARED: [&str; 4] = ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"];
const OWN: [&str; 2] = ["index.lock", "HEAD.lock"];

/// A linked worktree, as the repository knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    pub path: PathBuf,
    /// What it has checked out, if that is a branch.
    pub branch: Option<Branch>,
    /// What keeps it from being worked in.
    pub trouble: Option<Obstacle>,
}

/// Why nobody can work in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Somebody has locked it, and why.
    Locked(String),
    /// Its directory has gone.
    Vanished,
    /// Its directory is something else now.
    Occupied,
}

impl Git<'_> {
    /// Returns which of these files below a directory the index has.
    pub fn tracked(&self, directory: &Path, files: &[&str]) -> Result<Vec<String>, Error> {
        let call = files.iter().fold(self.call(&["ls-files", "-z", "--"]), |call, file| call.word(file));
        let listed = call.within(directory).done()?;
        Ok(listed.entries().into_iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// The linked worktrees, by the repository's files alone.
    pub fn linked(&self) -> Vec<Linked> {
        let entries = self.repository.entries().into_iter();
        let linked = entries.map(|entry| {
            let branch = match entry.head() {
                Ok(Head::Branch(branch)) => Some(branch),
                Ok(Head::Detached(_) | Head::Unknown) | Err(_) => None,
            };
            let trouble = match &entry.locked {
                Some(reason) if reason != INITIALIZING => Some(Obstacle::Locked(reason.clone())),
                _ if std::fs::symlink_metadata(&entry.path).is_err() => {
                    (!discard::is_going(&entry.path)).then_some(Obstacle::Vanished)
                }
                _ if !entry.is_whole() => Some(Obstacle::Occupied),
                _ => None,
            };
            Linked { path: entry.path, branch, trouble }
        });
        linked.collect()
    }

    /// Locks of git's that no process could hold: a crash has left them.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let shared = SHARED.iter().map(|name| self.repository.common.join(name));
        let entries = self.repository.entries();
        let own = entries.iter().flat_map(|entry| OWN.iter().map(|name| entry.admin.join(name)));
        let there = shared.chain(own).filter(|path| std::fs::symlink_metadata(path).is_ok());
        let there = there.chain(locks_below(&self.repository.common.join("refs/heads")));
        there.filter(|path| locks::is_left(path, &self.repository)).collect()
    }

    /// The local branches whose names begin so.
    pub fn branches_under(&self, prefix: &str) -> Result<Vec<Branch>, Error> {
        let call = self.call(&["for-each-ref", "--format=%(refname)"]).word(format!("refs/heads/{prefix}"));
        Ok(call.done()?.line().lines().filter_map(Branch::from_full).collect())
    }
}

/// The locks of branches, which lie beside them.
fn locks_below(directory: &Path) -> Vec<PathBuf> {
    let (mut locks, mut places) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => places.push(path),
                Ok(_) if path.extension().is_some_and(|extension| extension == "lock") => locks.push(path),
                _ => {}
            }
        }
    }
    locks.sort();
    locks
}
