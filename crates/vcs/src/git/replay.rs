//! Commits made without a tree on the disk: merges of two commits, and commits replayed on top of another.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Error, GitClient, GitCommitId, parse_paths};

/// A commit that could not be replayed.
pub(super) struct ReplayConflict {
    pub commit: GitCommitId,
    pub files: Vec<PathBuf>,
}

impl GitClient<'_> {
    /// Returns the merged tree of two commits, or the files that both change.
    pub(super) fn merge_trees(
        &self,
        within: &Path,
        ours: &GitCommitId,
        theirs: &GitCommitId,
    ) -> Result<Result<String, Vec<PathBuf>>, Error> {
        let call = self.build_command(&["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"]);
        let answer = call.with_argument(ours).with_argument(theirs).in_directory(within).run_unchecked()?;
        let entries = answer.split_entries();
        let (tree, files) = entries.split_first().map_or((&b""[..], &[][..]), |(tree, files)| (tree, files));
        match answer.code {
            0 => Ok(Ok(GitCommitId::new(&String::from_utf8_lossy(tree))?.to_string())),
            1 => Ok(Err(parse_paths(files.iter().copied()))),
            129 => Err(Error::TooOld { said: answer.said }),
            _ => Err(Error::Failed { command: "merge-tree".to_owned(), said: answer.said }),
        }
    }

    /// Makes a commit of a tree. Does not check the message.
    pub(super) fn commit_tree(
        &self,
        tree: &str,
        parents: &[&GitCommitId],
        message: impl Into<Vec<u8>>,
    ) -> Result<GitCommitId, Error> {
        let call = self.build_command(&["commit-tree", tree]).with_identity()?;
        let call = parents.iter().fold(call, |call, parent| call.with_argument("-p").with_argument(parent));
        let commit = call.with_argument("-F").with_argument("-").with_stdin(message).run_for_commit()?;
        self.known.record_tree(&commit, tree);
        Ok(commit)
    }

    /// Replays the commits of `head` that `onto` does not have, and of these only the ones after `start`, on top of `onto`.
    /// Skips commits that change nothing there, and those whose changes `onto` has in other commits.
    pub(super) fn replay_commits(
        &self,
        within: &Path,
        start: Option<&GitCommitId>,
        head: &GitCommitId,
        onto: &GitCommitId,
    ) -> Result<Result<GitCommitId, Box<ReplayConflict>>, Error> {
        let list = self.build_command(&["rev-list", "--reverse", "--topo-order", "--no-merges", "--parents"]);
        let list =
            list.with_argument("--cherry-pick").with_argument("--right-only").with_argument(format!("{onto}...{head}"));
        let list = start
            .into_iter()
            .fold(list, |list, start| list.with_argument(format!("^{start}")))
            .run_checked()?
            .trimmed_text();
        let (mut tip, mut tree) = (onto.clone(), self.tree_id(onto)?);
        for line in list.lines() {
            let mut ids = line.split(' ').map(GitCommitId::new);
            let (Some(commit), parent) = (ids.next().transpose()?, ids.next().transpose()?) else { continue };
            // Git computes the merge base by itself. This stand-in has the tip's tree, and its merge base with the commit
            // is the commit's parent.
            let parents: Vec<_> = parent.iter().collect();
            let stand_in = self.commit_tree(&tree, &parents, "stand-in\n")?;
            let merged = match self.merge_trees(within, &stand_in, &commit)? {
                Ok(merged) => merged,
                Err(files) => return Ok(Err(Box::new(ReplayConflict { commit, files }))),
            };
            if merged != tree {
                tip = self.copy_commit(&merged, &tip, &commit)?;
                tree = merged;
            }
        }
        Ok(Ok(tip))
    }

    /// Makes a commit of a tree with the author and the message of another, both as UTF-8.
    fn copy_commit(&self, tree: &str, parent: &GitCommitId, commit: &GitCommitId) -> Result<GitCommitId, Error> {
        let logged =
            self.build_command(&["log", "-1", "--date=raw", "--format=%an%x00%ae%x00@%ad%x00%B", "--no-mailmap"]);
        let logged = logged
            .with_argument("--no-show-signature")
            .with_argument("--encoding=UTF-8")
            .with_argument(commit)
            .with_argument("--")
            .run_checked()?
            .bytes;
        let mut parts = logged.splitn(4, |byte| *byte == 0);
        let mut next = || parts.next().unwrap_or_default();
        let (name, email, date, message) = (next(), next(), next(), next());
        let call = self.build_command(&["commit-tree", tree, "-p"]).with_setting("i18n.commitEncoding=UTF-8");
        let mut call = call.with_argument(parent).with_identity()?;
        // Git accepts no author without a name.
        if !name.trim_ascii().is_empty() {
            let author =
                [("GIT_AUTHOR_NAME", name), ("GIT_AUTHOR_EMAIL", email), ("GIT_AUTHOR_DATE", date)].into_iter();
            call = author.fold(call, |call, (key, value)| call.with_variable(key, OsStr::from_bytes(value)));
        }
        // The log adds a line end behind the message.
        call.with_argument("-F")
            .with_argument("-")
            .with_stdin(message.strip_suffix(b"\n").unwrap_or(message))
            .run_for_commit()
    }
}
