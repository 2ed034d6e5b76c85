//! Commits made without a tree on the disk: merges of two commits, and commits replayed on top of another.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Commit, Error, Git, paths};

/// A commit that could not be replayed.
pub(super) struct Clash {
    pub commit: Commit,
    pub files: Vec<PathBuf>,
}

impl Git<'_> {
    /// Returns the merged tree of two commits, or the files that both change.
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

    /// Makes a commit of a tree. Does not check the message.
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

    /// Replays the commits of `head` that `onto` does not have, and of these only the ones after `start`, on top of `onto`.
    /// Skips commits that change nothing there, and those whose changes `onto` has in other commits.
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
            // Git computes the merge base by itself. This stand-in has the tip's tree, and its merge base with the commit
            // is the commit's parent.
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

    /// Makes a commit of a tree with the author and the message of another, both as UTF-8.
    fn said_again(&self, tree: &str, parent: &Commit, commit: &Commit) -> Result<Commit, Error> {
        let told = self.call(&["log", "-1", "--date=raw", "--format=%an%x00%ae%x00@%ad%x00%B", "--no-mailmap"]);
        let told = told.word("--no-show-signature").word("--encoding=UTF-8").word(commit).word("--").done()?.bytes;
        let mut parts = told.splitn(4, |byte| *byte == 0);
        let mut next = || parts.next().unwrap_or_default();
        let (name, email, date, message) = (next(), next(), next(), next());
        let call = self.call(&["commit-tree", tree, "-p"]).set("i18n.commitEncoding=UTF-8");
        let mut call = call.word(parent).signed()?;
        // Git accepts no author without a name.
        if !name.trim_ascii().is_empty() {
            let author =
                [("GIT_AUTHOR_NAME", name), ("GIT_AUTHOR_EMAIL", email), ("GIT_AUTHOR_DATE", date)].into_iter();
            call = author.fold(call, |call, (key, value)| call.variable(key, OsStr::from_bytes(value)));
        }
        // The log adds a line end behind the message.
        call.word("-F").word("-").stdin(message.strip_suffix(b"\n").unwrap_or(message)).commit()
    }
}
