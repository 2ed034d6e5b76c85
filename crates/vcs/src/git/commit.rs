//! Commits the work that an agent left in its worktree.
//!
//! Only our branch counts. Work on a detached HEAD or another branch is taken onto our branch if it continues there;
//! otherwise all of it stays as it is, and the agent gets an error.
//!
//! Invariant: no other branch moves, whatever is checked out.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::operation::{operation_in_progress, refuse_unmerged_files};
use super::repository::{WorktreeEntry, WorktreeHead};
use super::stderr::is_environment_failure;
use super::{BranchName, Error, GitClient, GitCommitId, GitOperation, Worktree, parse_paths};

/// Larger files are not searched for conflict markers.
const MAX_SCANNED_BYTES: u64 = 8 * 1024 * 1024;

/// A file that differs from its commit.
struct ChangedFile {
    /// The state in the index and in the tree, as in git's short format.
    state: [u8; 2],
    path: PathBuf,
}

impl ChangedFile {
    /// Parses `XY PATH`.
    fn parse_entry(entry: &[u8]) -> Option<Self> {
        let (state, path) = (entry.first_chunk::<2>()?, entry.get(3..)?);
        Some(Self { state: *state, path: PathBuf::from(OsStr::from_bytes(path)) })
    }

    /// Returns whether the index has several versions of the file.
    fn is_unmerged(&self) -> bool {
        matches!(&self.state, b"DD" | b"AA") || self.state.contains(&b'U')
    }
}

impl GitClient<'_> {
    /// Commits everything that is uncommitted, with new files but without ignored ones. Returns `None` if there is nothing.
    pub fn commit_all(&self, worktree: &Worktree, message: &str) -> Result<Option<GitCommitId>, Error> {
        let (_held, entry) = self.enter_worktree(worktree)?;
        let has_changes = self.stage_all(worktree, &entry).map_err(|error| to_uncommittable(error, &entry.path))?;
        if !has_changes && !entry.admin.join("MERGE_HEAD").exists() {
            return Ok(None);
        }
        let call =
            self.build_command(&["commit", "--quiet", "--no-verify", "--allow-empty-message", "--cleanup=verbatim"]);
        // Git accepts no zero byte, and a message may come from any source.
        call.with_argument("--file=-")
            .with_stdin(message.replace('\0', ""))
            .in_directory(&entry.path)
            .with_identity()?
            .run_checked()?;
        self.head_commit(&entry).map(Some)
    }

    /// Stages everything that is uncommitted, with the worktree on our branch. Returns whether the index differs from the commit.
    fn stage_all(&self, worktree: &Worktree, entry: &WorktreeEntry) -> Result<bool, Error> {
        let changed = self.read_status(&entry.path, "all")?;
        refuse_unmerged_files(
            entry,
            changed.iter().filter(|file| file.is_unmerged()).map(|file| file.path.clone()).collect(),
        )?;
        let files: Vec<PathBuf> = changed.into_iter().map(|file| file.path).collect();
        self.refuse_conflict_markers(&entry.path, &files)?;
        match operation_in_progress(&entry.admin) {
            None | Some(GitOperation::Merge) => {}
            Some(operation) => return Err(Error::Unfinished { operation, files: Vec::new() }),
        }
        let head = self.head_commit(entry)?;
        if entry.read_head()? != WorktreeHead::Branch(worktree.branch.clone()) {
            self.return_to_branch(worktree, entry, &head)?;
        }
        if files.is_empty() {
            return Ok(false);
        }
        self.stage_everything(&entry.path)?;
        let has_changes = self.check_staged(&entry.path)?;
        self.keep_submodules(&entry.path)?;
        Ok(has_changes)
    }

    /// Checks our branch out again. Work beside it is taken onto it if it continues there; tree and index stay as they are.
    /// If an older commit was checked out, the tree becomes that of the branch again.
    fn return_to_branch(&self, worktree: &Worktree, entry: &WorktreeEntry, head: &GitCommitId) -> Result<(), Error> {
        let branch = &worktree.branch;
        let at = match entry.read_head()? {
            WorktreeHead::Branch(branch) => branch.to_string(),
            _ => head.short_id().to_owned(),
        };
        let strayed = || Error::Strayed { at, branch: branch.clone() };
        let Some(tip) = self.restore_branch_tip(branch)? else { return Err(strayed()) };
        if self.contains_commit(head, &tip)? {
            self.build_command(&["update-ref"])
                .with_argument(branch.full_ref())
                .with_argument(head)
                .in_directory(&entry.path)
                .run_checked()?;
            self.build_command(&["symbolic-ref", "HEAD"])
                .with_argument(branch.full_ref())
                .in_directory(&entry.path)
                .run_checked()?;
            return Ok(());
        }
        if !self.contains_commit(&tip, head)? || !self.find_uncommitted(&entry.path, "all")?.is_empty() {
            return Err(strayed());
        }
        let call =
            self.build_command(&["checkout", "--quiet", "--no-guess", "--no-overwrite-ignore"]).with_argument(branch);
        call.with_argument("--").in_directory(&entry.path).run_checked().map(drop)
    }

    /// Returns the tip of a branch. A branch that was renamed or deleted is restored at its start.
    fn restore_branch_tip(&self, branch: &BranchName) -> Result<Option<GitCommitId>, Error> {
        if let Some(tip) = self.resolve_ref(&branch.full_ref())? {
            return Ok(Some(tip));
        }
        let Some(start) = self.resolve_ref(&branch.start_ref())? else { return Ok(None) };
        // The empty argument makes git refuse if the branch exists after all.
        self.build_command(&["update-ref"])
            .with_argument(branch.full_ref())
            .with_argument(&start)
            .with_argument("")
            .run_checked()?;
        Ok(Some(start))
    }

    /// Returns the commit of a worktree.
    fn head_commit(&self, entry: &WorktreeEntry) -> Result<GitCommitId, Error> {
        if let WorktreeHead::Branch(branch) = entry.read_head()?
            && let Some(tip) = self.resolve_ref(&branch.full_ref())?
        {
            return Ok(tip);
        }
        let answer = self
            .build_command(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .in_directory(&entry.path)
            .run_unchecked()?;
        GitCommitId::new(&answer.trimmed_text()).map_err(|_| Error::UnknownCommit { commit: "HEAD".to_owned() })
    }

    /// Returns the uncommitted files of a worktree, with new ones.
    pub fn uncommitted_files(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, Error> {
        let (_held, entry) = self.enter_worktree(worktree)?;
        self.find_uncommitted(&entry.path, "all")
    }

    /// Returns the same for a tree that may not be ours.
    pub fn list_uncommitted_of_tree(&self, tree: &Path) -> Result<Vec<PathBuf>, Error> {
        self.find_uncommitted(tree, "all")
    }

    /// Returns the commit of a tree, and each file that differs from it, with new ones, in the format of `--porcelain=v2`.
    /// The tree may not be ours.
    pub fn list_tree_state(&self, tree: &Path) -> Result<Vec<Vec<u8>>, Error> {
        let call = self.build_command(&[
            "status",
            "--porcelain=v2",
            "--branch",
            "--no-renames",
            "-z",
            "--untracked-files=all",
        ]);
        let answer = call.in_directory(tree).run_checked()?;
        Ok(answer.split_entries().into_iter().map(<[u8]>::to_vec).collect())
    }

    /// Returns files that differ from their commit. `untracked` decides about new ones: `all`, or `no`.
    pub(super) fn find_uncommitted(&self, worktree: &Path, untracked: &str) -> Result<Vec<PathBuf>, Error> {
        Ok(self.read_status(worktree, untracked)?.into_iter().map(|file| file.path).collect())
    }

    /// Returns the same with the state of each file.
    fn read_status(&self, worktree: &Path, untracked: &str) -> Result<Vec<ChangedFile>, Error> {
        let call = self.build_command(&["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=none"]);
        let answer =
            call.with_argument(format!("--untracked-files={untracked}")).in_directory(worktree).run_checked()?;
        Ok(answer.split_entries().into_iter().filter_map(ChangedFile::parse_entry).collect())
    }

    /// Returns whether anything is staged. Refuses a repository inside of the tree: the commit would hold nothing but its
    /// commit id.
    fn check_staged(&self, worktree: &Path) -> Result<bool, Error> {
        let call = self.build_command(&[
            "diff-index",
            "--cached",
            "-z",
            "--no-renames",
            "--ignore-submodules=none",
            "HEAD",
            "--",
        ]);
        let answer = call.in_directory(worktree).run_checked()?;
        let entries = answer.split_entries();
        let links = entries.chunks_exact(2).filter(|pair| pair[0].starts_with(b":000000 160000")).map(|pair| pair[1]);
        let modules = read(&worktree.join(".gitmodules")).unwrap_or_default();
        let is_named = |path: &[u8]| modules.split(|byte| *byte == b'\n').any(|line| line.trim_ascii().ends_with(path));
        let files = parse_paths(links.filter(|path| !is_named(path)));
        if files.is_empty() {
            return Ok(!entries.is_empty());
        }
        let call = self.build_command(&["rm", "--cached", "--quiet", "--force", "--"]);
        files.iter().fold(call, |call, file| call.with_argument(file)).in_directory(worktree).run_checked()?;
        Err(Error::Embedded { files })
    }

    /// Refuses new conflict markers in uncommitted files.
    fn refuse_conflict_markers(&self, worktree: &Path, files: &[PathBuf]) -> Result<(), Error> {
        let mut marked = Vec::new();
        for file in
            files.iter().filter(|file| read(&worktree.join(file)).is_some_and(|text| count_conflict_markers(&text) > 0))
        {
            let mut object = b"HEAD:".to_vec();
            object.extend(file.as_os_str().as_bytes());
            let before = self
                .build_command(&["cat-file", "blob"])
                .with_argument(OsStr::from_bytes(&object))
                .in_directory(worktree)
                .run_unchecked()?;
            let now = read(&worktree.join(file)).unwrap_or_default();
            if count_conflict_markers(&now) > if before.code == 0 { count_conflict_markers(&before.bytes) } else { 0 } {
                marked.push(file.clone());
            }
        }
        if marked.is_empty() { Ok(()) } else { Err(Error::Markers { files: marked }) }
    }
}

/// Returns the content of a plain file of limited size.
fn read(path: &Path) -> Option<Vec<u8>> {
    fs::symlink_metadata(path).ok().filter(|found| found.is_file())?;
    file::read_bounded(path, MAX_SCANNED_BYTES).ok()
}

/// Counts the conflicts that git marked: all three lines, in their order.
fn count_conflict_markers(content: &[u8]) -> usize {
    let (mut found, mut next) = (0, 0);
    for line in content.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match next {
            _ if line.starts_with(b"<<<<<<< ") => next = 1,
            1 if line == b"=======" => next = 2,
            2 if line.starts_with(b">>>>>>> ") => (found, next) = (found + 1, 0),
            _ => {}
        }
    }
    found
}

/// Turns an error of git about a tree and its index into one that blames the work in the tree.
fn to_uncommittable(error: Error, path: &Path) -> Error {
    let said = match error {
        Error::Failed { command, said } if !is_environment_failure(&said) => format!("`git {command}` says {said}"),
        Error::UnknownCommit { .. } => "nothing is checked out".to_owned(),
        Error::NotARepository { .. } => "it is not a worktree any more".to_owned(),
        other => return other,
    };
    Error::Uncommittable { path: path.to_owned(), said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_is_counted_only_with_all_markers_in_order() {
        assert_eq!(count_conflict_markers(b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"), 1);
        assert_eq!(count_conflict_markers(b"<<<<<<< HEAD\r\na\r\n=======\r\nb\r\n>>>>>>> x"), 1);
        assert_eq!(count_conflict_markers(b"Title\n=======\ntext\n>>>>>>> quoted\n"), 0);
        assert_eq!(count_conflict_markers(b"  <<<<<<< HEAD\n=======\n>>>>>>> x\n"), 0);
    }
}
