//! The log for people, from local commits: nothing is fetched.

use super::ask::Call;
use super::{Branch, Commit, Error, Git};

/// A listed commit. Names and subjects are hostile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    pub commit: Commit,
    pub author: String,
    /// In seconds since 1970.
    pub at: i64,
    pub subject: String,
}

impl Git<'_> {
    /// Returns the commits of `to` that `from` does not have, newest first.
    pub fn log(&self, from: &Commit, to: &Commit, most: usize) -> Result<Vec<Logged>, Error> {
        let call = self.log_call().word(format!("--max-count={most}"));
        let answer = call.word(to).word(format!("^{from}")).word("--").done()?;
        Ok(answer.entries().into_iter().filter_map(Logged::read).collect())
    }

    /// Builds a call whose output [`Logged::read`] parses.
    pub(super) fn log_call(&self) -> Call<'_, '_> {
        let call = self.call(&["log", "-z", "--no-decorate", "--no-notes", "--no-mailmap", "--no-show-signature"]);
        call.word("--format=tformat:%H%n%an%n%at%n%s")
    }

    /// Returns the last known commit of a base: on the default remote, or else the local one.
    pub fn last_seen(&self, branch: &Branch) -> Result<Option<Commit>, Error> {
        match self.known_base(Some(branch)) {
            Ok(base) => Ok(Some(base.commit)),
            Err(Error::UnknownBase { .. } | Error::NoCommits { .. } | Error::UnknownRemote { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the n-th ancestor of a commit along first parents, or `None` if there are fewer.
    pub fn before(&self, commit: &Commit, many: u32) -> Result<Option<Commit>, Error> {
        self.resolve(&format!("{commit}~{many}"))
    }

    /// Returns the first parent of a commit, or `None` if it is not available locally.
    pub fn parent(&self, commit: &Commit) -> Result<Option<Commit>, Error> {
        self.resolve(&format!("{commit}^1"))
    }
}

impl Logged {
    pub(super) fn read(entry: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(entry);
        let mut lines = text.splitn(4, '\n');
        let commit = Commit::new(lines.next()?).ok()?;
        let (author, at) = (lines.next()?.to_owned(), lines.next()?.parse().unwrap_or(0));
        Some(Self { commit, author, at, subject: lines.next().unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_may_be_missing_and_names_strange() {
        let id = "0123456789012345678901234567890123456789";
        let of = |rest: &str| Logged::read(format!("{id}\n{rest}").as_bytes());
        let read = of("Ann \u{1b}[31m\n12\nFix\tit").unwrap();
        assert_eq!((read.author.as_str(), read.at, read.subject.as_str()), ("Ann \u{1b}[31m", 12, "Fix\tit"));
        assert_eq!(of("Ann\n12").unwrap().subject, "");
        assert_eq!(of("Ann"), None);
        assert_eq!(Logged::read(b"no id\nAnn\n12\nFix"), None);
    }
}
