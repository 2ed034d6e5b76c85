//! Commits made without a tree on the disk: what two commits are together, and commits done again on top of another.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{Commit, Error, Git, paths};

/// What a commit says, to be said again.
pub(super) struct Saying {
    author: Option<Author>,
    encoding: Option<OsString>,
    message: Vec<u8>,
}

struct Author {
    name: OsString,
    email: OsString,
    date: OsString,
}

/// Commits that could not be done again.
pub(super) struct Clash {
    pub commit: Commit,
    pub files: Vec<PathBuf>,
}

impl Git<'_> {
    /// The tree of two commits together, or the files that both change.
    pub(super) fn merged_tree(
        &self,
        within: &Path,
        ours: &Commit,
        theirs: &Commit,
    ) -> Result<Result<String, Vec<PathBuf>>, Error> {
        let call = self.call(&["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"]);
        let answer = call.word(ours).word(theirs).within(within).answer()?;
        let entries = answer.entries();
        let (tree, files) = entries.split_first().map_or((&b""[..], &[][..]), |(tree, files)| (tree, files));
        match answer.code {
            0 => Ok(Ok(Commit::new(&String::from_utf8_lossy(tree))?.to_string())),
            1 => Ok(Err(paths(files.iter().copied()))),
            129 => Err(Error::TooOld { said: answer.said }),
            _ => Err(Error::Failed { command: "merge-tree".to_owned(), said: answer.said }),
        }
    }

    /// A commit of a tree. The message is not looked at.
    pub(super) fn commit_tree(
        &self,
        tree: &str,
        parents: &[&Commit],
        message: impl Into<Vec<u8>>,
    ) -> Result<Commit, Error> {
        let call = self.call(&["commit-tree", tree]).signed()?;
        let call = parents.iter().fold(call, |call, parent| call.word("-p").word(parent));
        let commit = call.word("-F").word("-").stdin(message).commit()?;
        self.known.keep_tree(&commit, tree);
        Ok(commit)
    }

    /// Does the commits that are in `head` and not in `onto` again, on top of `onto`, and of them those after `start`. Those
    /// that change nothing there are left out, and those whose changes `onto` has in other commits.
    pub(super) fn replay(
        &self,
        within: &Path,
        start: Option<&Commit>,
        head: &Commit,
        onto: &Commit,
    ) -> Result<Result<Commit, Box<Clash>>, Error> {
        let list = self.call(&["rev-list", "--reverse", "--topo-order", "--no-merges", "--parents"]);
        let list = list.word("--cherry-pick").word("--right-only").word(format!("{onto}...{head}"));
        let list = start.into_iter().fold(list, |list, start| list.word(format!("^{start}"))).done()?.line();
        let (mut tip, mut tree) = (onto.clone(), self.tree(onto)?);
        for line in list.lines() {
            let mut ids = line.split(' ').map(Commit::new);
            let (Some(commit), parent) = (ids.next().transpose()?, ids.next().transpose()?) else { continue };
            // Git looks for where two commits parted by itself. This one has the tip's tree, and parted at the parent.
            let parents: Vec<_> = parent.iter().collect();
            let stand_in = self.commit_tree(&tree, &parents, "stand-in\n")?;
            let merged = match self.merged_tree(within, &stand_in, &commit)? {
                Ok(merged) => merged,
                Err(files) => return Ok(Err(Box::new(Clash { commit, files }))),
            };
            if merged != tree {
                tip = self.said_again(&merged, &tip, &commit)?;
                tree = merged;
            }
        }
        Ok(Ok(tip))
    }

    fn said_again(&self, tree: &str, parent: &Commit, commit: &Commit) -> Result<Commit, Error> {
        let saying = Saying::read(&self.call(&["cat-file", "commit"]).word(commit).done()?.bytes);
        let mut call = self.call(&["commit-tree", tree, "-p"]).word(parent).signed()?;
        if let Some(author) = saying.author {
            call = call.variable("GIT_AUTHOR_NAME", author.name).variable("GIT_AUTHOR_EMAIL", author.email);
            call = call.variable("GIT_AUTHOR_DATE", author.date);
        }
        if let Some(encoding) = saying.encoding {
            let mut setting = OsString::from("i18n.commitEncoding=");
            setting.push(encoding);
            call = call.set(setting);
        }
        call.word("-F").word("-").stdin(saying.message).commit()
    }
}

impl Saying {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
        let message = bytes.get(end + 2..).unwrap_or_default().to_vec();
        let header = |name: &[u8]| bytes[..end].split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name));
        let encoding = header(b"encoding ").map(|name| OsString::from_vec(name.to_vec()));
        Self { author: header(b"author ").and_then(Author::read), encoding, message }
    }
}

impl Author {
    /// `A B <a@b> 1700000000 +0100`. An author without a name is none that git would take again.
    fn read(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'<')?;
        let close = line.iter().rposition(|byte| *byte == b'>').filter(|close| *close > open)?;
        let name = line[..open].trim_ascii();
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let date = [b"@", line[close + 1..].trim_ascii()].concat();
        (!name.is_empty()).then(|| Self { name: text(name), email: text(&line[open + 1..close]), date: text(&date) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_commit_says_is_read_byte_by_byte() {
        let saying = Saying::read(b"tree x\nauthor A B <a@b> 17 +0100\nencoding latin1\n\nsubject\n\nbody \xff\n");
        let author = saying.author.expect("there is one");
        assert_eq!((author.name, author.email, author.date), ("A B".into(), "a@b".into(), "@17 +0100".into()));
        assert_eq!(saying.encoding, Some("latin1".into()));
        assert_eq!(saying.message, b"subject\n\nbody \xff\n");
        assert!(Author::read(b" <a@b> 17 +0100").is_none());
        assert!(Author::read(b"no address").is_none());
    }
}
