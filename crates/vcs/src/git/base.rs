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
    /// Why the remote could not be reached, where it could not: the commit is where the branch was last seen.
    pub stale: Option<String>,
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
        let (branch, on_remote) = self.aim(configured)?;
        let fetched = on_remote.map(|(remote, branch)| self.fetched(remote, branch)).transpose()?.flatten();
        let base = fetched.map_or_else(|| self.local(branch), Ok)?;
        self.known.0.base.replace(Some(base.clone()));
        Ok(base)
    }

    /// The same as it was when it was last asked for, if no program has run since.
    pub fn recent_base(&self, configured: Option<&Branch>) -> Result<Base, Error> {
        let known = self.known.0.base.borrow().clone();
        known.map_or_else(|| self.base(configured), Ok)
    }

    /// The base and its tip, as far as they are known here. Only one that is not known here is fetched.
    pub fn known_base(&self, configured: Option<&Branch>) -> Result<Base, Error> {
        let (branch, on_remote) = self.aim(configured)?;
        let is_on_remote = on_remote.is_some();
        if let Some((remote, branch)) = on_remote
            && let Some(commit) = self.resolve(&remote.tracking(&branch))?
        {
            return Ok(Base { branch, remote: Some(remote), commit, stale: None });
        }
        match self.local(branch) {
            // It may be there, and never have been fetched.
            Err(Error::UnknownBase { .. }) if is_on_remote => self.base(configured),
            found => found,
        }
    }

    /// Returns the local branch that work is merged into, by names alone; none where the branch of a remote counts.
    pub fn local_base(&self, configured: Option<&Branch>) -> Result<Option<Branch>, Error> {
        let (branch, on_remote) = self.aim(configured)?;
        Ok(on_remote.is_none().then_some(branch))
    }

    fn local(&self, branch: Branch) -> Result<Base, Error> {
        match self.resolve(&branch.full())? {
            Some(commit) => Ok(Base { branch, remote: None, commit, stale: None }),
            None if self.has_no_commits()? => Err(Error::NoCommits { path: self.repository.root.clone() }),
            None => Err(Error::UnknownBase { branch }),
        }
    }

    /// Where work is meant to go, by names alone: a branch here, and the one that counts instead where there is a remote.
    fn aim(&self, configured: Option<&Branch>) -> Result<(Branch, Option<(RemoteName, Branch)>), Error> {
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
        let followed = self.upstream(&branch, &remotes)?;
        let followed = followed.filter(|(remote, _)| self.remote.as_ref().is_none_or(|named| named == remote));
        let on_remote = followed.or_else(|| usual.map(|remote| (remote, branch.clone())));
        Ok((branch, on_remote))
    }

    /// The address of a remote, without credentials: what a forge is found by.
    pub fn address(&self, remote: &RemoteName) -> Result<String, Error> {
        let settings = self.settings()?;
        let key = format!("remote.{remote}.url");
        let urls: Vec<&String> = settings.iter().filter(|(name, _)| *name == key).map(|(_, url)| url).collect();
        let is_rewritten = settings.iter().any(|(name, _)| name.starts_with("url."));
        let url = match urls[..] {
            [url] if !is_rewritten => url.clone(),
            _ => self.call(&["remote", "get-url", "--"]).word(remote).done()?.line(),
        };
        Ok(without_credentials(&url))
    }

    /// The address of the remote that counts where nothing is said of a branch, if there is one.
    pub fn usual_address(&self) -> Result<Option<String>, Error> {
        let remotes = self.remotes()?;
        let remote = match &self.remote {
            Some(named) => remotes.iter().find(|remote| *remote == named).cloned(),
            None => usual_remote(&remotes),
        };
        remote.map(|remote| self.address(&remote)).transpose()
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
                commit.iter().for_each(|commit| self.known.keep_commit(commit));
                return Ok(commit.map(|commit| Base { branch, remote: Some(remote), commit, stale: None }));
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
            Some(commit) => Ok(Some(Base { branch, remote: Some(remote), commit, stale: Some(said) })),
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
            let own = self.repository.head_of_remote(remote.as_str());
            let name = own.as_deref().and_then(|full| full.strip_prefix(&format!("refs/remotes/{remote}/")));
            if let Some(branch) = name.and_then(|name| Branch::new(name).ok()) {
                return Ok(branch);
            }
        }
        let names = USUAL.into_iter().map(str::to_owned).chain(self.setting("init.defaultbranch")?);
        for branch in names.filter_map(|name| Branch::new(&name).ok()) {
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

    /// Every remote that the configuration tells the address of. Other settings are for one that may come to be.
    fn remotes(&self) -> Result<Vec<RemoteName>, Error> {
        let settings = self.settings()?;
        let names = settings.iter().filter_map(|(key, _)| key.strip_prefix("remote.")?.strip_suffix(".url"));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        Ok(names.into_iter().filter_map(|name| RemoteName::new(name).ok()).collect())
    }

    /// What a local branch is said to follow.
    fn upstream(&self, branch: &Branch, remotes: &[RemoteName]) -> Result<Option<(RemoteName, Branch)>, Error> {
        let remote = self.setting(&format!("branch.{branch}.remote"))?;
        let Some(remote) = remotes.iter().find(|known| Some(known.as_str()) == remote.as_deref()) else {
            return Ok(None);
        };
        let merge = self.setting(&format!("branch.{branch}.merge"))?;
        let on_remote = merge.and_then(|full| Branch::from_full(&full)).unwrap_or_else(|| branch.clone());
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
        let is_said = self.settings()?.iter().any(|(key, _)| key == "core.sparsecheckout");
        let is_meant = || self.call(&["config", "--type=bool", "--get", "core.sparseCheckout"]).answer();
        if is_said && is_meant()?.line() == "true" {
            Err(Error::Sparse { path: self.repository.root.clone() })
        } else {
            Ok(())
        }
    }
}

/// The remote that counts where nothing else is said: `origin`, or the only one.
fn usual_remote(remotes: &[RemoteName]) -> Option<RemoteName> {
    let origin = remotes.iter().find(|remote| remote.as_str() == "origin");
    origin.or(remotes.first().filter(|_| remotes.len() == 1)).cloned()
}
