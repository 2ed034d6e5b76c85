//! The base branch: the start of work, and the target of merges.
//!
//! The base is the configured branch; or else the remote's default branch (`origin/HEAD`); or else `main`, `master` or
//! `trunk`; or else `init.defaultBranch`; or else the checked-out branch. That comes last, so that the base does not change
//! when a person checks out another branch; and a detached HEAD does no harm.

use super::command::GitOutput;
use super::stderr::strip_credentials;
use super::{BranchName, Error, GitClient, GitCommitId, RemoteName};

/// The number of further attempts for a fetch that collides with another one.
const MAX_FETCH_RETRIES: usize = 5;
const DEFAULT_BRANCHES: [&str; 3] = ["main", "master", "trunk"];

/// The branch that work starts from, and its tip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseBranch {
    /// Its name on the remote, if there is one.
    pub branch: BranchName,
    /// The remote of the branch; `None` for a local branch.
    pub remote: Option<RemoteName>,
    pub commit: GitCommitId,
    /// The reason why the remote was unreachable: then the commit is the last known tip.
    pub stale: Option<String>,
}

impl BaseBranch {
    /// Returns the name for people: `origin/main`, or `main`.
    pub fn display_name(&self) -> String {
        self.remote.as_ref().map_or_else(|| self.branch.to_string(), |remote| format!("{remote}/{}", self.branch))
    }
}

impl GitClient<'_> {
    /// Returns the base and its tip, and fetches it if there is a remote.
    pub fn fetch_base(&self, configured: Option<&BranchName>) -> Result<BaseBranch, Error> {
        let (branch, on_remote) = self.resolve_target(configured)?;
        let fetched = on_remote.map(|(remote, branch)| self.fetch_remote_base(remote, branch)).transpose()?.flatten();
        let base = fetched.map_or_else(|| self.resolve_local_base(branch), Ok)?;
        self.known.0.base.replace(Some(base.clone()));
        Ok(base)
    }

    /// Returns the same as the last call if no program has run since.
    pub fn recent_base(&self, configured: Option<&BranchName>) -> Result<BaseBranch, Error> {
        let known = self.known.0.base.borrow().clone();
        known.map_or_else(|| self.fetch_base(configured), Ok)
    }

    /// Returns the base and its tip from local refs. Fetches only a base that has none.
    pub fn known_base(&self, configured: Option<&BranchName>) -> Result<BaseBranch, Error> {
        let (branch, on_remote) = self.resolve_target(configured)?;
        let is_on_remote = on_remote.is_some();
        if let Some((remote, branch)) = on_remote
            && let Some(commit) = self.resolve_ref(&remote.tracking_ref(&branch))?
        {
            return Ok(BaseBranch { branch, remote: Some(remote), commit, stale: None });
        }
        match self.resolve_local_base(branch) {
            // The remote may have the branch, although it was never fetched.
            Err(Error::UnknownBase { .. }) if is_on_remote => self.fetch_base(configured),
            found => found,
        }
    }

    /// Returns the local branch that work is merged into, by names alone; `None` if the branch of a remote counts.
    pub fn local_base(&self, configured: Option<&BranchName>) -> Result<Option<BranchName>, Error> {
        let (branch, on_remote) = self.resolve_target(configured)?;
        Ok(on_remote.is_none().then_some(branch))
    }

    /// Returns the remote whose branch work is merged into, by names alone; `None` if the local branch counts.
    pub fn merge_remote(&self, configured: Option<&BranchName>) -> Result<Option<RemoteName>, Error> {
        Ok(self.resolve_target(configured)?.1.map(|(remote, _)| remote))
    }

    fn resolve_local_base(&self, branch: BranchName) -> Result<BaseBranch, Error> {
        match self.resolve_ref(&branch.full_ref())? {
            Some(commit) => Ok(BaseBranch { branch, remote: None, commit, stale: None }),
            None if self.has_no_commits()? => Err(Error::NoCommits { path: self.repository.root.clone() }),
            None => Err(Error::UnknownBase { branch }),
        }
    }

    /// Returns the target of work, by names alone: a local branch, and the branch of a remote that replaces it, if there is one.
    fn resolve_target(
        &self,
        configured: Option<&BranchName>,
    ) -> Result<(BranchName, Option<(RemoteName, BranchName)>), Error> {
        self.repository.refuse_reftable()?;
        let remotes = self.list_remotes()?;
        let usual = match &self.remote {
            Some(named) if !remotes.contains(named) => return Err(Error::UnknownRemote { remote: named.clone() }),
            Some(named) => Some(named.clone()),
            None => default_remote(&remotes),
        };
        let branch = match configured {
            Some(branch) => branch.clone(),
            None => self.guess_base_branch(usual.as_ref())?,
        };
        let followed = self.upstream_branch(&branch, &remotes)?;
        let followed = followed.filter(|(remote, _)| self.remote.as_ref().is_none_or(|named| named == remote));
        let on_remote = followed.or_else(|| usual.map(|remote| (remote, branch.clone())));
        Ok((branch, on_remote))
    }

    /// Returns the address of a remote, without credentials, for locating its forge.
    pub fn remote_address(&self, remote: &RemoteName) -> Result<String, Error> {
        let settings = self.read_settings()?;
        let key = format!("remote.{remote}.url");
        let urls: Vec<&String> = settings.iter().filter(|(name, _)| *name == key).map(|(_, url)| url).collect();
        let is_rewritten = settings.iter().any(|(name, _)| name.starts_with("url."));
        let url = match urls[..] {
            [url] if !is_rewritten => url.clone(),
            _ => self.build_command(&["remote", "get-url", "--"]).with_argument(remote).run_checked()?.trimmed_text(),
        };
        Ok(strip_credentials(&url))
    }

    /// Returns the address of the default remote, if there is one.
    pub fn default_remote_address(&self) -> Result<Option<String>, Error> {
        let remotes = self.list_remotes()?;
        let remote = match &self.remote {
            Some(named) => remotes.iter().find(|remote| *remote == named).cloned(),
            None => default_remote(&remotes),
        };
        remote.map(|remote| self.remote_address(&remote)).transpose()
    }

    /// Fetches a branch of a remote, and returns its tip. Returns `None` if the remote never had such a branch.
    fn fetch_remote_base(&self, remote: RemoteName, branch: BranchName) -> Result<Option<BaseBranch>, Error> {
        let tracking = remote.tracking_ref(&branch);
        let refspec = format!("+{}:{tracking}", branch.full_ref());
        let answer = self.fetch_ref_again(&remote, &refspec);
        let said = match answer {
            Ok(answer) if answer.code == 0 => {
                let commit = self.resolve_ref(&tracking)?;
                commit.iter().for_each(|commit| self.known.record_commit(commit));
                return Ok(commit.map(|commit| BaseBranch { branch, remote: Some(remote), commit, stale: None }));
            }
            Ok(answer) if answer.said.contains("couldn't find remote ref") => {
                // A branch that the remote had must not silently become the user's own.
                return if self.resolve_ref(&tracking)?.is_some() {
                    Err(Error::UnknownBase { branch })
                } else {
                    Ok(None)
                };
            }
            Ok(answer) => answer.said,
            Err(error @ Error::TimedOut { .. }) => error.to_string(),
            // Git reports this for a remote that is a path, too.
            Err(Error::NotARepository { .. }) => "there is no repository".to_owned(),
            Err(error) => return Err(error),
        };
        match self.resolve_ref(&tracking)? {
            Some(commit) => Ok(Some(BaseBranch { branch, remote: Some(remote), commit, stale: Some(said) })),
            None => Err(Error::Unreachable { remote, said }),
        }
    }

    /// Fetches one branch and nothing else.
    /// Fetches a ref, again if another process fetches the same one at the same moment.
    pub(super) fn fetch_ref_again(&self, remote: &RemoteName, refspec: &str) -> Result<GitOutput, Error> {
        let mut answer = self.fetch_ref(remote, refspec);
        for _ in 0..MAX_FETCH_RETRIES {
            match &answer {
                Ok(found) if found.said.contains("cannot lock ref") => answer = self.fetch_ref(remote, refspec),
                _ => break,
            }
        }
        answer
    }

    fn fetch_ref(&self, remote: &RemoteName, refspec: &str) -> Result<GitOutput, Error> {
        let call =
            self.build_command(&["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
        let call = call
            .with_argument("--no-prune")
            .with_argument("--refmap=")
            .with_argument("--")
            .with_argument(remote)
            .with_argument(refspec);
        call.over_network()?.run_unchecked()
    }

    fn guess_base_branch(&self, remote: Option<&RemoteName>) -> Result<BranchName, Error> {
        if let Some(remote) = remote {
            let own = self.repository.remote_head(remote.as_str());
            let name = own.as_deref().and_then(|full| full.strip_prefix(&format!("refs/remotes/{remote}/")));
            if let Some(branch) = name.and_then(|name| BranchName::new(name).ok()) {
                return Ok(branch);
            }
        }
        let names = DEFAULT_BRANCHES.into_iter().map(str::to_owned).chain(self.read_setting("init.defaultbranch")?);
        for branch in names.filter_map(|name| BranchName::new(&name).ok()) {
            let tracking = remote.map(|remote| remote.tracking_ref(&branch));
            for full in tracking.into_iter().chain([branch.full_ref()]) {
                if self.resolve_ref(&full)?.is_some() {
                    return Ok(branch);
                }
            }
        }
        let head = self.build_command(&["symbolic-ref", "--quiet", "HEAD"]).run_unchecked()?;
        match BranchName::from_full_ref(&head.trimmed_text()) {
            Some(branch) => Ok(branch),
            None if self.has_no_commits()? => Err(Error::NoCommits { path: self.repository.root.clone() }),
            None => Err(Error::NoBase { tried: DEFAULT_BRANCHES.join(", ") }),
        }
    }

    /// Returns every remote with a configured address. Other remotes exist by name only.
    fn list_remotes(&self) -> Result<Vec<RemoteName>, Error> {
        let settings = self.read_settings()?;
        let names = settings.iter().filter_map(|(key, _)| key.strip_prefix("remote.")?.strip_suffix(".url"));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        Ok(names.into_iter().filter_map(|name| RemoteName::new(name).ok()).collect())
    }

    /// Returns the configured upstream of a local branch.
    fn upstream_branch(
        &self,
        branch: &BranchName,
        remotes: &[RemoteName],
    ) -> Result<Option<(RemoteName, BranchName)>, Error> {
        let remote = self.read_setting(&format!("branch.{branch}.remote"))?;
        let Some(remote) = remotes.iter().find(|known| Some(known.as_str()) == remote.as_deref()) else {
            return Ok(None);
        };
        let merge = self.read_setting(&format!("branch.{branch}.merge"))?;
        let on_remote = merge.and_then(|full| BranchName::from_full_ref(&full)).unwrap_or_else(|| branch.clone());
        Ok(Some((remote.clone(), on_remote)))
    }

    fn has_no_commits(&self) -> Result<bool, Error> {
        Ok(self.build_command(&["rev-list", "--all", "--max-count=1"]).run_checked()?.bytes.is_empty())
    }

    /// Returns the tip of a local branch.
    pub fn branch_tip(&self, branch: &BranchName) -> Result<Option<GitCommitId>, Error> {
        self.resolve_ref(&branch.full_ref())
    }

    /// Refuses a sparse checkout of the user's tree.
    pub(super) fn refuse_sparse_checkout(&self) -> Result<(), Error> {
        let is_said = self.read_settings()?.iter().any(|(key, _)| key == "core.sparsecheckout");
        let is_meant =
            || self.build_command(&["config", "--type=bool", "--get", "core.sparseCheckout"]).run_unchecked();
        if is_said && is_meant()?.trimmed_text() == "true" {
            Err(Error::Sparse { path: self.repository.root.clone() })
        } else {
            Ok(())
        }
    }
}

/// Returns the default remote: `origin`, or the only one.
fn default_remote(remotes: &[RemoteName]) -> Option<RemoteName> {
    let origin = remotes.iter().find(|remote| remote.as_str() == "origin");
    origin.or(remotes.first().filter(|_| remotes.len() == 1)).cloned()
}
