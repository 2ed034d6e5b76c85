//! Facts that git has reported and that need no second call.
//!
//! Invariants:
//! - Facts about commits hold as long as the process runs: an id stands for the content and the history of its commit.
//! - Facts about the configuration and the base hold until a program runs that could change them (`forget_changeable_facts`).
//!
//! A shallow clone that is deepened during a run is the exception: the run may continue with the history that it saw first.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::{BaseBranch, Error, GitClient, GitCommitId};

/// Keys of git's configuration with their values, in the order in which git reads them.
pub(super) type ConfigEntries = Rc<[(String, String)]>;

/// Facts that git has reported about a repository. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KnownFacts(pub(super) Rc<RepositoryFacts>);

#[derive(Debug, Default)]
pub(super) struct RepositoryFacts {
    commits: RefCell<HashSet<GitCommitId>>,
    trees: RefCell<HashMap<GitCommitId, String>>,
    /// By two commits, the lesser id first.
    merge_bases: RefCell<HashMap<(GitCommitId, GitCommitId), GitCommitId>>,
    pub(super) settings: RefCell<Option<ConfigEntries>>,
    pub(super) base: RefCell<Option<BaseBranch>>,
}

impl KnownFacts {
    /// Forgets the configuration and the base after a program that may have changed them.
    pub fn forget_changeable_facts(&self) {
        self.0.settings.take();
        self.0.base.take();
    }

    pub(super) fn record_commit(&self, commit: &GitCommitId) {
        self.0.commits.borrow_mut().insert(commit.clone());
    }

    pub(super) fn record_tree(&self, commit: &GitCommitId, tree: &str) {
        self.0.trees.borrow_mut().insert(commit.clone(), tree.to_owned());
    }
}

impl GitClient<'_> {
    /// Returns whether the repository has a commit.
    pub(super) fn has_commit(&self, commit: &GitCommitId) -> Result<bool, Error> {
        let facts = &self.known.0;
        if facts.commits.borrow().contains(commit) {
            return Ok(true);
        }
        let call =
            self.build_command(&["rev-parse", "--verify", "--quiet"]).with_argument(format!("{commit}^{{commit}}"));
        let is_there = call.run_unchecked()?.code == 0;
        if is_there {
            self.known.record_commit(commit);
        }
        Ok(is_there)
    }

    /// Returns the id of a commit's tree.
    pub(super) fn tree_id(&self, commit: &GitCommitId) -> Result<String, Error> {
        if let Some(tree) = self.known.0.trees.borrow().get(commit) {
            return Ok(tree.clone());
        }
        let tree = self
            .build_command(&["rev-parse", "--verify", "--quiet"])
            .with_argument(format!("{commit}^{{tree}}"))
            .run_checked()?
            .trimmed_text();
        self.known.record_tree(commit, &tree);
        Ok(tree)
    }

    /// Returns whether one commit is the other, or its descendant.
    pub(super) fn contains_commit(&self, commit: &GitCommitId, earlier: &GitCommitId) -> Result<bool, Error> {
        Ok(commit == earlier || self.find_merge_base(commit, earlier)?.as_ref() == Some(earlier))
    }

    /// Returns the commit where two histories parted.
    pub fn merge_base(&self, one: &GitCommitId, other: &GitCommitId) -> Result<GitCommitId, Error> {
        self.find_merge_base(one, other)?.ok_or_else(|| {
            let said = format!("{} and {} have nothing in common", one.short(), other.short());
            Error::Failed { command: "merge-base".to_owned(), said }
        })
    }

    /// Returns the same, or `None` for unrelated histories. If one commit is an ancestor of the other, it is the merge base.
    fn find_merge_base(&self, one: &GitCommitId, other: &GitCommitId) -> Result<Option<GitCommitId>, Error> {
        let pair = if one <= other { (one.clone(), other.clone()) } else { (other.clone(), one.clone()) };
        if let Some(base) = self.known.0.merge_bases.borrow().get(&pair) {
            return Ok(Some(base.clone()));
        }
        let answer = self.build_command(&["merge-base"]).with_argument(one).with_argument(other).run_unchecked()?;
        match answer.code {
            0 => {}
            1 => return Ok(None),
            _ => return Err(Error::Failed { command: "merge-base".to_owned(), said: answer.said }),
        }
        let base = GitCommitId::new(&answer.trimmed_text())?;
        self.known.0.merge_bases.borrow_mut().insert(pair, base.clone());
        Ok(Some(base))
    }
}
