//! Finds a repository and its linked worktrees, from files alone: no program is started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::{BranchName, Error, GitCommitId};

/// The largest small file of git's that is read.
pub(super) const MAX_SMALL_FILE_BYTES: u64 = 64 * 1024;

/// The location of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRepository {
    /// The main worktree; of a bare repository the linked one in which it was found.
    pub root: PathBuf,
    /// The directory that all worktrees share.
    pub common: PathBuf,
}

/// A linked worktree, as the repository knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorktreeEntry {
    /// Its admin directory: `.git/worktrees/NAME`.
    pub admin: PathBuf,
    /// Its present or last location.
    pub path: PathBuf,
    /// The reason of its lock.
    pub locked: Option<String>,
}

/// The checked-out branch or commit of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorktreeHead {
    Branch(BranchName),
    Detached(GitCommitId),
    /// The file holds neither.
    Unknown,
}

impl GitRepository {
    /// Finds the repository that contains a directory.
    pub fn discover(directory: &Path) -> Result<Option<Self>, Error> {
        let directory = fs::canonicalize(directory).map_err(Error::io_error("look into", directory))?;
        for above in directory.ancestors() {
            let git = above.join(".git");
            let Ok(found) = fs::metadata(&git) else {
                if is_git_directory(above) {
                    return Err(Error::Bare { path: above.to_owned() });
                }
                continue;
            };
            if found.is_dir() {
                if is_git_directory(&git) {
                    return Ok(Some(Self { root: above.to_owned(), common: git }));
                }
                continue;
            }
            let broken = || Error::NotARepository { path: above.to_owned() };
            let admin = read_git_pointer(&git).and_then(|admin| fs::canonicalize(admin).ok()).ok_or_else(broken)?;
            return Self::from_admin_directory(above, &admin).map(Some).ok_or_else(broken);
        }
        Ok(None)
    }

    /// Returns the repository of a worktree whose `.git` is a file.
    fn from_admin_directory(worktree: &Path, admin: &Path) -> Option<Self> {
        let Some(common) = read_path_line(&admin.join("commondir")) else {
            // A submodule, or a repository with a separate git directory.
            return is_git_directory(admin).then(|| Self { root: worktree.to_owned(), common: admin.to_owned() });
        };
        let common = fs::canonicalize(admin.join(common)).ok()?;
        let main = common.parent().filter(|_| common.file_name() == Some(OsStr::new(".git")));
        Some(Self { root: main.unwrap_or(worktree).to_owned(), common })
    }

    /// Refuses a reftable repository: it has no files that show what is checked out.
    pub(super) fn refuse_reftable(&self) -> Result<(), Error> {
        let is_one = self.common.join("reftable").exists();
        if is_one { Err(Error::Reftable { path: self.root.clone() }) } else { Ok(()) }
    }

    fn is_bare_repository(&self) -> bool {
        let config = read_small_text(&self.common.join("config")).unwrap_or_default();
        config.lines().any(|line| line.split_whitespace().eq(["bare", "=", "true"]))
    }

    /// Returns all linked worktrees, including vanished ones.
    pub(super) fn worktree_entries(&self) -> Vec<WorktreeEntry> {
        let Ok(found) = fs::read_dir(self.common.join("worktrees")) else { return Vec::new() };
        let mut entries: Vec<_> = found.flatten().filter_map(|entry| WorktreeEntry::read_entry(entry.path())).collect();
        entries.sort_by(|one, other| one.admin.cmp(&other.admin));
        entries
    }

    /// Returns the linked worktree at a path.
    pub(super) fn worktree_entry(&self, path: &Path) -> Option<WorktreeEntry> {
        self.worktree_entries().into_iter().find(|entry| entry.path == path)
    }

    /// Returns the worktree that has a branch checked out, or is rebasing it.
    pub(super) fn checkout_path(&self, branch: &BranchName) -> Option<PathBuf> {
        // No tree has the HEAD of a bare repository checked out.
        let main = (!self.is_bare_repository()).then(|| (self.root.clone(), self.common.clone()));
        let linked = self.worktree_entries().into_iter().map(|entry| (entry.path, entry.admin));
        let mut all = main.into_iter().chain(linked);
        all.find(|(_, admin)| holds(admin, branch)).map(|(path, _)| path)
    }
}

impl WorktreeEntry {
    fn read_entry(admin: PathBuf) -> Option<Self> {
        let git = admin.join(read_path_line(&admin.join("gitdir"))?);
        let locked = fs::symlink_metadata(admin.join("locked")).is_ok();
        let reason = || read_small_text(&admin.join("locked")).unwrap_or_default().trim().escape_debug().to_string();
        Some(Self { locked: locked.then(reason), path: git.parent()?.to_owned(), admin })
    }

    /// Returns whether the directory still points back to this entry.
    pub fn is_linked_back(&self) -> bool {
        let back = read_git_pointer(&self.path.join(".git")).and_then(|back| fs::canonicalize(back).ok());
        back.is_some() && back == fs::canonicalize(&self.admin).ok()
    }

    pub fn holds_branch(&self, branch: &BranchName) -> bool {
        holds(&self.admin, branch)
    }

    /// Returns what is checked out. An unreadable file is an error, because it tells nothing about the work.
    pub fn read_head(&self) -> Result<WorktreeHead, Error> {
        head(&self.admin)
    }
}

/// Returns whether a directory holds a `.git` other than an empty directory, which git skips.
pub fn has_git_entry(directory: &Path) -> bool {
    let git = directory.join(".git");
    match fs::symlink_metadata(&git) {
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        Ok(found) if found.is_dir() => fs::read_dir(&git).map_or(true, |mut entries| entries.next().is_some()),
        Ok(_) => true,
    }
}

/// Returns what is checked out, from a worktree's admin directory.
pub(super) fn head(admin: &Path) -> Result<WorktreeHead, Error> {
    let file = admin.join("HEAD");
    let bytes = file::read_bounded(&file, MAX_SMALL_FILE_BYTES).map_err(Error::io_error("read", &file))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match text.trim_end().strip_prefix("ref: ") {
        Some(full) => BranchName::from_full_ref(full.trim()).map_or(WorktreeHead::Unknown, WorktreeHead::Branch),
        None => GitCommitId::new(text.trim_end()).map_or(WorktreeHead::Unknown, WorktreeHead::Detached),
    })
}

fn holds(admin: &Path, branch: &BranchName) -> bool {
    let rebased = ["rebase-merge/head-name", "rebase-apply/head-name"].map(|name| read_small_text(&admin.join(name)));
    head(admin).is_ok_and(|head| head == WorktreeHead::Branch(branch.clone()))
        || rebased.into_iter().flatten().any(|name| name.trim_end() == branch.full_ref())
}

fn is_git_directory(path: &Path) -> bool {
    path.join("objects").is_dir() && path.join("refs").is_dir() && fs::symlink_metadata(path.join("HEAD")).is_ok()
}

/// Returns the target of a `.git` file.
pub(super) fn read_git_pointer(git: &Path) -> Option<PathBuf> {
    fs::symlink_metadata(git).ok().filter(|found| found.is_file())?;
    let bytes = file::read_bounded(git, MAX_SMALL_FILE_BYTES).ok()?;
    let path = bytes.strip_prefix(b"gitdir: ")?;
    Some(git.parent()?.join(OsStr::from_bytes(path.trim_ascii_end())))
}

/// Returns the path in a small file of git's.
fn read_path_line(path: &Path) -> Option<PathBuf> {
    let mut bytes = read_small_bytes(path)?;
    bytes.truncate(bytes.trim_ascii_end().len());
    (!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

/// Returns a small file of git's as text.
pub(super) fn read_small_text(path: &Path) -> Option<String> {
    read_small_bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn read_small_bytes(path: &Path) -> Option<Vec<u8>> {
    file::read_bounded(path, MAX_SMALL_FILE_BYTES).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failing disk tells nothing about the agent's branch.
    #[test]
    fn unreadable_head_is_reported_as_io_error() {
        let admin = tempfile::tempdir().unwrap();
        let file = admin.path().join("HEAD");
        fs::write(&file, "ref: refs/heads/main\n").unwrap();
        assert_eq!(head(admin.path()).unwrap(), WorktreeHead::Branch(BranchName::new("main").unwrap()));
        fs::write(&file, "ref: nonsense\n").unwrap();
        assert_eq!(head(admin.path()).unwrap(), WorktreeHead::Unknown);
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(matches!(head(admin.path()), Err(Error::Io { .. })));
    }

    #[test]
    fn empty_git_directory_is_not_an_entry() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        assert!(!has_git_entry(root.path()));
        fs::create_dir(&git).unwrap();
        assert!(!has_git_entry(root.path()));
        fs::write(git.join("damaged"), "").unwrap();
        assert!(has_git_entry(root.path()));
        fs::remove_dir_all(&git).unwrap();
        fs::write(&git, "gitdir: elsewhere").unwrap();
        assert!(has_git_entry(root.path()));
        assert!(!has_git_entry(&git));
    }
}
