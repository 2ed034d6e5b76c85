//! Committing what an agent has left in its worktree.
//!
//! Our branch is what counts. Work that was done beside it, on a detached HEAD or another branch, is taken onto our branch where
//! it goes on from there; otherwise all of it stays as it is, and the agent is told.
//!
//! Invariant: no other branch is moved, whatever is checked out.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use windlass_process::file;

use super::repository::{Entry, Head};
use super::trouble::is_outside;
use super::unfinished::{refuse_unmerged, under_way};
use super::{Branch, Commit, Error, Git, Operation, Worktree, paths};

/// Files that are longer are not looked through for conflict markers.
const LONG: u64 = 8 * 1024 * 1024;

/// A file that is not as it was committed.
struct ChangedFile {
    /// How it stands in the index and in the tree, as git's short format says it.
    state: [u8; 2],
    path: PathBuf,
}

impl ChangedFile {
    /// `XY PATH`.
    fn read(entry: &[u8]) -> Option<Self> {
        let (state, path) = (entry.first_chunk::<2>()?, entry.get(3..)?);
        Some(Self { state: *state, path: PathBuf::from(OsStr::from_bytes(path)) })
    }

    /// Whether the index has several versions of it.
    fn is_unmerged(&self) -> bool {
        matches!(&self.state, b"DD" | b"AA") || self.state.contains(&b'U')
    }
}

impl Git<'_> {
    /// Commits everything that is not committed, new files too, but not what is ignored. Nothing if there is nothing.
    pub fn commit_all(&self, worktree: &Worktree, message: &str) -> Result<Option<Commit>, Error> {
        let (_held, entry) = self.enter(worktree)?;
        let has_changes = self.stage_all(worktree, &entry).map_err(|error| of_the_tree(error, &entry.path))?;
        if !has_changes && !entry.admin.join("MERGE_HEAD").exists() {
            return Ok(None);
        }
        let call = self.call(&["commit", "--quiet", "--no-verify", "--allow-empty-message", "--cleanup=verbatim"]);
        // Git takes no zero byte, and a message may come from anywhere.
        call.word("--file=-").stdin(message.replace('\0', "")).within(&entry.path).signed()?.done()?;
        self.head(&entry).map(Some)
    }

    /// Stages everything that is not committed, with the worktree on our branch. Returns whether the index differs from the
    /// commit that it is at.
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

    /// Checks our branch out again. Work that was done beside it is taken onto it, where it goes on from there; tree and index
    /// stay as they are. After a look at an older commit the tree is that of the branch again.
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

    /// Returns where a branch is. One that was renamed or removed is made again where it started.
    fn find_tip_again(&self, branch: &Branch) -> Result<Option<Commit>, Error> {
        if let Some(tip) = self.resolve(&branch.full())? {
            return Ok(Some(tip));
        }
        let Some(start) = self.resolve(&branch.mark())? else { return Ok(None) };
        // The empty word has git refuse where there is such a branch after all.
        self.call(&["update-ref"]).word(branch.full()).word(&start).word("").done()?;
        Ok(Some(start))
    }

    /// The commit that a worktree is at.
    fn head(&self, entry: &Entry) -> Result<Commit, Error> {
        if let Head::Branch(branch) = entry.head()?
            && let Some(tip) = self.resolve(&branch.full())?
        {
            return Ok(tip);
        }
        let answer = self.call(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).within(&entry.path).answer()?;
        Commit::new(&answer.line()).map_err(|_| Error::UnknownCommit { commit: "HEAD".to_owned() })
    }

    /// Returns the files of a worktree that are not committed, new ones too.
    pub fn uncommitted_files(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, Error> {
        let (_held, entry) = self.enter(worktree)?;
        self.uncommitted(&entry.path, "all")
    }

    /// Returns the same of a tree that may not be ours.
    pub fn list_uncommitted(&self, tree: &Path) -> Result<Vec<PathBuf>, Error> {
        self.uncommitted(tree, "all")
    }

    /// Returns the commit that a tree is at, and each file that differs from it, new ones too, as `--porcelain=v2` says it. The
    /// tree may not be ours.
    pub fn list_state(&self, tree: &Path) -> Result<Vec<Vec<u8>>, Error> {
        let call = self.call(&["status", "--porcelain=v2", "--branch", "--no-renames", "-z", "--untracked-files=all"]);
        let answer = call.within(tree).done()?;
        Ok(answer.entries().into_iter().map(<[u8]>::to_vec).collect())
    }

    /// Files that are not as they were committed. New ones count by `untracked`: `all`, or `no`.
    pub(super) fn uncommitted(&self, worktree: &Path, untracked: &str) -> Result<Vec<PathBuf>, Error> {
        Ok(self.status(worktree, untracked)?.into_iter().map(|file| file.path).collect())
    }

    /// The same with how each file stands.
    fn status(&self, worktree: &Path, untracked: &str) -> Result<Vec<ChangedFile>, Error> {
        let call = self.call(&["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=none"]);
        let answer = call.word(format!("--untracked-files={untracked}")).within(worktree).done()?;
        Ok(answer.entries().into_iter().filter_map(ChangedFile::read).collect())
    }

    /// Returns whether anything is staged. Refuses a repository inside of the tree: it would be committed as nothing but the id
    /// of its commit.
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

    /// Refuses conflict markers in what is not committed, unless as many were there before.
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

/// What a plain file holds, if it is not long.
fn read(path: &Path) -> Option<Vec<u8>> {
    fs::symlink_metadata(path).ok().filter(|found| found.is_file())?;
    file::read(path, LONG).ok()
}

/// How many conflicts are marked as git marks them: all three lines, in their order.
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

/// What git cannot do with a tree and its index is the fault of whoever worked there.
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
