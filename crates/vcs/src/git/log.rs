//! The log for people, from local commits: nothing is fetched.

use super::command::GitCommand;
use super::{BranchName, Error, GitClient, GitCommitId};

/// A listed commit. Names and subjects are hostile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCommit {
    pub commit: GitCommitId,
    pub author: String,
    /// In seconds since 1970.
    pub at: i64,
    pub subject: String,
}

impl GitClient<'_> {
    /// Returns the commits of `to` that `from` does not have, newest first.
    pub fn read_log(&self, from: &GitCommitId, to: &GitCommitId, most: usize) -> Result<Vec<LoggedCommit>, Error> {
        let call = self.log_command().with_argument(format!("--max-count={most}"));
        let answer = call.with_argument(to).with_argument(format!("^{from}")).with_argument("--").run_checked()?;
        Ok(answer.split_entries().into_iter().filter_map(LoggedCommit::parse_entry).collect())
    }

    /// Builds a call whose output [`LoggedCommit::read`] parses.
    pub(super) fn log_command(&self) -> GitCommand<'_, '_> {
        let call =
            self.build_command(&["log", "-z", "--no-decorate", "--no-notes", "--no-mailmap", "--no-show-signature"]);
        call.with_argument("--format=tformat:%H%n%an%n%at%n%s")
    }

    /// Returns the last known commit of a base: on the default remote, or else the local one.
    pub fn last_seen_base(&self, branch: &BranchName) -> Result<Option<GitCommitId>, Error> {
        match self.known_base(Some(branch)) {
            Ok(base) => Ok(Some(base.commit)),
            Err(Error::UnknownBase { .. } | Error::NoCommits { .. } | Error::UnknownRemote { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the n-th ancestor of a commit along first parents, or `None` if there are fewer.
    pub fn ancestor_commit(&self, commit: &GitCommitId, many: u32) -> Result<Option<GitCommitId>, Error> {
        self.resolve_ref(&format!("{commit}~{many}"))
    }

    /// Returns the first parent of a commit, or `None` if it is not available locally.
    pub fn parent_commit(&self, commit: &GitCommitId) -> Result<Option<GitCommitId>, Error> {
        self.resolve_ref(&format!("{commit}^1"))
    }
}

impl LoggedCommit {
    pub(super) fn parse_entry(entry: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(entry);
        let mut lines = text.splitn(4, '\n');
        let commit = GitCommitId::new(lines.next()?).ok()?;
        let (author, at) = (lines.next()?.to_owned(), lines.next()?.parse().unwrap_or(0));
        Some(Self { commit, author, at, subject: lines.next().unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_entry_allows_missing_subject_and_odd_names() {
        let id = "0123456789012345678901234567890123456789";
        let of = |rest: &str| LoggedCommit::parse_entry(format!("{id}\n{rest}").as_bytes());
        let read = of("Ann \u{1b}[31m\n12\nFix\tit").unwrap();
        assert_eq!((read.author.as_str(), read.at, read.subject.as_str()), ("Ann \u{1b}[31m", 12, "Fix\tit"));
        assert_eq!(of("Ann\n12").unwrap().subject, "");
        assert_eq!(of("Ann"), None);
        assert_eq!(Logged::read(b"no id\nAnn\n12\nFix"), None);
    }
}
