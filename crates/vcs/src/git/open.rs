//! Creates a worktree for a task, finds it again, or repairs it after a crash.
//!
//! ```text
//! our mark ─► branch ─► (git worktree add ─► submodules)     after a crash between any two, the next call continues there
//! ```
//!
//! Invariants:
//! - The admin files of a worktree are removed after its directory (`removal`), so the repository knows every directory of ours.
//! - A worktree whose creation did not finish is made again: no work happened in it. Any other is kept as it is.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::discard::{discard, remove_all};
use super::repository::{Entry, SMALL, named};
use super::{Branch, Commit, Error, Git, Worktree};

/// The lock reason that git itself sets while it creates a worktree.
pub(super) const INITIALIZING: &str = "initializing";

/// A request for a worktree.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'w> {
    pub branch: &'w Branch,
    pub path: &'w Path,
    /// The start of the branch: the base, or the tips of the branches that it is stacked on, which are merged. Ignored for
    /// an existing branch.
    pub start: &'w [Commit],
    pub existing: Existing,
}

/// The treatment of a branch that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// The branch is used if it has our mark.
    IfOurs,
    /// The branch is used: the caller knows that it is ours.
    Take,
}

/// A worktree that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub worktree: Worktree,
    /// The start of the branch, as far as it is known.
    pub start: Commit,
    /// Whether the worktree existed before, with all work in it.
    pub reused: bool,
}

impl Git<'_> {
    /// Creates a worktree, or finds it again.
    pub fn open(&self, wanted: Wanted<'_>) -> Result<Opened, Error> {
        let Wanted { branch, .. } = wanted;
        self.repository.refuse_reftable()?;
        let path = settled(wanted.path)?;
        let held = self.repository.hold(&path)?;
        let (tip, mark) = (self.resolve(&branch.full())?, self.resolve(&branch.mark())?);
        if tip.is_some() && mark.is_none() && wanted.existing == Existing::IfOurs {
            return Err(Error::BranchTaken { branch: branch.clone() });
        }
        let making = Making::of(self, &path);
        let found = self.find_again(branch, &path, &making)?;
        let is_new = tip.is_none();
        let start = match (tip, mark) {
            (Some(_), Some(mark)) => mark,
            (Some(tip), None) => {
                self.call(&["update-ref"]).word(branch.mark()).word(&tip).done()?;
                tip
            }
            (None, _) => {
                let start = self.stacked(wanted.start)?;
                self.make_branch(branch, &start)?;
                start
            }
        };
        let worktree = Worktree { path, branch: branch.clone() };
        if let Some(entry) = found {
            self.put_right(&entry, branch, &held)?;
            return Ok(Opened { worktree, start, reused: true });
        }
        let made = self.refuse_sparse().and_then(|()| self.add(&worktree.path, branch));
        if made.is_err() {
            self.unmake(&worktree, is_new.then_some(&start));
        }
        made.map(|()| Opened { worktree, start, reused: false })
    }

    /// Returns the worktree at a path, if it is usable as it is. Removes the traces of a vanished or half-made one.
    fn find_again(&self, branch: &Branch, path: &Path, making: &Making) -> Result<Option<Entry>, Error> {
        while let Some(entry) = self.repository.entry(path) {
            if let Some(entry) = make_whole(entry, making)? {
                return Ok(Some(entry));
            }
        }
        if let Some(entry) = self.repository.entries().iter().find(|entry| entry.holds(branch)) {
            if let Some(reason) = &entry.locked {
                return Err(Error::WorktreeLocked { path: entry.path.clone(), reason: reason.clone() });
            }
            if fs::symlink_metadata(&entry.path).is_ok() {
                return Err(Error::CheckedOut { branch: branch.clone(), path: entry.path.clone() });
            }
            // The whole project was moved, and the worktree with it.
            let moved = named(&path.join(".git")).is_some_and(|back| back.file_name() == entry.admin.file_name());
            if moved {
                connect(&entry.admin, path)?;
                return Ok(Some(Entry { path: path.to_owned(), ..entry.clone() }));
            }
            remove_all(&entry.admin)?;
        }
        if let Some(elsewhere) = self.repository.checked_out(branch) {
            return Err(Error::CheckedOut { branch: branch.clone(), path: elsewhere });
        }
        making.clear()?;
        if is_free(path)? { Ok(None) } else { Err(Error::Occupied { path: path.to_owned() }) }
    }

    /// Creates our mark first, then the branch: two transactions in one call.
    fn make_branch(&self, branch: &Branch, start: &Commit) -> Result<(), Error> {
        let steps = format!(
            "start\nupdate {} {start}\ncommit\nstart\ncreate {} {start}\ncommit\n",
            branch.mark(),
            branch.full()
        );
        match self.call(&["update-ref", "--stdin"]).stdin(steps).done() {
            // `windlass` is a branch, so `windlass/x` cannot be one, or the other way round.
            Err(Error::Failed { said, .. }) if said.contains("cannot create") => {
                self.call(&["update-ref", "-d"]).word(branch.mark()).answer()?;
                let taken = said.split('\'').filter_map(Branch::from_full).find(|found| found != branch);
                Err(Error::BranchTaken { branch: taken.unwrap_or_else(|| branch.clone()) })
            }
            made => made.map(|_| ()),
        }
    }

    /// Creates a worktree with all its files.
    fn add(&self, path: &Path, branch: &Branch) -> Result<(), Error> {
        let making = Making::of(self, path);
        making.begin()?;
        self.add_empty(path, &["--"], branch.as_str())?;
        self.call(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).within(path).done()?;
        self.submodules(path)?;
        making.end()
    }

    /// Creates a worktree without files. Only one process does this at a time; adding the files takes longer.
    pub(super) fn add_empty(&self, path: &Path, options: &[&str], what: &str) -> Result<(), Error> {
        let _held = self.repository.hold_making()?;
        let call = self.call(&["worktree", "add", "--quiet", "--no-checkout"]);
        options.iter().fold(call, |call, option| call.word(option)).word(path).word(what).done().map(drop)
    }

    /// Undoes a failed creation as far as possible. Ignores errors, because the first one is returned.
    fn unmake(&self, worktree: &Worktree, branch_at: Option<&Commit>) {
        self.take_back(&worktree.path);
        if let Some(start) = branch_at {
            let (full, mark) = (worktree.branch.full(), worktree.branch.mark());
            let steps = format!("start\ndelete {full} {start}\ncommit\nstart\ndelete {mark}\ncommit\n");
            let _ = self.call(&["update-ref", "--stdin"]).stdin(steps).answer();
        }
    }

    /// Removes a worktree that could not be created, and its note. If that fails, the note stays for the next process.
    pub(super) fn take_back(&self, path: &Path) {
        let making = Making::of(self, path);
        let known = self.repository.entry(path).filter(|_| making.is_under_way());
        if known.as_ref().map_or(Ok(()), discard).and_then(|()| making.clear()).is_ok() && making.is_under_way() {
            let _ = making.end();
        }
    }

    /// Merges several start commits into one.
    pub(super) fn stacked(&self, starts: &[Commit]) -> Result<Commit, Error> {
        let Some((first, others)) = starts.split_first() else {
            return Err(Error::UnknownCommit { commit: "to start from".to_owned() });
        };
        let known = |commit: &Commit| self.known_commit(commit);
        let mut together = known(first)?;
        for other in others {
            let other = known(other)?;
            if self.contains(&together, &other)? {
                continue;
            }
            if self.contains(&other, &together)? {
                together = other;
                continue;
            }
            let tree = self.merged_tree(&self.repository.root, &together, &other)?.map_err(|files| {
                Error::Conflict { files, between: format!("{} and {}", together.short(), other.short()) }
            })?;
            let message = format!("Merge {} to start from both\n", other.short());
            together = self.commit_tree(&tree, &[&together, &other], message)?;
        }
        Ok(together)
    }
}

/// A note that a worktree is being created. While it exists, no work has happened in the worktree.
pub(super) struct Making {
    note: PathBuf,
    path: PathBuf,
}

impl Making {
    pub fn of(git: &Git<'_>, path: &Path) -> Self {
        Self { note: git.repository.beside(path, "making"), path: path.to_owned() }
    }

    pub fn begin(&self) -> Result<(), Error> {
        fs::write(&self.note, self.path.as_os_str().as_bytes()).map_err(Error::io("write", &self.note))
    }

    pub fn end(&self) -> Result<(), Error> {
        super::remove(&self.note)
    }

    /// Removes a half-made worktree that the repository does not know: a git that is asked to end undoes its creation, and
    /// may be killed meanwhile.
    pub fn clear(&self) -> Result<(), Error> {
        if self.is_under_way() { remove_all(&self.path) } else { Ok(()) }
    }

    fn is_under_way(&self) -> bool {
        file::read(&self.note, SMALL).is_ok_and(|noted| noted == self.path.as_os_str().as_bytes())
    }
}

/// Returns a known worktree, if it is usable. Removes the traces of a vanished or half-made one.
fn make_whole(mut entry: Entry, making: &Making) -> Result<Option<Entry>, Error> {
    let is_whole = entry.is_whole();
    let is_half_made = match entry.locked.take() {
        Some(reason) if reason != INITIALIZING => return Err(Error::WorktreeLocked { path: entry.path, reason }),
        _ if making.is_under_way() => true,
        Some(_) if entry.admin.join("index").exists() => {
            super::remove(&entry.admin.join("locked"))?;
            false
        }
        Some(_) => is_whole,
        None => false,
    };
    if is_half_made || is_free(&entry.path)? {
        return discard(&entry).map(|()| None);
    }
    if !is_whole && (fs::symlink_metadata(entry.path.join(".git")).is_ok() || !entry.path.is_dir()) {
        return Err(Error::Occupied { path: entry.path });
    }
    if !is_whole {
        connect(&entry.admin, &entry.path)?;
    }
    Ok(Some(entry))
}

/// Links a directory and its admin files again.
fn connect(admin: &Path, path: &Path) -> Result<(), Error> {
    let write = |place: PathBuf, before: &[u8], named: &Path| {
        let text = [before, named.as_os_str().as_bytes(), b"\n"].concat();
        fs::write(&place, text).map_err(Error::io("write", place))
    };
    write(admin.join("gitdir"), b"", &path.join(".git"))?;
    write(path.join(".git"), b"gitdir: ", admin)
}

/// Returns whether a path is missing, or an empty directory.
pub(super) fn is_free(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io("look at", path)(error)),
        Ok(found) if !found.is_dir() => Ok(false),
        Ok(_) => Ok(fs::read_dir(path).map_err(Error::io("look into", path))?.next().is_none()),
    }
}

/// Returns a path as git writes it: creates its parent, and resolves links in it.
pub(super) fn settled(path: &Path) -> Result<PathBuf, Error> {
    let bad = || Error::Occupied { path: path.to_owned() };
    let (above, name) = path.parent().zip(path.file_name()).ok_or_else(bad)?;
    fs::create_dir_all(above).map_err(Error::io("make", above))?;
    Ok(fs::canonicalize(above).map_err(Error::io("look into", above))?.join(name))
}
