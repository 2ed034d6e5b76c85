//! The base branch: the start of work, and the target of merges.
//!
//! The base is the configured branch; or else the remote's default branch (`origin/HEAD`); or else `main`, `master` or
//! `trunk`; or else `init.defaultBranch`; or else the checked-out branch. That comes last, so that the base does not change
//! when a person checks out another branch; and a detached HEAD does no harm.

use super::ask::Answer;
use super::trouble::without_credentials;
use super::{Branch, Commit, Error, Git, RemoteName};

/// The number of further attempts for a fetch that collides with another one.
const TRIES: usize = 5;
const USUAL: [&str; 3] = ["main", "master", "trunk"];

/// The branch that work starts from, and its tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its name on the remote, if there is one.
    pub branch: Branch,
    /// The remote of the branch; `None` for a local branch.
    pub remote: Option<RemoteName>,
    pub commit: Commit,
    /// The reason why the remote was unreachable: then the commit is the last known tip.
    pub stale: Option<String>,
}

impl Base {
    /// Returns the name for people: `origin/main`, or `main`.
    pub fn shown(&self) -> String {
        self.remote.as_ref().map_or_else(|| self.branch.to_string(), |remote| format!("{remote}/{}", self.branch))
    }
}

impl Git<'_> {
    /// Returns the base and its tip, and fetches it if there is a remote.
    pub fn base(&self, configured: Option<&Branch>) -> Result<Base, Error> {
        let (branch, on_remote) = self.aim(configured)?;
        let fetched = on_remote.map(|(remote, branch)| self.fetched(remote, branch)).transpose()?.flatten();
        let base = fetched.map_or_else(|| self.local(branch), Ok)?;
        self.known.0.base.replace(Some(base.clone()));
        Ok(base)
    }

    /// Returns the same as the last call if no program has run since.
    pub fn recent_base(&self, configured: Option<&Branch>) -> Result<Base, Error> {
        let known = self.known.0.base.borrow().clone();
        known.map_or_else(|| self.base(configured), Ok)
    }

    /// Returns the base and its tip from local refs. Fetches only a base that has none.
    pub fn known_base(&self, configured: Option<&Branch>) -> Result<Base, Error> {
        let (branch, on_remote) = self.aim(configured)?;
        let is_on_remote = on_remote.is_some();
        if let Some((remote, branch)) = on_remote
            && let Some(commit) = self.resolve(&remote.tracking(&branch))?
        {
            return Ok(Base { branch, remote: Some(remote), commit, stale: None });
        }
        match self.local(branch) {
            // The remote may have the branch, although it was never fetched.
            Err(Error::UnknownBase { .. }) if is_on_remote => self.base(configured),
            found => found,
        }
    }

    /// Returns the local branch that work is merged into, by names alone; `None` if the branch of a remote counts.
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

    /// Returns the target of work, by names alone: a local branch, and the branch of a remote that replaces it, if there is one.
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

    /// Returns the address of a remote, without credentials, for locating its forge.
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

    /// Returns the address of the default remote, if there is one.
    pub fn usual_address(&self) -> Result<Option<String>, Error> {
        let remotes = self.remotes()?;
        let remote = match &self.remote {
            Some(named) => remotes.iter().find(|remote| *remote == named).cloned(),
            None => usual_remote(&remotes),
        };
        remote.map(|remote| self.address(&remote)).transpose()
    }

    /// Fetches a branch of a remote, and returns its tip. Returns `None` if the remote never had such a branch.
    fn fetched(&self, remote: RemoteName, branch: Branch) -> Result<Option<Base>, Error> {
        let tracking = remote.tracking(&branch);
        let refspec = format!("+{}:{tracking}", branch.full());
        let mut answer = self.fetch(&remote, &refspec);
        // Another process fetched the same ref at the same moment.
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
                // A branch that the remote had must not silently become the user's own.
                return if self.resolve(&tracking)?.is_some() { Err(Error::UnknownBase { branch }) } else { Ok(None) };
            }
            Ok(answer) => answer.said,
            Err(error @ Error::TimedOut { .. }) => error.to_string(),
            // Git reports this for a remote that is a path, too.
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

    /// Returns every remote with a configured address. Other remotes exist by name only.
    fn remotes(&self) -> Result<Vec<RemoteName>, Error> {
        let settings = self.settings()?;
        let names = settings.iter().filter_map(|(key, _)| key.strip_prefix("remote.")?.strip_suffix(".url"));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        Ok(names.into_iter().filter_map(|name| RemoteName::new(name).ok()).collect())
    }

    /// Returns the configured upstream of a local branch.
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

    /// Returns the tip of a local branch.
    pub fn tip(&self, branch: &Branch) -> Result<Option<Commit>, Error> {
        self.resolve(&branch.full())
    }

    /// Refuses a sparse checkout of the user's tree.
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

/// Returns the default remote: `origin`, or the only one.
fn usual_remote(remotes: &[RemoteName]) -> Option<RemoteName> {
    let origin = remotes.iter().find(|remote| remote.as_str() == "origin");
    origin.or(remotes.first().filter(|_| remotes.len() == 1)).cloned()
}
