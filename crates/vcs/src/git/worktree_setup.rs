//! Creates a worktree for a task, finds it again, or repairs it after a crash.
//!
//! ```text
//! our mark ─► branch ─► (git worktree add ─► submodules)     after a crash between any two, the next call continues there
//! ```
//!
//! Invariants:
//! - The admin files of a worktree are removed after its directory (`removal`), so the repository knows every Windlass directory.
//! - A worktree whose creation did not finish is made again: no work happened in it. Any other is kept as it is.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::removal::{remove_directory, remove_worktree_files};
use super::repository::{MAX_SMALL_FILE_BYTES, WorktreeEntry, read_git_pointer};
use super::{BranchName, Error, GitClient, GitCommitId, Worktree};

/// The lock reason that git itself sets while it creates a worktree.
pub(super) const INITIALIZING_REASON: &str = "initializing";

/// A request for a worktree.
#[derive(Debug, Clone, Copy)]
pub struct WorktreeRequest<'w> {
    pub branch: &'w BranchName,
    pub path: &'w Path,
    /// The start of the branch: the base, or the tips of the branches that it is stacked on, which are merged. Ignored for
    /// an existing branch.
    pub start: &'w [GitCommitId],
    pub existing: ExistingBranch,
}

/// The treatment of a branch that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingBranch {
    /// The branch is used if it has our mark.
    IfOurs,
    /// The branch is used: the caller knows that it is ours.
    Take,
}

/// A worktree that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedWorktree {
    pub worktree: Worktree,
    /// The start of the branch, as far as it is known.
    pub start: GitCommitId,
    /// Whether the worktree existed before, with all work in it.
    pub reused: bool,
}

impl GitClient<'_> {
    /// Creates a worktree, or finds it again.
    pub fn open_worktree(&self, wanted: WorktreeRequest<'_>) -> Result<OpenedWorktree, Error> {
        let WorktreeRequest { branch, .. } = wanted;
        self.repository.refuse_reftable()?;
        let path = prepare_path(wanted.path)?;
        let held = self.repository.lock_worktree(&path)?;
        let (tip, mark) = (self.resolve_ref(&branch.full_ref())?, self.resolve_ref(&branch.start_ref())?);
        if tip.is_some() && mark.is_none() && wanted.existing == ExistingBranch::IfOurs {
            return Err(Error::BranchTaken { branch: branch.clone() });
        }
        let making = CreationNote::for_path(self, &path);
        let found = self.find_existing_entry(branch, &path, &making)?;
        let is_new = tip.is_none();
        let start = match (tip, mark) {
            (Some(_), Some(mark)) => mark,
            (Some(tip), None) => {
                self.build_command(&["update-ref"])
                    .with_argument(branch.start_ref())
                    .with_argument(&tip)
                    .run_checked()?;
                tip
            }
            (None, _) => {
                let start = self.merge_starts(wanted.start)?;
                self.create_branch(branch, &start)?;
                start
            }
        };
        let worktree = Worktree { path, branch: branch.clone() };
        if let Some(entry) = found {
            self.repair_worktree(&entry, branch, &held)?;
            return Ok(OpenedWorktree { worktree, start, reused: true });
        }
        let made = self.refuse_sparse_checkout().and_then(|()| self.add_worktree(&worktree.path, branch));
        if made.is_err() {
            self.undo_creation(&worktree, is_new.then_some(&start));
        }
        made.map(|()| OpenedWorktree { worktree, start, reused: false })
    }

    /// Returns the worktree at a path, if it is usable as it is. Removes the traces of a vanished or half-made one.
    fn find_existing_entry(
        &self,
        branch: &BranchName,
        path: &Path,
        making: &CreationNote,
    ) -> Result<Option<WorktreeEntry>, Error> {
        while let Some(entry) = self.repository.worktree_entry(path) {
            if let Some(entry) = repair_entry(entry, making)? {
                return Ok(Some(entry));
            }
        }
        if let Some(entry) = self.repository.worktree_entries().iter().find(|entry| entry.holds_branch(branch)) {
            if let Some(reason) = &entry.locked {
                return Err(Error::WorktreeLocked { path: entry.path.clone(), reason: reason.clone() });
            }
            if fs::symlink_metadata(&entry.path).is_ok() {
                return Err(Error::CheckedOut { branch: branch.clone(), path: entry.path.clone() });
            }
            // The whole project was moved, and the worktree with it.
            let moved =
                read_git_pointer(&path.join(".git")).is_some_and(|back| back.file_name() == entry.admin.file_name());
            if moved {
                link_worktree(&entry.admin, path)?;
                return Ok(Some(WorktreeEntry { path: path.to_owned(), ..entry.clone() }));
            }
            remove_directory(&entry.admin)?;
        }
        if let Some(elsewhere) = self.repository.checkout_path(branch) {
            return Err(Error::CheckedOut { branch: branch.clone(), path: elsewhere });
        }
        making.remove_leftover()?;
        if is_free_path(path)? { Ok(None) } else { Err(Error::Occupied { path: path.to_owned() }) }
    }

    /// Creates our mark first, then the branch: two transactions in one call.
    fn create_branch(&self, branch: &BranchName, start: &GitCommitId) -> Result<(), Error> {
        let steps = format!(
            "start\nupdate {} {start}\ncommit\nstart\ncreate {} {start}\ncommit\n",
            branch.start_ref(),
            branch.full_ref()
        );
        match self.build_command(&["update-ref", "--stdin"]).with_stdin(steps).run_checked() {
            // `windlass` is a branch, so `windlass/x` cannot be one, or the other way round.
            Err(Error::Failed { said, .. }) if said.contains("cannot create") => {
                self.build_command(&["update-ref", "-d"]).with_argument(branch.start_ref()).run_unchecked()?;
                let taken = said.split('\'').filter_map(BranchName::from_full_ref).find(|found| found != branch);
                Err(Error::BranchTaken { branch: taken.unwrap_or_else(|| branch.clone()) })
            }
            made => made.map(|_| ()),
        }
    }

    /// Creates a worktree with all its files.
    fn add_worktree(&self, path: &Path, branch: &BranchName) -> Result<(), Error> {
        let making = CreationNote::for_path(self, path);
        making.write_note()?;
        self.add_empty_worktree(path, &["--"], branch.as_str())?;
        self.build_command(&["reset", "--hard", "--quiet", "--no-recurse-submodules"])
            .in_directory(path)
            .run_checked()?;
        self.check_out_submodules(path)?;
        making.remove_note()
    }

    /// Creates a worktree without files. Only one process does this at a time; adding the files takes longer.
    pub(super) fn add_empty_worktree(&self, path: &Path, options: &[&str], what: &str) -> Result<(), Error> {
        let _held = self.repository.lock_creation()?;
        let call = self.build_command(&["worktree", "add", "--quiet", "--no-checkout"]);
        options
            .iter()
            .fold(call, |call, option| call.with_argument(option))
            .with_argument(path)
            .with_argument(what)
            .run_checked()
            .map(drop)
    }

    /// Undoes a failed creation as far as possible. Ignores errors, because the first one is returned.
    fn undo_creation(&self, worktree: &Worktree, branch_at: Option<&GitCommitId>) {
        self.remove_unfinished(&worktree.path);
        if let Some(start) = branch_at {
            let (full, mark) = (worktree.branch.full_ref(), worktree.branch.start_ref());
            let steps = format!("start\ndelete {full} {start}\ncommit\nstart\ndelete {mark}\ncommit\n");
            let _ = self.build_command(&["update-ref", "--stdin"]).with_stdin(steps).run_unchecked();
        }
    }

    /// Removes a worktree that could not be created, and its note. If that fails, the note stays for the next process.
    pub(super) fn remove_unfinished(&self, path: &Path) {
        let making = CreationNote::for_path(self, path);
        let known = self.repository.worktree_entry(path).filter(|_| making.is_in_progress());
        if known.as_ref().map_or(Ok(()), remove_worktree_files).and_then(|()| making.remove_leftover()).is_ok()
            && making.is_in_progress()
        {
            let _ = making.remove_note();
        }
    }

    /// Merges several start commits into one.
    pub(super) fn merge_starts(&self, starts: &[GitCommitId]) -> Result<GitCommitId, Error> {
        let Some((first, others)) = starts.split_first() else {
            return Err(Error::UnknownCommit { commit: "to start from".to_owned() });
        };
        let known = |commit: &GitCommitId| self.require_commit(commit);
        let mut together = known(first)?;
        for other in others {
            let other = known(other)?;
            if self.contains_commit(&together, &other)? {
                continue;
            }
            if self.contains_commit(&other, &together)? {
                together = other;
                continue;
            }
            let tree = self.merge_trees(&self.repository.root, &together, &other)?.map_err(|files| {
                Error::Conflict { files, between: format!("{} and {}", together.short_id(), other.short_id()) }
            })?;
            let message = format!("Merge {} to start from both\n", other.short_id());
            together = self.commit_tree(&tree, &[&together, &other], message)?;
        }
        Ok(together)
    }
}

/// A note that a worktree is being created. While it exists, no work has happened in the worktree.
pub(super) struct CreationNote {
    note: PathBuf,
    path: PathBuf,
}

impl CreationNote {
    pub fn for_path(git: &GitClient<'_>, path: &Path) -> Self {
        Self { note: git.repository.worktree_file(path, "making"), path: path.to_owned() }
    }

    pub fn write_note(&self) -> Result<(), Error> {
        fs::write(&self.note, self.path.as_os_str().as_bytes()).map_err(Error::io_error("write", &self.note))
    }

    pub fn remove_note(&self) -> Result<(), Error> {
        super::delete_file(&self.note)
    }

    /// Removes a half-made worktree that the repository does not know: a git that is asked to end undoes its creation, and
    /// may be killed meanwhile.
    pub fn remove_leftover(&self) -> Result<(), Error> {
        if self.is_in_progress() { remove_directory(&self.path) } else { Ok(()) }
    }

    fn is_in_progress(&self) -> bool {
        file::read_bounded(&self.note, MAX_SMALL_FILE_BYTES)
            .is_ok_and(|noted| noted == self.path.as_os_str().as_bytes())
    }
}

/// Returns a known worktree, if it is usable. Removes the traces of a vanished or half-made one.
fn repair_entry(mut entry: WorktreeEntry, making: &CreationNote) -> Result<Option<WorktreeEntry>, Error> {
    let is_whole = entry.is_linked_back();
    let is_half_made = match entry.locked.take() {
        Some(reason) if reason != INITIALIZING_REASON => {
            return Err(Error::WorktreeLocked { path: entry.path, reason });
        }
        _ if making.is_in_progress() => true,
        Some(_) if entry.admin.join("index").exists() => {
            super::delete_file(&entry.admin.join("locked"))?;
            false
        }
        Some(_) => is_whole,
        None => false,
    };
    if is_half_made || is_free_path(&entry.path)? {
        return remove_worktree_files(&entry).map(|()| None);
    }
    if !is_whole && (fs::symlink_metadata(entry.path.join(".git")).is_ok() || !entry.path.is_dir()) {
        return Err(Error::Occupied { path: entry.path });
    }
    if !is_whole {
        link_worktree(&entry.admin, &entry.path)?;
    }
    Ok(Some(entry))
}

/// Links a directory and its admin files again.
fn link_worktree(admin: &Path, path: &Path) -> Result<(), Error> {
    let write = |place: PathBuf, before: &[u8], named: &Path| {
        let text = [before, named.as_os_str().as_bytes(), b"\n"].concat();
        fs::write(&place, text).map_err(Error::io_error("write", place))
    };
    write(admin.join("gitdir"), b"", &path.join(".git"))?;
    write(path.join(".git"), b"gitdir: ", admin)
}

/// Returns whether a path is missing, or an empty directory.
pub(super) fn is_free_path(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io_error("look at", path)(error)),
        Ok(found) if !found.is_dir() => Ok(false),
        Ok(_) => Ok(fs::read_dir(path).map_err(Error::io_error("look into", path))?.next().is_none()),
    }
}

/// Returns a path as git writes it: creates its parent, and resolves links in it.
pub(super) fn prepare_path(path: &Path) -> Result<PathBuf, Error> {
    let bad = || Error::Occupied { path: path.to_owned() };
    let (above, name) = path.parent().zip(path.file_name()).ok_or_else(bad)?;
    fs::create_dir_all(above).map_err(Error::io_error("make", above))?;
    Ok(fs::canonicalize(above).map_err(Error::io_error("look into", above))?.join(name))
}
