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

use super::repository::{Entry, Head};
use super::trouble::is_outside;
use super::unfinished::{refuse_unmerged, under_way};
use super::{Branch, Commit, Error, Git, Operation, Worktree, paths};

/// Larger files are not searched for conflict markers.
const LONG: u64 = 8 * 1024 * 1024;

/// A file that differs from its commit.
struct ChangedFile {
    /// The state in the index and in the tree, as in git's short format.
    state: [u8; 2],
    path: PathBuf,
}

impl ChangedFile {
    /// Parses `XY PATH`.
    fn read(entry: &[u8]) -> Option<Self> {
        let (state, path) = (entry.first_chunk::<2>()?, entry.get(3..)?);
        Some(Self { state: *state, path: PathBuf::from(OsStr::from_bytes(path)) })
    }

    /// Returns whether the index has several versions of the file.
    fn is_unmerged(&self) -> bool {
        matches!(&self.state, b"DD" | b"AA") || self.state.contains(&b'U')
    }
}

impl Git<'_> {
    /// Commits everything that is uncommitted, with new files but without ignored ones. Returns `None` if there is nothing.
    pub fn commit_all(&self, worktree: &Worktree, message: &str) -> Result<Option<Commit>, Error> {
        let (_held, entry) = self.enter(worktree)?;
        let has_changes = self.stage_all(worktree, &entry).map_err(|error| of_the_tree(error, &entry.path))?;
        if !has_changes && !entry.admin.join("MERGE_HEAD").exists() {
            return Ok(None);
        }
        let call = self.call(&["commit", "--quiet", "--no-verify", "--allow-empty-message", "--cleanup=verbatim"]);
        // Git accepts no zero byte, and a message may come from any source.
        call.word("--file=-").stdin(message.replace('\0', "")).within(&entry.path).signed()?.done()?;
        self.head(&entry).map(Some)
    }

    /// Stages everything that is uncommitted, with the worktree on our branch. Returns whether the index differs from the commit.
    fn stage_all(&self, worktree: &Worktree, entry: &Entry) -> Result<bool, Error> {
        let changed = self.status(&entry.path, "all")?;
        refuse_unmerged(
            entry,
            changed.iter().filter(|file| file.is_unmerged()).map(|file| file.path.clone()).collect(),
        )?;
        let files: Vec<PathBuf> = changed.into_iter().map(|file| file.path).collect();
        self.refuse_markers(&entry.path, &files)?;
        match under_way(&entry.admin) {
            None | Some(Operation::Merge) => {}
            Some(operation) => return Err(Error::Unfinished { operation, files: Vec::new() }),
        }
        let head = self.head(entry)?;
        if entry.head()? != Head::Branch(worktree.branch.clone()) {
            self.come_back(worktree, entry, &head)?;
        }
        if files.is_empty() {
            return Ok(false);
        }
        self.stage(&entry.path)?;
        let has_changes = self.check_staged(&entry.path)?;
        self.keep_submodules(&entry.path)?;
        Ok(has_changes)
    }

    /// Checks our branch out again. Work beside it is taken onto it if it continues there; tree and index stay as they are.
    /// If an older commit was checked out, the tree becomes that of the branch again.
    fn come_back(&self, worktree: &Worktree, entry: &Entry, head: &Commit) -> Result<(), Error> {
        let branch = &worktree.branch;
        let at = match entry.head()? {
            Head::Branch(branch) => branch.to_string(),
            _ => head.short().to_owned(),
        };
        let strayed = || Error::Strayed { at, branch: branch.clone() };
        let Some(tip) = self.find_tip_again(branch)? else { return Err(strayed()) };
        if self.contains(head, &tip)? {
            self.call(&["update-ref"]).word(branch.full()).word(head).within(&entry.path).done()?;
            self.call(&["symbolic-ref", "HEAD"]).word(branch.full()).within(&entry.path).done()?;
            return Ok(());
        }
        if !self.contains(&tip, head)? || !self.uncommitted(&entry.path, "all")?.is_empty() {
            return Err(strayed());
        }
        let call = self.call(&["checkout", "--quiet", "--no-guess", "--no-overwrite-ignore"]).word(branch);
        call.word("--").within(&entry.path).done().map(drop)
    }

    /// Returns the tip of a branch. A branch that was renamed or deleted is restored at its start.
    fn find_tip_again(&self, branch: &Branch) -> Result<Option<Commit>, Error> {
        if let Some(tip) = self.resolve(&branch.full())? {
            return Ok(Some(tip));
        }
        let Some(start) = self.resolve(&branch.mark())? else { return Ok(None) };
        // The empty argument makes git refuse if the branch exists after all.
        self.call(&["update-ref"]).word(branch.full()).word(&start).word("").done()?;
        Ok(Some(start))
    }

    /// Returns the commit of a worktree.
    fn head(&self, entry: &Entry) -> Result<Commit, Error> {
        if let Head::Branch(branch) = entry.head()?
            && let Some(tip) = self.resolve(&branch.full())?
        {
            return Ok(tip);
        }
        let answer = self.call(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).within(&entry.path).answer()?;
        Commit::new(&answer.line()).map_err(|_| Error::UnknownCommit { commit: "HEAD".to_owned() })
    }

    /// Returns the uncommitted files of a worktree, with new ones.
    pub fn uncommitted_files(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, Error> {
        let (_held, entry) = self.enter(worktree)?;
        self.uncommitted(&entry.path, "all")
    }

    /// Returns the same for a tree that may not be ours.
    pub fn list_uncommitted(&self, tree: &Path) -> Result<Vec<PathBuf>, Error> {
        self.uncommitted(tree, "all")
    }

    /// Returns the commit of a tree, and each file that differs from it, with new ones, in the format of `--porcelain=v2`.
    /// The tree may not be ours.
    pub fn list_state(&self, tree: &Path) -> Result<Vec<Vec<u8>>, Error> {
        let call = self.call(&["status", "--porcelain=v2", "--branch", "--no-renames", "-z", "--untracked-files=all"]);
        let answer = call.within(tree).done()?;
        Ok(answer.entries().into_iter().map(<[u8]>::to_vec).collect())
    }

    /// Returns files that differ from their commit. `untracked` decides about new ones: `all`, or `no`.
    pub(super) fn uncommitted(&self, worktree: &Path, untracked: &str) -> Result<Vec<PathBuf>, Error> {
        Ok(self.status(worktree, untracked)?.into_iter().map(|file| file.path).collect())
    }

    /// Returns the same with the state of each file.
    fn status(&self, worktree: &Path, untracked: &str) -> Result<Vec<ChangedFile>, Error> {
        let call = self.call(&["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=none"]);
        let answer = call.word(format!("--untracked-files={untracked}")).within(worktree).done()?;
        Ok(answer.entries().into_iter().filter_map(ChangedFile::read).collect())
    }

    /// Returns whether anything is staged. Refuses a repository inside of the tree: the commit would hold nothing but its
    /// commit id.
    fn check_staged(&self, worktree: &Path) -> Result<bool, Error> {
        let call =
            self.call(&["diff-index", "--cached", "-z", "--no-renames", "--ignore-submodules=none", "HEAD", "--"]);
        let answer = call.within(worktree).done()?;
        let entries = answer.entries();
        let links = entries.chunks_exact(2).filter(|pair| pair[0].starts_with(b":000000 160000")).map(|pair| pair[1]);
        let modules = read(&worktree.join(".gitmodules")).unwrap_or_default();
        let is_named = |path: &[u8]| modules.split(|byte| *byte == b'\n').any(|line| line.trim_ascii().ends_with(path));
        let files = paths(links.filter(|path| !is_named(path)));
        if files.is_empty() {
            return Ok(!entries.is_empty());
        }
        let call = self.call(&["rm", "--cached", "--quiet", "--force", "--"]);
        files.iter().fold(call, |call, file| call.word(file)).within(worktree).done()?;
        Err(Error::Embedded { files })
    }

    /// Refuses new conflict markers in uncommitted files.
    fn refuse_markers(&self, worktree: &Path, files: &[PathBuf]) -> Result<(), Error> {
        let mut marked = Vec::new();
        for file in files.iter().filter(|file| read(&worktree.join(file)).is_some_and(|text| markers(&text) > 0)) {
            let mut object = b"HEAD:".to_vec();
            object.extend(file.as_os_str().as_bytes());
            let before = self.call(&["cat-file", "blob"]).word(OsStr::from_bytes(&object)).within(worktree).answer()?;
            let now = read(&worktree.join(file)).unwrap_or_default();
            if markers(&now) > if before.code == 0 { markers(&before.bytes) } else { 0 } {
                marked.push(file.clone());
            }
        }
        if marked.is_empty() { Ok(()) } else { Err(Error::Markers { files: marked }) }
    }
}

/// Returns the content of a plain file of limited size.
fn read(path: &Path) -> Option<Vec<u8>> {
    fs::symlink_metadata(path).ok().filter(|found| found.is_file())?;
    file::read(path, LONG).ok()
}

/// Counts the conflicts that git marked: all three lines, in their order.
fn markers(content: &[u8]) -> usize {
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
fn of_the_tree(error: Error, path: &Path) -> Error {
    let said = match error {
        Error::Failed { command, said } if !is_outside(&said) => format!("`git {command}` says {said}"),
        Error::UnknownCommit { .. } => "nothing is checked out".to_owned(),
        Error::NotARepository { .. } => "it is no worktree any more".to_owned(),
        other => return other,
    };
    Error::Uncommittable { path: path.to_owned(), said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_all_three_lines_in_their_order() {
        assert_eq!(markers(b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"), 1);
        assert_eq!(markers(b"<<<<<<< HEAD\r\na\r\n=======\r\nb\r\n>>>>>>> x"), 1);
        assert_eq!(markers(b"Title\n=======\ntext\n>>>>>>> quoted\n"), 0);
        assert_eq!(markers(b"  <<<<<<< HEAD\n=======\n>>>>>>> x\n"), 0);
    }
}
