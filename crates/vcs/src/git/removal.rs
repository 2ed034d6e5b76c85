//! Removes a worktree. A kill in the middle leaves nothing that looks like a person's work.
//!
//! ```text
//! t7-fix ─ renamed ─► .going-t7-fix ─► its admin files are removed ─► .going-t7-fix is removed
//! ```
//!
//! Invariant: under its own name a worktree is complete or absent. Every process that finds the other name removes it.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::repository::WorktreeEntry;
use super::{Error, GitClient, canonical_path};

const REMOVAL_PREFIX: &str = ".going-";

/// Removes a worktree with its admin files.
pub(super) fn remove_worktree_files(entry: &WorktreeEntry) -> Result<(), Error> {
    let Some(going) = removal_path(&entry.path) else { return Err(Error::Occupied { path: entry.path.clone() }) };
    remove_directory(&going)?;
    match fs::rename(&entry.path, &going) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        renamed => renamed.map_err(Error::io_error("remove", &entry.path))?,
    }
    remove_directory(&entry.admin)?;
    remove_directory(&going)
}

/// Returns the name of a worktree during its removal.
fn removal_path(path: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(REMOVAL_PREFIX);
    name.push(path.file_name()?);
    Some(path.with_file_name(name))
}

/// Returns whether a killed process left the removal unfinished.
pub(super) fn is_removal_pending(path: &Path) -> bool {
    removal_path(path).is_some_and(|going| fs::symlink_metadata(going).is_ok())
}

/// Returns the name of the worktree whose removal a killed process left.
pub fn strip_removal_prefix(name: &str) -> Option<&str> {
    name.strip_prefix(REMOVAL_PREFIX)
}

impl GitClient<'_> {
    /// Finishes the removal of a worktree after a kill.
    pub fn finish_removal(&self, path: &Path) -> Result<(), Error> {
        let path = &canonical_path(path);
        let _held = self.repository.lock_worktree(path)?;
        // Another worktree may exist there by now.
        let is_gone = fs::symlink_metadata(path).is_err();
        if let Some(entry) = self.repository.worktree_entry(path).filter(|entry| is_gone && entry.locked.is_none()) {
            return remove_worktree_files(&entry);
        }
        removal_path(path).map_or(Ok(()), |going| remove_directory(&going))
    }
}

/// Removes a file or a directory. A missing one is not an error.
pub(super) fn remove_path(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => super::delete_file(path),
        _ => remove_directory(path),
    }
}

pub(super) fn remove_directory(directory: &Path) -> Result<(), Error> {
    make_writable(directory)?;
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io_error("remove", directory)),
    }
}

/// Makes read-only directories writable, so that they can be removed. Does not follow links.
fn make_writable(path: &Path) -> Result<(), Error> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(Error::io_error("look at", path))?,
    };
    if !found.is_dir() {
        return Ok(());
    }
    let mut permissions = found.permissions();
    if permissions.mode() & 0o700 != 0o700 {
        permissions.set_mode(permissions.mode() | 0o700);
        fs::set_permissions(path, permissions).map_err(Error::io_error("make writable", path))?;
    }
    for entry in fs::read_dir(path).map_err(Error::io_error("look into", path))?.flatten() {
        make_writable(&entry.path())?;
    }
    Ok(())
}
