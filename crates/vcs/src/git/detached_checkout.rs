//! A fresh checkout of one commit, on no branch: for an agent that only reads, and for hooks that judge this commit.
//!
//! Invariants:
//! - A Windlass repository writes the files (`plain_repository`), so that they are those of the commit. The checkout is a
//!   worktree of the person's repository only for the programs that run in it.
//! - No branch moves, whatever code in the checkout has changed there.
//! - Only its user removes a checkout that is in use.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::locks::RepositoryLock;
use super::plain_repository::SavedIndex;
use super::removal::{remove_directory, remove_path, remove_worktree_files};
use super::repository::{MAX_SMALL_FILE_BYTES, WorktreeEntry, WorktreeHead};
use super::worktree_setup::{CreationNote, INITIALIZING_REASON, is_free_path, prepare_path};
use super::{Error, GitClient, GitCommitId};

/// Name prefixes of the directories of detached checkouts. Directories of tasks have other names.
const DIRECTORY_PREFIXES: [&str; 2] = ["review-", "gate-"];

/// The files that link the repository and a worktree.
const ADMIN_FILES: [&str; 3] = ["HEAD", "commondir", "gitdir"];

/// The access that a checkout allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutAccess {
    Read,
    Write,
}

/// A checkout of a commit. While this value lives, no other process removes it.
#[derive(Debug)]
pub struct DetachedCheckout {
    pub path: PathBuf,
    pub commit: GitCommitId,
    fresh: InitialCheckoutState,
    _used: RepositoryLock,
}

/// The state of a checkout when its files were fresh, besides these.
#[derive(Debug)]
struct InitialCheckoutState {
    index: SavedIndex,
    /// The repository's files about the checkout, by name.
    admin: PathBuf,
    admin_files: Vec<(&'static str, Vec<u8>)>,
    /// The file that points to the repository.
    pointer: Vec<u8>,
    has_submodules: bool,
}

impl InitialCheckoutState {
    fn read_from_entry(entry: WorktreeEntry, index: SavedIndex, has_submodules: bool) -> Result<Self, Error> {
        let read =
            |path: PathBuf| file::read_bounded(&path, MAX_SMALL_FILE_BYTES).map_err(Error::io_error("read", path));
        let admin_files = ADMIN_FILES.iter().map(|name| Ok((*name, read(entry.admin.join(name))?)));
        let admin_files = admin_files.collect::<Result<_, Error>>()?;
        let pointer = read(entry.path.join(".git"))?;
        Ok(Self { index, admin: entry.admin, admin_files, pointer, has_submodules })
    }

    /// Links the repository and a checkout again, with this index.
    fn restore_admin_files(&self, checkout: &Path) -> Result<(), Error> {
        let pointer = checkout.join(".git");
        remove_path(&pointer)?;
        remove_directory(&self.admin)?;
        fs::create_dir_all(&self.admin).map_err(Error::io_error("make", &self.admin))?;
        let files = self.admin_files.iter().map(|(name, bytes)| (self.admin.join(name), bytes));
        for (path, bytes) in files.chain([(pointer, &self.pointer)]) {
            fs::write(&path, bytes).map_err(Error::io_error("write", path))?;
        }
        self.index.write_to(&self.admin.join("index"))
    }
}

impl GitClient<'_> {
    /// Checks a commit out at a path, and removes an earlier checkout there first.
    pub fn check_out(
        &self,
        path: &Path,
        commit: &GitCommitId,
        access: CheckoutAccess,
    ) -> Result<DetachedCheckout, Error> {
        let path = prepare_path(path)?;
        let used = self.repository.lock_checkout_use(&path)?;
        let fresh = self.make_checkout(&path, commit, access)?;
        Ok(DetachedCheckout { path, commit: commit.clone(), fresh, _used: used })
    }

    fn make_checkout(
        &self,
        path: &Path,
        commit: &GitCommitId,
        access: CheckoutAccess,
    ) -> Result<InitialCheckoutState, Error> {
        let _held = self.repository.lock_worktree(path)?;
        self.remove_checkout(path)?;
        let making = CreationNote::for_path(self, path);
        making.remove_leftover()?;
        if !is_free_path(path)? {
            return Err(Error::Occupied { path: path.to_owned() });
        }
        let made = self.fill_checkout(path, commit, &making).and_then(|fresh| match access {
            CheckoutAccess::Read => make_read_only(path).map(|()| fresh),
            CheckoutAccess::Write => Ok(fresh),
        });
        if made.is_err() {
            self.remove_unfinished(path);
            let _ = self.remove_checkout(path);
        }
        made
    }

    fn fill_checkout(
        &self,
        path: &Path,
        commit: &GitCommitId,
        making: &CreationNote,
    ) -> Result<InitialCheckoutState, Error> {
        making.write_note()?;
        self.add_empty_worktree(path, &["--detach", "--"], commit.as_str())?;
        let plain = self.plain_repository(path, commit)?;
        let (index, listing) = (plain.write_files(commit, None)?, plain.list_index()?);
        let entry = self.repository.worktree_entry(path).ok_or_else(|| Error::Vanished { path: path.to_owned() })?;
        let fresh = InitialCheckoutState::read_from_entry(entry, index, !listing.gitlinks.is_empty())?;
        fresh.restore_admin_files(path)?;
        self.check_out_submodules(path)?;
        making.remove_note()?;
        Ok(fresh)
    }

    /// Restores the files of a writable checkout to those of its commit, and removes all others, except those that match
    /// the patterns, which have the format of an ignore file. A checkout with submodules is made anew.
    pub fn restore_checkout(&self, checkout: &mut DetachedCheckout, kept: &[String]) -> Result<(), Error> {
        let DetachedCheckout { path, commit, fresh, .. } = checkout;
        let is_simple = !fresh.has_submodules && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        // A checkout that cannot be restored, for example because of a read-only directory, is made anew.
        if !is_simple || self.restore_files(path, commit, fresh, kept).is_err() {
            *fresh = self.make_checkout(path, commit, CheckoutAccess::Write)?;
        }
        Ok(())
    }

    fn restore_files(
        &self,
        path: &Path,
        commit: &GitCommitId,
        fresh: &mut InitialCheckoutState,
        kept: &[String],
    ) -> Result<(), Error> {
        let _held = self.repository.lock_worktree(path)?;
        let plain = self.plain_repository(path, commit)?;
        fresh.index = plain.write_files(commit, Some(&fresh.index))?;
        plain.remove_other_files(kept)?;
        fresh.restore_admin_files(path)
    }

    /// Removes a checkout.
    pub fn remove_detached(&self, checkout: DetachedCheckout) -> Result<(), Error> {
        let _held = self.repository.lock_worktree(&checkout.path)?;
        self.remove_checkout(&checkout.path)
    }

    /// Removes a checkout that a crash left. A checkout in use stays, and a missing one is not an error.
    pub fn sweep_detached(&self, path: &Path) -> Result<(), Error> {
        let path = prepare_path(path)?;
        let Some(_used) = self.repository.try_lock_checkout_use(&path)? else { return Ok(()) };
        let _held = self.repository.lock_worktree(&path)?;
        self.remove_checkout(&path)
    }

    fn remove_checkout(&self, path: &Path) -> Result<(), Error> {
        let is_named = path.file_name().and_then(|name| name.to_str()).is_some_and(is_detached_name);
        let Some(entry) = self.repository.worktree_entry(path) else {
            // The repository does not know a checkout after a kill, or one of an earlier clone of the project.
            return if is_named { remove_directory(path) } else { Ok(()) };
        };
        // Code in the checkout may have made a branch; any other worktree with a branch is a task's work.
        if let WorktreeHead::Branch(_) = entry.read_head()?
            && !is_named
        {
            return Err(Error::Occupied { path: entry.path });
        }
        match &entry.locked {
            Some(reason) if reason != INITIALIZING_REASON && !is_named => {
                Err(Error::WorktreeLocked { path: entry.path, reason: reason.clone() })
            }
            _ => remove_worktree_files(&entry),
        }
    }
}

/// Returns whether a directory has the name of a detached checkout.
fn is_detached_name(name: &str) -> bool {
    DIRECTORY_PREFIXES.iter().any(|start| name.starts_with(start))
}

/// Removes all write permissions. Links are skipped: their targets are not ours.
fn make_read_only(path: &Path) -> Result<(), Error> {
    let found = fs::symlink_metadata(path).map_err(Error::io_error("look at", path))?;
    if found.is_symlink() {
        return Ok(());
    }
    if found.is_dir() {
        for entry in fs::read_dir(path).map_err(Error::io_error("look into", path))?.flatten() {
            make_read_only(&entry.path())?;
        }
    }
    let mut permissions = found.permissions();
    permissions.set_mode(permissions.mode() & !0o222);
    fs::set_permissions(path, permissions).map_err(Error::io_error("make read-only", path))
}
