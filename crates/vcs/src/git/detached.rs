//! A fresh checkout of one commit, on no branch: for an agent that only reads, and for hooks that judge exactly this commit.
//!
//! Invariants:
//! - Code that runs in a worktree can write the repository's configuration. What that says of filters, line ends, links and modes
//!   does not count here, so that the files are those of the commit; the person's own configuration does.
//! - No branch moves, whatever code that ran in the checkout has left there.
//! - A checkout that is used is removed by nothing but its user.
//!
//! Not covered: `info/attributes` of the repository, which git has no switch for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::discard::{discard, remove_all};
use super::locks::Held;
use super::open::{INITIALIZING, Making, is_free, settled};
use super::repository::{Entry, Head};
use super::{Commit, Error, Git, Worktree, canonical, paths};

/// How the directories of such checkouts are called, and nothing else beside them.
const NAMES: [&str; 2] = ["review-", "gate-"];

/// What a filter that does nothing is set to.
const FILTER: [(&str, &str); 3] = [("smudge", ""), ("process", ""), ("required", "false")];

/// Settings by which a checkout can come to differ from its commit, as git lists them, and what they are by themselves.
const FILES: [(&str, &str); 10] = [
    ("core.attributesfile", "/dev/null"),
    ("core.autocrlf", "false"),
    ("core.checkstat", "default"),
    ("core.eol", "native"),
    ("core.excludesfile", "/dev/null"),
    ("core.filemode", "true"),
    ("core.ignorestat", "false"),
    ("core.sparsecheckout", "false"),
    ("core.symlinks", "true"),
    ("core.trustctime", "true"),
];

/// The largest index, in bytes: some millions of files.
const INDEX: u64 = 1 << 30;

/// What may be done in a checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutAccess {
    Read,
    Write,
}

/// A checkout of a commit. As long as this value lives, no other process removes it.
#[derive(Debug)]
pub struct DetachedCheckout {
    pub path: PathBuf,
    pub commit: Commit,
    /// The index as git wrote it when the files were fresh.
    index: Vec<u8>,
    _used: Held,
}

impl Git<'_> {
    /// Checks a commit out at a path. What an earlier checkout has left there is removed first.
    pub fn check_out(&self, path: &Path, commit: &Commit, access: CheckoutAccess) -> Result<DetachedCheckout, Error> {
        let path = settled(path)?;
        let used = self.repository.hold_use(&path)?;
        let index = self.make_checkout(&path, commit, access)?;
        Ok(DetachedCheckout { path, commit: commit.clone(), index, _used: used })
    }

    /// Makes a checkout, and returns its index.
    fn make_checkout(&self, path: &Path, commit: &Commit, access: CheckoutAccess) -> Result<Vec<u8>, Error> {
        let _held = self.repository.hold(path)?;
        self.remove_checkout(path)?;
        self.refuse_sparse()?;
        Making::of(self, path).clear()?;
        if !is_free(path)? {
            return Err(Error::Occupied { path: path.to_owned() });
        }
        let settings = self.settings_of_person()?;
        let mut made = self.add(path, &["--detach", "--"], commit.as_str(), &settings);
        if access == CheckoutAccess::Read {
            made = made.and_then(|()| make_readable(path));
        }
        if made.is_err() {
            self.take_back(path);
            let _ = self.remove_checkout(path);
        }
        made?;
        let entry = self.repository.entry(path).ok_or_else(|| Error::Vanished { path: path.to_owned() })?;
        let index = entry.admin.join("index");
        file::read(&index, INDEX).map_err(Error::io("read", index))
    }

    /// Puts the files of a checkout that may be written to back to what they are in its commit, and removes what else is there
    /// but for what git ignores. Where code that ran in it left no whole checkout, or there are submodules, it is made anew.
    pub fn restore_checkout(&self, checkout: &mut DetachedCheckout) -> Result<(), Error> {
        let path = &checkout.path;
        let is_simple = |entry: &Entry| entry.is_whole() && !path.join(".gitmodules").exists();
        let Some(entry) = self.repository.entry(path).filter(is_simple) else {
            checkout.index = self.make_checkout(&checkout.path, &checkout.commit, CheckoutAccess::Write)?;
            return Ok(());
        };
        // Marks in the index and settings of this worktree alone can keep git from seeing a change.
        remove_all(&entry.admin.join("info"))?;
        for name in ["index", "index.lock", "config.worktree"] {
            let path = entry.admin.join(name);
            if fs::symlink_metadata(&path).is_ok() {
                super::remove(&path)?;
            }
        }
        let index = entry.admin.join("index");
        fs::write(&index, &checkout.index).map_err(Error::io("write", index))?;
        let settings = self.settings_of_person()?;
        let call = |words| settings.iter().fold(self.call(words), |call, setting| call.set(setting)).within(path);
        call(&["checkout", "--force", "--detach", "--quiet", "--no-recurse-submodules"])
            .word(&checkout.commit)
            .done()?;
        call(&["clean", "-ffdq"]).done().map(drop)
    }

    /// Removes a checkout.
    pub fn remove_detached(&self, checkout: DetachedCheckout) -> Result<(), Error> {
        let _held = self.repository.hold(&checkout.path)?;
        self.remove_checkout(&checkout.path)
    }

    /// Removes a checkout that a crash has left. One that is used stays, and one that is not there is no trouble.
    pub fn sweep_detached(&self, path: &Path) -> Result<(), Error> {
        let path = settled(path)?;
        let Some(_used) = self.repository.try_hold_use(&path)? else { return Ok(()) };
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

    /// Returns the settings that undo what the repository's own configuration says of how files are written and compared. The
    /// person's configuration counts instead, or else what git does by itself.
    fn settings_of_person(&self) -> Result<Vec<String>, Error> {
        let answer = self.call(&["config", "--list", "--show-scope", "-z"]).done()?;
        let (mut own, mut of_person) = (BTreeSet::new(), BTreeMap::new());
        for pair in answer.entries().chunks_exact(2) {
            let (scope, entry) = (String::from_utf8_lossy(pair[0]), String::from_utf8_lossy(pair[1]));
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            match scope.as_ref() {
                "local" | "worktree" => drop(own.insert(key.to_owned())),
                _ => drop(of_person.insert(key.to_owned(), value.to_owned())),
            }
        }
        let filters = own.iter().filter_map(|key| key.strip_prefix("filter.")?.rsplit_once('.'));
        let filters: BTreeSet<&str> = filters.map(|(name, _)| name).collect();
        let filters =
            filters.iter().flat_map(|name| FILTER.map(|(key, value)| (format!("filter.{name}.{key}"), value)));
        let files = FILES.iter().filter(|(key, _)| own.contains(*key)).map(|(key, value)| ((*key).to_owned(), *value));
        let setting = |(key, by_itself): (String, &str)| {
            let value = of_person.get(&key).map_or(by_itself, String::as_str);
            format!("{key}={value}")
        };
        Ok(filters.chain(files).map(setting).collect())
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
