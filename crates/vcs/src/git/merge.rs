//! Merges a branch into its base: builds a commit without a tree, and moves the base to it.
//!
//! Invariants:
//! - The base moves only from its expected commit. With a remote that is the remote's branch, and no local one moves.
//! - The merge has exactly the checked content: the branch must contain the base's tip.

use std::path::PathBuf;

use super::error::listed;
use super::unfinished::under_way;
use super::{Base, Branch, Commit, Error, Git};
use crate::forge::Method;

/// The method of a merge, and the message of its commit.
#[derive(Debug, Clone, Copy)]
pub struct Way<'w> {
    /// A merge commit, one squashed commit on top of the base, or a fast-forward of the base to the branch.
    pub method: Method,
    pub message: &'w str,
}

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    Now {
        commit: Commit,
    },
    /// The base contains the branch already; the commit is the merge that brought it, or the branch's own tip.
    Already {
        commit: Commit,
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

impl Git<'_> {
    /// Merges a commit into a base whose tip was just read.
    pub fn merge(
        &self,
        base: &Base,
        head: &Commit,
        way: Way<'_>,
        if_checked_out: IfCheckedOut,
    ) -> Result<Merged, Error> {
        self.repository.refuse_reftable()?;
        if let Some(commit) = self.merged_as(base, head, way.method)? {
            return Ok(Merged::Already { commit });
        }
        if !self.contains(head, &base.commit)? {
            return Err(Error::Stale { base: base.commit.clone(), head: head.clone() });
        }
        let commit = || {
            let message = way.message.replace('\0', "");
            match way.method {
                Method::Merge => self.commit_tree(&self.tree(head)?, &[&base.commit, head], message),
                Method::Squash => self.commit_tree(&self.tree(head)?, &[&base.commit], message),
                Method::Rebase => Ok(head.clone()),
            }
        };
        let commit = match &base.remote {
            Some(remote) => {
                let commit = commit()?;
                self.send(remote, &base.branch, &commit, Some(&base.commit))?;
                commit
            }
            None => {
                let place = self.place_of(&base.branch, if_checked_out)?;
                self.merge_locally(base, commit()?, place)?
            }
        };
        Ok(Merged::Now { commit })
    }

    /// Returns the commit that brought a branch into a base.
    pub fn merged_as(&self, base: &Base, head: &Commit, method: Method) -> Result<Option<Commit>, Error> {
        if self.contains(&base.commit, head)? {
            return self.brought_by(&base.commit, head).map(Some);
        }
        if method == Method::Squash { self.squashed_as(&base.commit, head) } else { Ok(None) }
    }

    /// Returns the squashed commit of a branch: the first one on top of the fork point, with the same files.
    fn squashed_as(&self, base: &Commit, head: &Commit) -> Result<Option<Commit>, Error> {
        let below = self.merge_base(base, head)?;
        if below == *base {
            return Ok(None);
        }
        let call = self.call(&["rev-list", "--first-parent", "--reverse", "--parents"]).word(base);
        let listed = call.word(format!("^{below}")).done()?.line();
        let first = listed.lines().next().and_then(|line| line.split_once(' '));
        let Some((commit, _)) = first.filter(|(_, parents)| *parents == below.as_str()) else { return Ok(None) };
        let (commit, tree) = (Commit::new(commit)?, self.tree(head)?);
        let is_it = self.tree(&commit)? == tree && self.tree(&below)? != tree;
        Ok(is_it.then_some(commit))
    }

    fn merge_locally(&self, base: &Base, commit: Commit, place: Option<PathBuf>) -> Result<Commit, Error> {
        let moved = || Error::Moved { branch: base.branch.clone() };
        if self.resolve(&base.branch.full())?.as_ref() != Some(&base.commit) {
            return Err(moved());
        }
        if let Some(place) = place {
            let call = self.call(&["merge", "--ff-only", "--quiet", "--no-overwrite-ignore", "--no-stat"]);
            call.word(&commit).within(&place).signed()?.done()?;
            return Ok(commit);
        }
        let call = self.call(&["update-ref", "-m", "windlass: merge"]).word(base.branch.full());
        match call.word(&commit).word(&base.commit).done() {
            Err(Error::Failed { said, .. }) if said.contains("but expected") => Err(moved()),
            done => done.map(|_| commit),
        }
    }

    /// Returns the clean tree that has to be updated, if the branch is checked out.
    fn place_of(&self, branch: &Branch, if_checked_out: IfCheckedOut) -> Result<Option<PathBuf>, Error> {
        let Some(path) = self.repository.checked_out(branch) else { return Ok(None) };
        if if_checked_out == IfCheckedOut::Refuse {
            return Err(Error::CheckedOut { branch: branch.clone(), path });
        }
        // Admin files of the main worktree are in the common directory.
        let admin = self.repository.entry(&path).map_or_else(|| self.repository.common.clone(), |entry| entry.admin);
        if let Some(operation) = under_way(&admin) {
            return Err(Error::Unfinished { operation, files: Vec::new() });
        }
        let files = self.uncommitted(&path, "no")?;
        if files.is_empty() { Ok(Some(path)) } else { Err(Error::Dirty { path, files }) }
    }

    /// Returns the tree that has a branch checked out, if a merge could not update it now.
    pub fn find_unclean_tree(&self, branch: &Branch) -> Result<Option<UncleanTree>, Error> {
        let Some(path) = self.repository.checked_out(branch) else { return Ok(None) };
        let remedy = match self.place_of(branch, IfCheckedOut::FastForward) {
            Ok(_) => return Ok(None),
            Err(Error::Dirty { files, .. }) => {
                format!("commit or stash {}, or switch that tree to another branch", listed(&files))
            }
            Err(Error::Unfinished { operation, .. }) => format!("finish or abort {operation}"),
            Err(error) => return Err(error),
        };
        Ok(Some(UncleanTree { path, remedy }))
    }

    /// Returns the merge that brought a commit into a base.
    fn brought_by(&self, base: &Commit, head: &Commit) -> Result<Commit, Error> {
        let call = self.call(&["rev-list", "--first-parent", "--ancestry-path", "--merges", "--parents", "--reverse"]);
        let listed = call.word(base).word(format!("^{head}")).done()?.line();
        let mut merges = listed.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let brought = merges.clone().find(|ids| ids.iter().skip(2).any(|parent| *parent == head.as_str()));
        match brought.or_else(|| merges.next()).as_deref() {
            Some([merge, ..]) => Commit::new(merge),
            _ => Ok(head.clone()),
        }
    }
}
