//! A clean checkout of a commit for somebody who only reads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::discard::discard;
use super::open::{INITIALIZING, Making, is_free, settled};
use super::repository::Head;
use super::{Commit, Error, Git};

/// How checkouts for readers are called, and nothing else beside them.
const REVIEW: &[u8] = b"review-";

impl Git<'_> {
    /// Checks a commit out at a path, detached and read-only. What an earlier reader has left there is removed first.
    pub fn review(&self, path: &Path, commit: &Commit) -> Result<PathBuf, Error> {
        let path = settled(path)?;
        let _held = self.repository.hold(&path)?;
        self.remove_review(&path)?;
        self.refuse_sparse()?;
        Making::of(self, &path).clear()?;
        if !is_free(&path)? {
            return Err(Error::Occupied { path });
        }
        let made = self.add(&path, &["--detach", "--"], commit.as_str()).and_then(|()| make_readable(&path));
        if made.is_err() {
            self.take_back(&path);
            let _ = self.remove_review(&path);
        }
        made.map(|()| path)
    }

    /// Removes such a checkout. One that is not there is no trouble.
    pub fn close_review(&self, path: &Path) -> Result<(), Error> {
        let path = settled(path)?;
        let _held = self.repository.hold(&path)?;
        self.remove_review(&path)
    }

    fn remove_review(&self, path: &Path) -> Result<(), Error> {
        let Some(entry) = self.repository.entry(path) else { return Ok(()) };
        // A reader may have made a branch in its checkout; any other worktree with a branch is somebody's work.
        let ours = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(REVIEW));
        if let Head::Branch(_) = entry.head()?
            && !ours
        {
            return Err(Error::Occupied { path: entry.path });
        }
        match &entry.locked {
            Some(reason) if reason != INITIALIZING => {
                Err(Error::WorktreeLocked { path: entry.path, reason: reason.clone() })
            }
            _ => discard(&entry),
        }
    }
}

/// Takes the right to write from everybody. Links are left alone: what they lead to is not ours.
fn make_readable(path: &Path) -> Result<(), Error> {
    let found = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
    if found.is_symlink() {
        return Ok(());
    }
    if found.is_dir() {
        for entry in fs::read_dir(path).map_err(Error::io("look into", path))?.flatten() {
            make_readable(&entry.path())?;
        }
    }
    let mut permissions = found.permissions();
    permissions.set_mode(permissions.mode() & !0o222);
    fs::set_permissions(path, permissions).map_err(Error::io("make read-only", path))
}
