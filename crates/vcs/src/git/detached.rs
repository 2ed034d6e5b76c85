//! A fresh checkout of one commit, on no branch: for an agent that only reads, and for hooks that judge exactly this commit.
//!
//! Invariant: filters that the repository's own configuration defines are not applied. Code that runs in a worktree can write
//! that configuration, so that the files would not be those of the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::discard::discard;
use super::open::{INITIALIZING, Making, is_free, settled};
use super::repository::Head;
use super::{Commit, Error, Git, Worktree, canonical, paths};

/// How the directories of such checkouts are called, and nothing else beside them.
const NAMES: [&str; 2] = ["review-", "gate-"];

/// What may be done in a checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

impl Git<'_> {
    /// Checks a commit out at a path. What an earlier checkout has left there is removed first.
    pub fn check_out(&self, path: &Path, commit: &Commit, access: Access) -> Result<PathBuf, Error> {
        let path = settled(path)?;
        let _held = self.repository.hold(&path)?;
        self.remove_checkout(&path)?;
        self.refuse_sparse()?;
        Making::of(self, &path).clear()?;
        if !is_free(&path)? {
            return Err(Error::Occupied { path });
        }
        let without_filters = self.without_own_filters()?;
        let mut made = self.add(&path, &["--detach", "--"], commit.as_str(), &without_filters);
        if access == Access::Read {
            made = made.and_then(|()| make_readable(&path));
        }
        if made.is_err() {
            self.take_back(&path);
            let _ = self.remove_checkout(&path);
        }
        made.map(|()| path)
    }

    /// Puts the files of a commit in such a checkout back to what they are in the commit. Other files stay.
    pub fn restore_checkout(&self, path: &Path, commit: &Commit) -> Result<(), Error> {
        let call = self.call(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).word(commit);
        self.without_own_filters()?.iter().fold(call, |call, setting| call.set(setting)).within(path).done().map(drop)
    }

    /// Removes such a checkout. One that is not there is no trouble.
    pub fn remove_detached(&self, path: &Path) -> Result<(), Error> {
        let path = settled(path)?;
        let _held = self.repository.hold(&path)?;
        self.remove_checkout(&path)
    }

    fn remove_checkout(&self, path: &Path) -> Result<(), Error> {
        let Some(entry) = self.repository.entry(path) else { return Ok(()) };
        // Code that ran in it may have made a branch there; any other worktree with a branch is a task's work.
        let is_named = path.file_name().and_then(|name| name.to_str()).is_some_and(is_detached_name);
        if let Head::Branch(_) = entry.head()?
            && !is_named
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

    /// Returns the settings under which a filter of the repository's own configuration does nothing. One that the person's
    /// configuration defines too is theirs.
    fn without_own_filters(&self) -> Result<Vec<String>, Error> {
        let answer = self.call(&["config", "--list", "--show-scope", "-z"]).done()?;
        let (mut own, mut of_person) = (BTreeSet::new(), BTreeMap::new());
        for pair in answer.entries().chunks_exact(2) {
            let (scope, entry) = (String::from_utf8_lossy(pair[0]), String::from_utf8_lossy(pair[1]));
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, ""));
            let Some((name, _)) = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')) else { continue };
            match scope.as_ref() {
                "local" | "worktree" => drop(own.insert(name.to_owned())),
                _ => drop(of_person.insert(key.to_owned(), value.to_owned())),
            }
        }
        let setting = |name: &String, (key, nothing): (&str, &str)| {
            let key = format!("filter.{name}.{key}");
            let value = of_person.get(&key).map_or(nothing, String::as_str);
            format!("{key}={value}")
        };
        let nothing = [("smudge", ""), ("process", ""), ("required", "false")];
        Ok(own.iter().flat_map(|name| nothing.map(|pair| setting(name, pair))).collect())
    }

    /// Returns what git does not know of in a worktree, ignored files too. A directory without a known file is one entry.
    pub fn untracked(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, Error> {
        let call = self.call(&["ls-files", "--others", "--directory", "--no-empty-directory", "-z"]);
        let answer = call.within(&canonical(&worktree.path)).done()?;
        Ok(paths(answer.entries()).into_iter().map(|path| path.components().collect()).collect())
    }
}

/// Whether a directory among the worktrees is such a checkout, by its name.
pub fn is_detached_name(name: &str) -> bool {
    NAMES.iter().any(|start| name.starts_with(start))
}

/// Takes the right to write from everyone. Links are left alone: what they lead to is not ours.
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
