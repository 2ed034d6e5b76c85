//! Git, by its own command line: a worktree for each task, commits, rebasing, pushing, merging.
//!
//! ```text
//! GitRepository::discover ─► GitClient::new ─► fetch_base ─► open_worktree ─► (an agent works) ─► commit_all ─► rebase_worktree
//!   by files alone               runs git through its caller (`RunProgram`)      ─► push_branch ─► merge_into_base ─► close_worktree
//! ```
//!
//! Invariants:
//! - Windlass never touches the user's tree, index, HEAD, stash, configuration and branches. A base branch moves only in `merge`.
//! - Rebases and merges are computed without a tree (`git merge-tree`). So neither a conflict nor a crash leaves anything
//!   behind; the change of a worktree is then one step, which is noted before it starts and finished by the next process
//!   after a crash.
//! - A branch is ours if `refs/windlass/start/BRANCH` exists, which is created before it and deleted after it.
//! - Every action in a worktree happens under a lock that no crash leaves behind, after a check that the worktree is still ours.
//!
//! Not here: when any of it happens, and the names of branches and paths.

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
    /// The branch of the work in it.
    pub branch: Branch,
}

/// A file among the worktree's admin files: the commits that its tree and branch are moving from and to.
const MOVING: &str = "windlass-moving";

impl Git<'_> {
    /// Enters a worktree of ours: locks it, checks that it is intact, and repairs what a crash left.
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

    /// Removes locks that a crash of git left, and finishes an interrupted move.
    fn put_right(&self, entry: &Entry, branch: &Branch, held: &Held) -> Result<(), Error> {
        locks::clear(&entry.admin, &entry.path, held)?;
        let note = entry.admin.join(MOVING);
        let Some(text) = repository::text(&note) else { return Ok(()) };
        // An incomplete note means that nothing had moved yet.
        let moving = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
        let moving = moving.and_then(|(from, to)| Commit::new(from).ok().zip(Commit::new(to).ok()));
        let is_at_our_branch = entry.head()? == Head::Branch(branch.clone());
        match (moving, self.resolve(&branch.full())?) {
            (Some((from, to)), Some(tip)) if is_at_our_branch && (tip == from || tip == to) => {
                self.finish_move(entry, &to)
            }
            // The branch has changed since: the note is obsolete.
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

/// Returns a path as git writes it, as far as its parent exists.
fn canonical(path: &Path) -> PathBuf {
    let above = path.parent().and_then(|above| fs::canonicalize(above).ok());
    above.zip(path.file_name()).map_or_else(|| path.to_owned(), |(above, name)| above.join(name))
}

fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::io("remove", path))
}

/// Returns the paths of git's output that zero bytes separate.
fn paths<'b>(entries: impl IntoIterator<Item = &'b [u8]>) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut paths: Vec<_> =
        entries.into_iter().map(|entry| PathBuf::from(std::ffi::OsStr::from_bytes(entry))).collect();
    paths.dedup();
    paths
}
