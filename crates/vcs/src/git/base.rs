//! Where work starts from, and where it is merged to.
//!
//! The branch is the one that is configured; else what the remote calls its own (`origin/HEAD`); else `main`, `master` or
//! `trunk`; else `init.defaultBranch`; else what is checked out. What is checked out comes last, so that the base does not
//! change whenever a person looks at another branch; and a detached HEAD is no trouble.

use super::ask::Answer;
use super::trouble::without_credentials;
use super::{Branch, Commit, Error, Git, RemoteName};

/// How often a fetch is tried again that met another one.
const TRIES: usize = 5;
const USUAL: [&str; 3] = ["main", "master", "trunk"];

/// The branch that work starts from, and its tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its name on the remote, if there is one.
    pub branch: Branch,
    /// Where the branch that counts is; without one it is the local branch.
    pub remote: Option<RemoteName>,
    pub commit: Commit,
    pub seen: Seen,
}

/// When the tip was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Now,
    /// The remote could not be reached: it is where the branch was last seen.
    LastKnown {
        why: String,
    },
}

impl Base {
    /// As people write it: `origin/main`, or `main`.
    pub fn shown(&self) -> String {
        self.remote.as_ref().map_or_else(|| self.branch.to_string(), |remote| format!("{remote}/{}", self.branch))
    }
}

impl Git<'_> {
    /// The base and its tip, fetched where there is a remote.
    pub fn base(&self, configured: Option<&Branch>) -> Result<Base, Error> {
        let (branch, on_remote) = self.meant_base(configured)?;
        if let Some((remote, on_remote)) = on_remote
            && let Some(base) = self.fetched(remote, on_remote)?
        {
            return Ok(base);
        }
        match self.resolve(&branch.full())? {
            Some(commit) => Ok(Base { branch, remote: None, commit, seen: Seen::Now }),
            None => Err(self.no_base(branch)?),
        }
    }

    /// The branch that is the base, and what it is on a remote, if it is meant to be on one.
    pub(super) fn meant_base(
        &self,
        configured: Option<&Branch>,
    ) -> Result<(Branch, Option<(RemoteName, Branch)>), Error> {
        self.repository.refuse_reftable()?;
        let remotes = self.remotes()?;
        let usual = match &self.remote {
            Some(named) if !remotes.contains(named) => return Err(Error::UnknownRemote { remote: named.clone() }),
            Some(named) => Some(named.clone()),
            None => usual_remote(&remotes),
        };
        let branch = match configured {
            Some(branch) => branch.clone(),
            None => self.guess(usual.as_ref())?,
        };
        let on_remote = match self.upstream(&branch, &remotes)? {
            Some((remote, on_remote)) if self.remote.as_ref().is_none_or(|named| *named == remote) => {
                Some((remote, on_remote))
            }
            _ => usual.map(|remote| (remote, branch.clone())),
        };
        Ok((branch, on_remote))
    }

    /// Why there is no base.
    pub(super) fn no_base(&self, branch: Branch) -> Result<Error, Error> {
        Ok(match self.has_no_commits()? {
            true => Error::NoCommits { path: self.repository.root.clone() },
            false => Error::UnknownBase { branch },
        })
    }

    /// The address of a remote, without credentials: what a forge is found by.
    pub fn address(&self, remote: &RemoteName) -> Result<String, Error> {
        let answer = self.call(&["remote", "get-url", "--"]).word(remote).done()?;
        Ok(without_credentials(&answer.line()))
    }

    /// The tip of a branch of a remote. Nothing where the remote has never had such a branch.
    fn fetched(&self, remote: RemoteName, branch: Branch) -> Result<Option<Base>, Error> {
        let tracking = remote.tracking(&branch);
        let refspec = format!("+{}:{tracking}", branch.full());
        let mut answer = self.fetch(&remote, &refspec);
        // Somebody else fetched the same at the same moment.
        for _ in 0..TRIES {
            match &answer {
                Ok(found) if found.said.contains("cannot lock ref") => answer = self.fetch(&remote, &refspec),
                _ => break,
            }
        }
        let said = match answer {
            Ok(answer) if answer.code == 0 => {
                let commit = self.resolve(&tracking)?;
                return Ok(commit.map(|commit| Base { branch, remote: Some(remote), commit, seen: Seen::Now }));
            }
            Ok(answer) if answer.said.contains("couldn't find remote ref") => {
                // One that was there must not silently become the user's own.
                return if self.resolve(&tracking)?.is_some() { Err(Error::UnknownBase { branch }) } else { Ok(None) };
            }
            Ok(answer) => answer.said,
            Err(error @ Error::TimedOut { .. }) => error.to_string(),
            // Git says so of a remote that is a path, too.
            Err(Error::NotARepository { .. }) => "there is no repository".to_owned(),
            Err(error) => return Err(error),
        };
        match self.resolve(&tracking)? {
            Some(commit) => {
                Ok(Some(Base { branch, remote: Some(remote), commit, seen: Seen::LastKnown { why: said } }))
            }
            None => Err(Error::Unreachable { remote, said }),
        }
    }

    /// Fetches one branch and nothing else.
    fn fetch(&self, remote: &RemoteName, refspec: &str) -> Result<Answer, Error> {
        let call = self.call(&["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
        let call = call.word("--no-prune").word("--refmap=").word("--").word(remote).word(refspec);
        call.over_network()?.answer()
    }

    fn guess(&self, remote: Option<&RemoteName>) -> Result<Branch, Error> {
        if let Some(remote) = remote {
            let answer =
                self.call(&["symbolic-ref", "--quiet"]).word(format!("refs/remotes/{remote}/HEAD")).answer()?;
            let prefix = format!("refs/remotes/{remote}/");
            if let Some(branch) = answer.line().strip_prefix(&prefix).and_then(|name| Branch::new(name).ok()) {
                return Ok(branch);
            }
        }
        let default = self.setting("init.defaultBranch")?;
        let names = USUAL.into_iter().chain(default.as_deref());
        for branch in names.filter_map(|name| Branch::new(name).ok()) {
            let tracking = remote.map(|remote| remote.tracking(&branch));
            for full in tracking.into_iter().chain([branch.full()]) {
                if self.resolve(&full)?.is_some() {
                    return Ok(branch);
                }
            }
        }
        let head = self.call(&["symbolic-ref", "--quiet", "HEAD"]).answer()?;
        match Branch::from_full(&head.line()) {
            Some(branch) => Ok(branch),
            None if self.has_no_commits()? => Err(Error::NoCommits { path: self.repository.root.clone() }),
            None => Err(Error::NoBase { tried: USUAL.join(", ") }),
        }
    }

    pub(super) fn remotes(&self) -> Result<Vec<RemoteName>, Error> {
        let answer = self.call(&["remote"]).done()?;
        Ok(answer.line().lines().filter_map(|name| RemoteName::new(name).ok()).collect())
    }

    /// What a local branch is said to follow.
    pub(super) fn upstream(
        &self,
        branch: &Branch,
        remotes: &[RemoteName],
    ) -> Result<Option<(RemoteName, Branch)>, Error> {
        let remote = self.setting(&format!("branch.{branch}.remote"))?;
        let Some(remote) = remotes.iter().find(|known| Some(known.as_str()) == remote.as_deref()) else {
            return Ok(None);
        };
        let merge = self.setting(&format!("branch.{branch}.merge"))?;
        let on_remote = merge.as_deref().and_then(Branch::from_full).unwrap_or_else(|| branch.clone());
        Ok(Some((remote.clone(), on_remote)))
    }

    fn has_no_commits(&self) -> Result<bool, Error> {
        Ok(self.call(&["rev-list", "--all", "--max-count=1"]).done()?.bytes.is_empty())
    }

    /// The tip of a local branch.
    pub fn tip(&self, branch: &Branch) -> Result<Option<Commit>, Error> {
        self.resolve(&branch.full())
    }

    /// Whether files of the repository are left out of the user's tree.
    pub(super) fn refuse_sparse(&self) -> Result<(), Error> {
        let answer = self.call(&["config", "--type=bool", "--get", "core.sparseCheckout"]).answer()?;
        if answer.line() == "true" { Err(Error::Sparse { path: self.repository.root.clone() }) } else { Ok(()) }
    }
}

/// The remote that counts where nothing else is said: `origin`, or the only one.
pub(super) fn usual_remote(remotes: &[RemoteName]) -> Option<RemoteName> {
    let origin = remotes.iter().find(|remote| remote.as_str() == "origin");
    origin.or(remotes.first().filter(|_| remotes.len() == 1)).cloned()
}
