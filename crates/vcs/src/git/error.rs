//! Errors of git, by name, with hints.
//!
//! Not here: recognising them in the messages of git (`stderr`).

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_process::ProgramStartError;
use windlass_process::file::UnreadableFile;

use super::names::{BranchName, GitCommitId, RemoteName};

/// Why an action of git failed. Texts of git in it have no credentials and no control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot run git")]
    NotStarted(#[source] ProgramStartError),
    #[error("cannot finish `git {command}`: it was cancelled")]
    Cancelled { command: String },
    #[error("cannot finish `git {command}`: it took longer than {} s", after.as_secs())]
    TimedOut { command: String, after: Duration },
    #[error("cannot ask git: `{}` {}", path.display(), reason.describe_cause())]
    Obstacle { path: PathBuf, reason: UnreadableFile },
    #[error("cannot finish `git {command}`: {how}")]
    Ended { command: String, how: String },
    #[error("cannot run `git {command}`: {said}")]
    Failed { command: String, said: String },
    #[error("cannot merge with this git: {said}")]
    TooOld { said: String },
    #[error("cannot use {name:?} as the name of a {kind}: {why}")]
    BadName { kind: &'static str, name: String, why: &'static str },

    #[error("cannot find a git repository in {}", path.display())]
    NotARepository { path: PathBuf },
    #[error("cannot make worktrees in {}: it is a bare repository", path.display())]
    Bare { path: PathBuf },
    #[error("cannot use the repository {}: it belongs to another user", path.display())]
    ForeignOwner { path: PathBuf },
    #[error("cannot start from anything in {}: there are no commits yet", path.display())]
    NoCommits { path: PathBuf },
    #[error("cannot make a worktree of {}: it has a sparse checkout", path.display())]
    Sparse { path: PathBuf },
    #[error("cannot use the repository {}: it keeps its refs as a reftable", path.display())]
    Reftable { path: PathBuf },

    #[error("cannot find the base branch (looked for {tried})")]
    NoBase { tried: String },
    #[error("cannot find the base branch {branch}")]
    UnknownBase { branch: BranchName },
    #[error("cannot find the remote {remote}")]
    UnknownRemote { remote: RemoteName },
    #[error("cannot reach the remote {remote}: {said}")]
    Unreachable { remote: RemoteName, said: String },
    #[error("cannot find the commit {commit}")]
    UnknownCommit { commit: String },

    #[error("cannot continue while {} exists{}", path.display(), describe_holder(holder.as_ref()))]
    Locked { path: PathBuf, holder: Option<LockHolder> },
    #[error("cannot work in {}: another Windlass process does", path.display())]
    Busy { path: PathBuf },
    #[error("cannot use the worktree {}: it is locked{}", path.display(), describe_reason(reason))]
    WorktreeLocked { path: PathBuf, reason: String },
    #[error("cannot find the worktree {}", path.display())]
    Vanished { path: PathBuf },
    #[error("cannot use {}: it exists, and is not a worktree of this repository", path.display())]
    Occupied { path: PathBuf },
    #[error("cannot take the branch {branch}: it is there already, and was not made by windlass")]
    BranchTaken { branch: BranchName },
    #[error("cannot take the branch {branch}: it is checked out in {}", path.display())]
    CheckedOut { branch: BranchName, path: PathBuf },
    #[error("cannot check out the submodule {}: {said}", path.display())]
    Submodule { path: PathBuf, said: String },
    #[error("cannot commit the submodule {}: its commits exist nowhere else", path.display())]
    Unkept { path: PathBuf },
    #[error("cannot use files that go through a filter: {said}")]
    Filter { said: String },
    #[error("cannot write: the disk is full ({said})")]
    DiskFull { said: String },

    #[error("cannot combine {between}: both change {}", list_files(files))]
    Conflict { files: Vec<PathBuf>, between: String },
    #[error("cannot continue: {operation} is not finished{}", describe_conflict_files(files))]
    Unfinished { operation: GitOperation, files: Vec<PathBuf> },
    #[error("cannot commit: there are conflict markers in {}", list_files(files))]
    Markers { files: Vec<PathBuf> },
    #[error("cannot commit: there is a repository of its own in {}", list_files(files))]
    Embedded { files: Vec<PathBuf> },
    #[error("cannot commit what is in {}: {said}", path.display())]
    Uncommittable { path: PathBuf, said: String },
    #[error("cannot continue {branch}: its worktree is at {at}, which does not descend from it")]
    Strayed { at: String, branch: BranchName },
    #[error("cannot remove the branch {branch}: it has commits that are not merged")]
    Unmerged {
        branch: BranchName,
        /// The worktree that has the branch checked out: git refuses to delete the branch meanwhile.
        worktree: Option<PathBuf>,
    },
    #[error("cannot tell what was committed in {}: {why}", path.display())]
    Unnoted { path: PathBuf, why: &'static str },
    #[error("cannot change {}: there is uncommitted work in {}", path.display(), list_files(files))]
    Dirty { path: PathBuf, files: Vec<PathBuf> },

    #[error("cannot push {branch} to {remote}: {why}")]
    Rejected { remote: RemoteName, branch: BranchName, why: String },
    #[error("cannot change {branch} on {remote}: another push has changed it ({})", at.short_id())]
    Foreign { remote: RemoteName, branch: BranchName, at: GitCommitId },
    #[error("cannot change {branch}: it is not at the expected commit")]
    Moved { branch: BranchName },
    #[error("cannot merge {}: it does not contain {}, where the base is now", head.short_id(), base.short_id())]
    Stale { base: GitCommitId, head: GitCommitId },

    #[error("cannot {doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

/// A process that may hold a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: u32,
    pub command: String,
}

impl LockHolder {
    /// Returns a placeholder for systems that cannot list processes.
    pub(super) fn unknown_process() -> Self {
        Self { pid: 0, command: "a process".to_owned() }
    }
}

/// An unfinished operation in a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOperation {
    Merge,
    Rebase,
    CherryPick,
    Revert,
    Am,
    Bisect,
}

impl Display for GitOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge => "a merge",
            Self::Rebase => "a rebase",
            Self::CherryPick => "a cherry-pick",
            Self::Revert => "a revert",
            Self::Am => "applying patches (git am)",
            Self::Bisect => "a bisect",
        })
    }
}

impl Error {
    pub(super) fn io_error(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { said: path.display().to_string() }
            }
            _ => Self::Io { doing, path, source },
        }
    }

    /// Returns what the reader can do: a command with the necessary names if there is one.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        self.named_hint().map(Cow::Owned).or_else(|| self.static_hint().map(Cow::Borrowed))
    }

    fn named_hint(&self) -> Option<String> {
        Some(match self {
            Self::ForeignOwner { path } => {
                format!("if you trust it: `git config --global --add safe.directory {}`", quote_path(path))
            }
            Self::WorktreeLocked { path, .. } => {
                format!("`git worktree unlock {}`, if its owner agrees", quote_path(path))
            }
            Self::Vanished { path } => {
                format!("`windlass run` makes {} again from its branch", quote_path(path))
            }
            Self::Occupied { path } => {
                let path = quote_path(path);
                format!("check its content, and move it away: `mv {path} {path}.old`")
            }
            Self::BranchTaken { branch } => {
                format!("`git branch -m {branch} OTHER` gives it another name, `git branch -D {branch}` removes it")
            }
            Self::CheckedOut { path, .. } => {
                format!("`git -C {} switch OTHER` checks out another branch there", quote_path(path))
            }
            Self::Unmerged { branch, worktree } => {
                let path = worktree.as_deref().map(quote_path);
                let first = path.map(|path| format!("git worktree remove {path} && ")).unwrap_or_default();
                format!("`git merge {branch}` keeps them; `{first}git branch -D {branch}` removes them")
            }
            _ => return None,
        })
    }

    fn static_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotStarted(_) => "install git, or put it on the PATH",
            Self::TooOld { .. } => "install git 2.38 or newer",
            Self::Obstacle { reason, .. } => reason.remedy_hint(),
            Self::TimedOut { .. } => {
                "try again; a slow disk, a slow remote, a filter or a short `limits.wall_time` may be the cause"
            }
            Self::BadName { .. } => "choose another name",
            Self::NotARepository { .. } => "run it in a repository, or make one with `git init`",
            Self::Bare { .. } => "run it in a clone or a worktree of this repository",
            Self::NoCommits { .. } => "make a first commit",
            Self::Sparse { .. } => "`git sparse-checkout disable`, or work in a clone of its own",
            Self::Reftable { .. } => "`git refs migrate --ref-format=files`",
            Self::NoBase { .. } | Self::UnknownBase { .. } => "name the base branch in the configuration",
            Self::UnknownRemote { .. } => "`git remote -v` lists them; `forge.remote` in the configuration names one",
            Self::Unreachable { .. } => "look at the address (`git remote -v`), the network and your login",
            Self::Locked { holder: Some(_), .. } => "wait until that process is done",
            Self::Locked { .. } => "if no git is running, a crash has left it: remove that file",
            Self::Busy { .. } => "wait until it is done",
            Self::Submodule { .. } => "`git submodule update --init` in the main worktree, then try again",
            Self::Unkept { .. } => "push it to the submodule's own remote, or leave the submodule as it was",
            Self::Filter { .. } => "install the filter's program (for LFS: git-lfs), then try again",
            Self::DiskFull { .. } => "make room",
            Self::Conflict { .. } => "merge one of them first, or take one of them out",
            Self::Unfinished { .. } => "resolve the files, `git add` them and continue, or abort it",
            Self::Markers { .. } => "resolve the conflicts in these files",
            Self::Embedded { .. } => "remove its `.git`, ignore it, or make it a submodule",
            Self::Uncommittable { .. } => "see what `git status` says there, and fix it so that `git add --all` works",
            Self::Strayed { .. } => {
                "bring that work onto the branch, for example with a rebase, and check the branch out"
            }
            Self::Dirty { .. } => "commit it or stash it",
            Self::Rejected { .. } => "see what the remote says",
            Self::Foreign { .. } => {
                "merge that push into the work (`git fetch` and `git merge` in its worktree), or remove the \
                 remote's branch, and continue"
            }
            Self::Moved { .. } | Self::Stale { .. } => "rebase onto the newest base, check again, merge again",
            _ => return None,
        })
    }
}

fn describe_holder(holder: Option<&LockHolder>) -> String {
    holder.map(|holder| format!(", which {} (process {}) may hold", holder.command, holder.pid)).unwrap_or_default()
}

/// Returns a path quoted for a shell.
pub fn quote_path(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@".contains(letter);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// Git allows a lock without a reason.
fn describe_reason(reason: &str) -> String {
    if reason.trim().is_empty() { String::new() } else { format!(" ({})", reason.trim()) }
}

fn describe_conflict_files(files: &[PathBuf]) -> String {
    if files.is_empty() { String::new() } else { format!(" (conflicts in {})", list_files(files)) }
}

/// Returns the first few files, with escaped names.
pub(super) fn list_files(files: &[PathBuf]) -> String {
    const MAX_LISTED_FILES: usize = 10;
    let mut names: Vec<_> =
        files.iter().take(MAX_LISTED_FILES).map(|file| file.to_string_lossy().escape_debug().to_string()).collect();
    if files.len() > MAX_LISTED_FILES {
        names.push(format!("{} more", files.len() - MAX_LISTED_FILES));
    }
    names.join(", ")
}
