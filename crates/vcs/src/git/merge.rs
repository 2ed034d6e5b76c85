//! Merges a branch into its base: builds a commit without a tree, and moves the base to it.
//!
//! Invariants:
//! - The base moves only from its expected commit. With a remote that is the remote's branch, and no local one moves.
//! - The merge has exactly the checked content: the branch must contain the base's tip.

use std::path::PathBuf;

use super::error::list_files;
use super::operation::operation_in_progress;
use super::{BaseBranch, BranchName, Error, GitClient, GitCommitId};
use crate::forge::ForgeMergeMethod;

/// The method of a merge, and the message of its commit.
#[derive(Debug, Clone, Copy)]
pub struct MergePlan<'w> {
    /// A merge commit, one squashed commit on top of the base, or a fast-forward of the base to the branch.
    pub method: ForgeMergeMethod,
    pub message: &'w str,
}

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    Merged {
        commit: GitCommitId,
    },
    /// The base contains the branch already; the commit is the merge that brought it, or the branch's own tip.
    AlreadyMerged {
        commit: GitCommitId,
    },
}

/// The treatment of a local base that is checked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfCheckedOut {
    Refuse,
    /// A person has asked for this: the tree is updated, if it is clean.
    FastForward,
}

/// A tree that a merge into its checked-out branch cannot update.
#[derive(Debug)]
pub struct UncleanTree {
    pub path: PathBuf,
    /// The remedy for a person.
    pub remedy: String,
}

impl GitClient<'_> {
    /// Merges a commit into a base whose tip was just read.
    pub fn merge_into_base(
        &self,
        base: &BaseBranch,
        head: &GitCommitId,
        way: MergePlan<'_>,
        if_checked_out: IfCheckedOut,
    ) -> Result<MergeOutcome, Error> {
        self.repository.refuse_reftable()?;
        if let Some(commit) = self.find_merge_commit(base, head, way.method)? {
            return Ok(MergeOutcome::AlreadyMerged { commit });
        }
        if !self.contains_commit(head, &base.commit)? {
            return Err(Error::Stale { base: base.commit.clone(), head: head.clone() });
        }
        let commit = || {
            let message = way.message.replace('\0', "");
            match way.method {
                ForgeMergeMethod::Merge => self.commit_tree(&self.tree_id(head)?, &[&base.commit, head], message),
                ForgeMergeMethod::Squash => self.commit_tree(&self.tree_id(head)?, &[&base.commit], message),
                ForgeMergeMethod::Rebase => Ok(head.clone()),
            }
        };
        let commit = match &base.remote {
            Some(remote) => {
                let commit = commit()?;
                self.push_with_lease(remote, &base.branch, &commit, Some(&base.commit))?;
                commit
            }
            None => {
                let place = self.require_clean_checkout(&base.branch, if_checked_out)?;
                self.merge_locally(base, commit()?, place)?
            }
        };
        Ok(MergeOutcome::Merged { commit })
    }

    /// Returns the commit that brought a branch into a base.
    pub fn find_merge_commit(
        &self,
        base: &BaseBranch,
        head: &GitCommitId,
        method: ForgeMergeMethod,
    ) -> Result<Option<GitCommitId>, Error> {
        if self.contains_commit(&base.commit, head)? {
            return self.find_bringing_merge(&base.commit, head).map(Some);
        }
        if method == ForgeMergeMethod::Squash { self.find_squash_commit(&base.commit, head) } else { Ok(None) }
    }

    /// Returns the squashed commit of a branch: the first one on top of the fork point, with the same files.
    fn find_squash_commit(&self, base: &GitCommitId, head: &GitCommitId) -> Result<Option<GitCommitId>, Error> {
        let below = self.merge_base(base, head)?;
        if below == *base {
            return Ok(None);
        }
        let call = self.build_command(&["rev-list", "--first-parent", "--reverse", "--parents"]).with_argument(base);
        let listed = call.with_argument(format!("^{below}")).run_checked()?.trimmed_text();
        let first = listed.lines().next().and_then(|line| line.split_once(' '));
        let Some((commit, _)) = first.filter(|(_, parents)| *parents == below.as_str()) else { return Ok(None) };
        let (commit, tree) = (GitCommitId::new(commit)?, self.tree_id(head)?);
        let is_it = self.tree_id(&commit)? == tree && self.tree_id(&below)? != tree;
        Ok(is_it.then_some(commit))
    }

    fn merge_locally(
        &self,
        base: &BaseBranch,
        commit: GitCommitId,
        place: Option<PathBuf>,
    ) -> Result<GitCommitId, Error> {
        let moved = || Error::Moved { branch: base.branch.clone() };
        if self.resolve_ref(&base.branch.full_ref())?.as_ref() != Some(&base.commit) {
            return Err(moved());
        }
        if let Some(place) = place {
            let call = self.build_command(&["merge", "--ff-only", "--quiet", "--no-overwrite-ignore", "--no-stat"]);
            call.with_argument(&commit).in_directory(&place).with_identity()?.run_checked()?;
            return Ok(commit);
        }
        let call = self.build_command(&["update-ref", "-m", "windlass: merge"]).with_argument(base.branch.full_ref());
        match call.with_argument(&commit).with_argument(&base.commit).run_checked() {
            Err(Error::Failed { said, .. }) if said.contains("but expected") => Err(moved()),
            done => done.map(|_| commit),
        }
    }

    /// Returns the clean tree that has to be updated, if the branch is checked out.
    fn require_clean_checkout(
        &self,
        branch: &BranchName,
        if_checked_out: IfCheckedOut,
    ) -> Result<Option<PathBuf>, Error> {
        let Some(path) = self.repository.checkout_path(branch) else { return Ok(None) };
        if if_checked_out == IfCheckedOut::Refuse {
            return Err(Error::CheckedOut { branch: branch.clone(), path });
        }
        // Admin files of the main worktree are in the common directory.
        let admin =
            self.repository.worktree_entry(&path).map_or_else(|| self.repository.common.clone(), |entry| entry.admin);
        if let Some(operation) = operation_in_progress(&admin) {
            return Err(Error::Unfinished { operation, files: Vec::new() });
        }
        let files = self.find_uncommitted(&path, "no")?;
        if files.is_empty() { Ok(Some(path)) } else { Err(Error::Dirty { path, files }) }
    }

    /// Returns the tree that has a branch checked out, if a merge could not update it now.
    pub fn find_unclean_tree(&self, branch: &BranchName) -> Result<Option<UncleanTree>, Error> {
        let Some(path) = self.repository.checkout_path(branch) else { return Ok(None) };
        let remedy = match self.require_clean_checkout(branch, IfCheckedOut::FastForward) {
            Ok(_) => return Ok(None),
            Err(Error::Dirty { files, .. }) => {
                format!("commit or stash {}, or switch that tree to another branch", list_files(&files))
            }
            Err(Error::Unfinished { operation, .. }) => format!("finish or abort {operation}"),
            Err(error) => return Err(error),
        };
        Ok(Some(UncleanTree { path, remedy }))
    }

    /// Returns the merge that brought a commit into a base.
    fn find_bringing_merge(&self, base: &GitCommitId, head: &GitCommitId) -> Result<GitCommitId, Error> {
        let call = self.build_command(&[
            "rev-list",
            "--first-parent",
            "--ancestry-path",
            "--merges",
            "--parents",
            "--reverse",
        ]);
        let listed = call.with_argument(base).with_argument(format!("^{head}")).run_checked()?.trimmed_text();
        let mut merges = listed.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let brought = merges.clone().find(|ids| ids.iter().skip(2).any(|parent| *parent == head.as_str()));
        match brought.or_else(|| merges.next()).as_deref() {
            Some([merge, ..]) => GitCommitId::new(merge),
            _ => Ok(head.clone()),
        }
    }
}
