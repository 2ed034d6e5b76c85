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
//! - A branch belongs to Windlass if `refs/windlass/start/BRANCH` exists, which is created before it and deleted after it.
//! - Every action in a worktree happens under a lock that no crash leaves behind, after a check that the worktree is still ours.
//!
//! Not here: when any of it happens, and the names of branches and paths.

mod base;
mod baseline;
mod command;
mod commit;
mod conflict;
mod detached_checkout;
mod diff;
mod error;
mod facts;
mod health;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod locks;
mod log;
mod merge;
mod names;
mod obstacle;
mod operation;
mod plain_repository;
mod push;
mod rebase;
mod reflog;
mod refs;
mod remote_branch;
mod removal;
mod replay;
mod repository;
mod stderr;
mod submodules;
mod worktree_setup;
mod worktree_teardown;

use std::fs;
use std::path::{Path, PathBuf};

pub use base::BaseBranch;
pub use baseline::BaselineFile;
pub use command::{GitClient, RunProgram, modifies_repository};
pub use detached_checkout::{CheckoutAccess, DetachedCheckout};
pub use diff::{BranchWork, DiffText, FileChange};
pub use error::{Error, GitOperation, LockHolder, quote_path};
pub use facts::KnownFacts;
pub use health::LinkedWorktree;
pub use log::LoggedCommit;
pub use merge::{IfCheckedOut, MergeOutcome, MergePlan, UncleanTree};
pub use names::{BranchName, GitCommitId, RemoteName};
pub use obstacle::{find_common_obstacles, find_directory_obstacles};
pub use push::PushOutcome;
pub use rebase::BranchRebaseOutcome;
pub use remote_branch::RemoteBranch;
pub use removal::strip_removal_prefix;
pub use repository::{GitRepository, has_git_entry};
pub use worktree_setup::{ExistingBranch, OpenedWorktree, WorktreeRequest};
pub use worktree_teardown::{BranchDisposal, WorktreeCloseOutcome};

use locks::RepositoryLock;
use repository::{WorktreeEntry, WorktreeHead};

/// A Windlass worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    /// The branch of the work in it.
    pub branch: BranchName,
}

/// A file among the worktree's admin files: the commits that its tree and branch are moving from and to.
const MOVE_NOTE: &str = "windlass-moving";

impl GitClient<'_> {
    /// Enters a Windlass worktree: locks it, checks that it is intact, and repairs what a crash left.
    fn enter_worktree(&self, worktree: &Worktree) -> Result<(RepositoryLock, WorktreeEntry), Error> {
        let path = canonical_path(&worktree.path);
        let held = self.repository.lock_worktree(&path)?;
        let entry = self.repository.worktree_entry(&path).ok_or_else(|| Error::Vanished { path: path.clone() })?;
        if let Some(reason) = entry.locked {
            return Err(Error::WorktreeLocked { path, reason });
        }
        if fs::symlink_metadata(&path).is_err() {
            return Err(Error::Vanished { path });
        }
        if !entry.is_linked_back() {
            return Err(Error::Occupied { path });
        }
        self.repair_worktree(&entry, &worktree.branch, &held)?;
        Ok((held, entry))
    }

    /// Removes locks that a crash of git left, and finishes an interrupted move.
    fn repair_worktree(&self, entry: &WorktreeEntry, branch: &BranchName, held: &RepositoryLock) -> Result<(), Error> {
        locks::clear_worktree_locks(&entry.admin, &entry.path, held)?;
        let note = entry.admin.join(MOVE_NOTE);
        let Some(text) = repository::read_small_text(&note) else { return Ok(()) };
        // An incomplete note means that nothing had moved yet.
        let moving = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
        let moving = moving.and_then(|(from, to)| GitCommitId::new(from).ok().zip(GitCommitId::new(to).ok()));
        let is_at_our_branch = entry.read_head()? == WorktreeHead::Branch(branch.clone());
        match (moving, self.resolve_ref(&branch.full_ref())?) {
            (Some((from, to)), Some(tip)) if is_at_our_branch && (tip == from || tip == to) => {
                self.finish_move(entry, &to)
            }
            // The branch has changed since: the note is obsolete.
            _ => delete_file(&note),
        }
    }

    /// Moves a clean worktree and its branch from one commit to another.
    fn move_worktree(&self, entry: &WorktreeEntry, from: &GitCommitId, to: &GitCommitId) -> Result<(), Error> {
        let note = entry.admin.join(MOVE_NOTE);
        fs::write(&note, format!("{from} {to}\n")).map_err(Error::io_error("write", &note))?;
        self.finish_move(entry, to)
    }

    fn finish_move(&self, entry: &WorktreeEntry, to: &GitCommitId) -> Result<(), Error> {
        self.build_command(&["reset", "--hard", "--quiet", "--no-recurse-submodules"])
            .with_argument(to)
            .in_directory(&entry.path)
            .run_checked()?;
        self.check_out_submodules(&entry.path)?;
        delete_file(&entry.admin.join(MOVE_NOTE))
    }
}

/// Returns a path as git writes it, as far as its parent exists.
fn canonical_path(path: &Path) -> PathBuf {
    let above = path.parent().and_then(|above| fs::canonicalize(above).ok());
    above.zip(path.file_name()).map_or_else(|| path.to_owned(), |(above, name)| above.join(name))
}

fn delete_file(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::io_error("remove", path))
}

/// Returns the paths of git's output that zero bytes separate.
fn parse_paths<'b>(entries: impl IntoIterator<Item = &'b [u8]>) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut paths: Vec<_> =
        entries.into_iter().map(|entry| PathBuf::from(std::ffi::OsStr::from_bytes(entry))).collect();
    paths.dedup();
    paths
}
