//! The differences between two commits: for reviewers, for people, and as a digest.

use std::path::PathBuf;

use windlass_engine::Digest;

use super::{BranchName, Error, GitClient, GitCommitId, parse_paths};

/// The largest diff that a digest covers.
const MAX_DIGESTED_BYTES: usize = 64 * 1024 * 1024;
/// The format of a diff, except for the number of lines around a change.
const DIFF_ARGUMENTS: [&str; 9] = [
    "diff-tree",
    "-r",
    "-p",
    "--no-color",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--submodule=short",
    "--diff-algorithm=histogram",
];

/// A diff as text. Invalid UTF-8 is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffText {
    pub text: String,
    /// Whether there is more than the caller asked for.
    pub cut: bool,
}

/// The commits and files that a branch adds to its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchWork {
    pub head: GitCommitId,
    /// The commit where the branch left the base.
    pub merge_base: GitCommitId,
    /// Commits that the base does not have.
    pub commits: u32,
    pub files: Vec<FileChange>,
}

/// A changed file, with its name as git has it. Names are hostile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    /// The former name of a renamed file.
    pub old_path: Option<PathBuf>,
    /// Added lines; zero for a binary file.
    pub added: u64,
    pub removed: u64,
}

impl BranchWork {
    /// Returns the number of commits, or zero if they change no file.
    pub fn commit_count(&self) -> u32 {
        if self.files.is_empty() { 0 } else { self.commits }
    }
}

impl GitClient<'_> {
    /// Returns what a branch adds to its base.
    pub fn read_branch_work(&self, branch: &BranchName, base: &GitCommitId) -> Result<BranchWork, Error> {
        let unknown = || Error::UnknownCommit { commit: branch.to_string() };
        let head = self.resolve_ref(&branch.full_ref())?.ok_or_else(unknown)?;
        let merge_base = self.merge_base(base, &head)?;
        let count = self
            .build_command(&["rev-list", "--count"])
            .with_argument(&head)
            .with_argument(format!("^{base}"))
            .run_checked()?;
        let commits = count.trimmed_text().parse().unwrap_or(u32::MAX);
        let files = self.changed_files(&merge_base, &head)?;
        Ok(BranchWork { head, merge_base, commits, files })
    }

    /// Returns the files that differ between two commits. A renamed file is a deleted and an added one.
    pub fn changed_files(&self, from: &GitCommitId, to: &GitCommitId) -> Result<Vec<FileChange>, Error> {
        self.list_file_changes(from, to, "--no-renames")
    }

    /// Returns the files that differ between two commits, in the order of [`diff_commits`](Self::diff_commits). A renamed file
    /// is one entry.
    pub fn changed_files_with_renames(&self, from: &GitCommitId, to: &GitCommitId) -> Result<Vec<FileChange>, Error> {
        self.list_file_changes(from, to, "--find-renames")
    }

    fn list_file_changes(&self, from: &GitCommitId, to: &GitCommitId, renames: &str) -> Result<Vec<FileChange>, Error> {
        let words = ["diff-tree", "-r", "-z", "--numstat", renames, "--no-ext-diff", "--no-textconv"];
        let call = self.build_command(&words).with_argument(from).with_argument(to).with_argument("--");
        Ok(FileChange::parse_numstat_list(&call.run_checked()?.split_entries()))
    }

    /// Returns the subjects of the commits between two, oldest first, up to `most` of the newest.
    pub fn commit_subjects(&self, from: &GitCommitId, to: &GitCommitId, most: usize) -> Result<Vec<String>, Error> {
        let call = self.build_command(&["log", "-z", "--reverse", "--format=%s", "--no-show-signature", "--no-color"]);
        let answer = call
            .with_argument(format!("--max-count={most}"))
            .with_argument(to)
            .with_argument(format!("^{from}"))
            .with_argument("--")
            .run_checked()?;
        Ok(answer.split_entries().into_iter().map(|entry| String::from_utf8_lossy(entry).into_owned()).collect())
    }

    /// Returns the diff between two commits, up to `most` bytes. A renamed file is shown with its changed lines only.
    pub fn diff_commits(&self, from: &GitCommitId, to: &GitCommitId, most: usize) -> Result<DiffText, Error> {
        let answer = self
            .build_command(&DIFF_ARGUMENTS)
            .with_argument("--find-renames")
            .with_argument("--unified=3")
            .with_argument(from)
            .with_argument(to)
            .with_argument("--")
            .with_output_limit(most)
            .run_checked()?;
        let cut = answer.cut || answer.bytes.len() > most;
        let text = String::from_utf8_lossy(&answer.bytes[..answer.bytes.len().min(most)]).into_owned();
        Ok(DiffText { text, cut })
    }

    /// Returns a digest of the changes between two commits: of the lines, at any position in their files. A rebase without
    /// conflicts keeps it. For a diff that is too long it is a digest of the files instead, which a rebase may change.
    pub fn patch_id(&self, from: &GitCommitId, to: &GitCommitId) -> Result<Digest, Error> {
        let call = self
            .build_command(&DIFF_ARGUMENTS)
            .with_argument("--unified=0")
            .with_argument("--binary")
            .with_argument("--full-index");
        let answer = call
            .with_argument(from)
            .with_argument(to)
            .with_argument("--")
            .with_output_limit(MAX_DIGESTED_BYTES)
            .run_checked()?;
        if !answer.cut {
            return Ok(Digest::of_bytes(&normalize_diff(&answer.bytes)));
        }
        let answer = self
            .build_command(&["diff-tree", "-r", "-z", "--no-renames"])
            .with_argument(from)
            .with_argument(to)
            .run_checked()?;
        Ok(Digest::of_bytes(&answer.bytes))
    }
}

impl FileChange {
    /// Parses a list of changed files. The entry of a renamed file has no name; its old and its new name follow.
    pub(super) fn parse_numstat_list(entries: &[&[u8]]) -> Vec<Self> {
        let mut entries = entries.iter().copied();
        let mut files = Vec::new();
        while let Some(entry) = entries.next() {
            let Some(mut file) = Self::parse_numstat(entry) else { continue };
            if file.path.as_os_str().is_empty() {
                let (Some(old), Some(new)) = (entries.next(), entries.next()) else { break };
                file.old_path = parse_paths([old]).pop();
                file.path = parse_paths([new]).pop().unwrap_or_default();
            }
            files.push(file);
        }
        files
    }

    /// Parses the number of added lines, of removed lines, and the name.
    pub(super) fn parse_numstat(entry: &[u8]) -> Option<Self> {
        let mut parts = entry.splitn(3, |byte| *byte == b'\t');
        let mut number = || Some(String::from_utf8_lossy(parts.next()?).parse().unwrap_or(0));
        let (added, removed) = (number()?, number()?);
        let path = parse_paths(parts.next()).pop()?;
        Some(Self { path, old_path: None, added, removed })
    }
}

/// Removes from a diff what a rebase changes: ids of files, and positions of lines.
pub(super) fn normalize_diff(diff: &[u8]) -> Vec<u8> {
    let mut essence = Vec::with_capacity(diff.len());
    for line in diff.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"@@ ") {
            essence.extend(b"@@\n");
        } else if !line.starts_with(b"index ") {
            essence.extend(line);
        }
    }
    essence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything_but_a_zero() {
        let of = |entry: &[u8]| FileChange::parse_numstat(entry).map(|file| (file.path, file.added, file.removed));
        assert_eq!(of(b"1\t2\ta\tb\nc"), Some(("a\tb\nc".into(), 1, 2)));
        assert_eq!(of(b"-\t-\t--x"), Some(("--x".into(), 0, 0)));
        assert_eq!(of(b"1\t2"), None);
    }

    #[test]
    fn renamed_file_has_both_names() {
        let parse = |entries: &[&[u8]]| {
            let files = FileChange::parse_numstat_list(entries).into_iter();
            files.map(|file| (file.old_path, file.path, file.added)).collect::<Vec<_>>()
        };
        let path = |name: &str| PathBuf::from(name);
        let expected =
            vec![(None, path("a"), 4), (Some(path("old\tname")), path("new\nname"), 1), (None, path("b"), 0)];
        assert_eq!(parse(&[b"4\t0\ta", b"1\t2\t", b"old\tname", b"new\nname", b"0\t3\tb"]), expected);
        assert!(parse(&[b"1\t2\t", b"old"]).is_empty());
    }
}
