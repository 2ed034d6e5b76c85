//! Git, by its own command line: a worktree for each task, commits, rebasing, pushing, merging.
//!
//! ```text
//! Repository::find ─► Git::new ─► base ─► open ─► (an agent works) ─► commit_all ─► rebase ─► push ─► merge ─► close
//!   by files alone      runs git through whoever asks (`Run`)
//! ```
//!
//! Invariants:
//! - The user's tree, index, HEAD, stash, configuration and branches are never touched. A base branch moves only in `merge`.
//! - Rebasing and merging are worked out without any tree (`git merge-tree`). So a conflict leaves nothing behind, and neither
//!   does a crash; what then changes a worktree is one step, noted before it is made and finished by whoever comes next.
//! - A branch is ours if `refs/windlass/start/BRANCH` is there, which is made before it and removed after it.
//! - Whatever is done in a worktree is done under a lock that no crash leaves behind, after a look whether it still is ours.
//!
//! Not here: when any of it is done, and what branches and paths are called.

mod ask;
mod base;
mod close;
mod commit;
mod conflict;
mod detached;
mod diff;
mod discard;
mod error;
mod health;
mod known;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod locks;
mod log;
mod merge;
mod names;
mod obstacle;
mod open;
mod plain;
mod push;
mod rebase;
mod reflog;
mod refs;
mod replay;
mod repository;
mod share;
mod standing;
mod submodules;
mod trouble;
mod unfinished;

use std::fs;
use std::path::{Path, PathBuf};

pub use ask::{Git, Run, puts_work_away};
pub use base::Base;
pub use close::{BranchAfter, Closed};
pub use detached::{CheckoutAccess, DetachedCheckout};
pub use diff::{Diff, FileChange, Work};
pub use discard::half_removed;
pub use error::{Error, Holder, Operation, quoted};
pub use health::Linked;
pub use known::KnownFacts;
pub use log::Logged;
pub use merge::{IfCheckedOut, Merged, UncleanTree, Way};
pub use names::{Branch, Commit, RemoteName};
pub use obstacle::{obstacles_in, obstacles_in_common};
pub use open::{Existing, Opened, Wanted};
pub use push::Pushed;
pub use rebase::Rebased;
pub use repository::{Repository, has_git};
pub use share::Shared;
pub use standing::Kept;

use locks::Held;
use repository::{Entry, Head};

/// A worktree of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    /// What is done in it belongs here.
    pub branch: Branch,
}

/// In what the repository keeps about a worktree: the commits that its tree and branch are being moved from and to.
const MOVING: &str = "windlass-moving";

impl Git<'_> {
    /// Goes into a worktree of ours: nobody else of us is in it, it is whole, and what a crash left is put right.
    fn enter(&self, worktree: &Worktree) -> Result<(Held, Entry), Error> {
        let path = canonical(&worktree.path);
        let held = self.repository.hold(&path)?;
        let entry = self.repository.entry(&path).ok_or_else(|| Error::Vanished { path: path.clone() })?;
        if let Some(reason) = entry.locked {
            return Err(Error::WorktreeLocked { path, reason });
        }
        if fs::symlink_metadata(&path).is_err() {
            return Err(Error::Vanished { path });
        }
        if !entry.is_whole() {
            return Err(Error::Occupied { path });
        }
        self.put_right(&entry, &worktree.branch, &held)?;
        Ok((held, entry))
    }

    /// Clears away what a crash has left of git's locks, and finishes what it interrupted.
    fn put_right(&self, entry: &Entry, branch: &Branch, held: &Held) -> Result<(), Error> {
        locks::clear(&entry.admin, &entry.path, held)?;
        let note = entry.admin.join(MOVING);
        let Some(text) = repository::text(&note) else { return Ok(()) };
        // One that is not whole was being written: nothing had been moved yet.
        let moving = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
        let moving = moving.and_then(|(from, to)| Commit::new(from).ok().zip(Commit::new(to).ok()));
        let is_at_our_branch = entry.head()? == Head::Branch(branch.clone());
        match (moving, self.resolve(&branch.full())?) {
            (Some((from, to)), Some(tip)) if is_at_our_branch && (tip == from || tip == to) => {
                self.finish_move(entry, &to)
            }
            // Somebody has gone on from there.
            _ => remove(&note),
        }
    }

    /// Moves a clean worktree and its branch from one commit to another.
    fn move_to(&self, entry: &Entry, from: &Commit, to: &Commit) -> Result<(), Error> {
        let note = entry.admin.join(MOVING);
        fs::write(&note, format!("{from} {to}\n")).map_err(Error::io("write", &note))?;
        self.finish_move(entry, to)
    }

    fn finish_move(&self, entry: &Entry, to: &Commit) -> Result<(), Error> {
        self.call(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).word(to).within(&entry.path).done()?;
        self.submodules(&entry.path)?;
        remove(&entry.admin.join(MOVING))
    }
}

/// A path as git writes it down, as far as what is above it is there.
fn canonical(path: &Path) -> PathBuf {
    let above = path.parent().and_then(|above| fs::canonicalize(above).ok());
    above.zip(path.file_name()).map_or_else(|| path.to_owned(), |(above, name)| above.join(name))
}

fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::io("remove", path))
}

/// Paths as git names them, between zero bytes.
fn paths<'b>(entries: impl IntoIterator<Item = &'b [u8]>) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut paths: Vec<_> =
        entries.into_iter().map(|entry| PathBuf::from(std::ffi::OsStr::from_bytes(entry))).collect();
    paths.dedup();
    paths
}
