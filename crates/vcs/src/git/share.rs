//! Our branches on a remote, where others may continue them.
//!
//! Invariant: Windlass overwrites or deletes nothing that did not come from here. A ref holds our last push, and the reflog
//! every tip of a branch of ours. That a commit is known locally proves nothing, because any fetch may have brought it.

use super::{Branch, Commit, Error, Git, Pushed, RemoteName};

/// The number of reflog entries that are searched for earlier tips.
const PLACES: usize = 200;

/// A branch of ours, with its name on a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    pub remote: RemoteName,
    pub branch: Branch,
    /// The local branch with the work.
    pub local: Branch,
}

impl Git<'_> {
    /// Sets the remote's branch to a commit, unless it has foreign commits.
    pub fn share(&self, shared: &Shared, commit: &Commit) -> Result<Pushed, Error> {
        let before = self.resolve(&shared.branch.pushed())?;
        // The remote's branch is nearly always at our last push, so it is read only after a failure.
        let pushed = match self.send(&shared.remote, &shared.branch, commit, before.as_ref()) {
            Err(Error::Moved { .. }) => self.share_moved(shared, commit)?,
            sent => sent?,
        };
        if before.as_ref() != Some(commit) {
            self.call(&["update-ref"]).word(shared.branch.pushed()).word(commit).done()?;
        }
        Ok(pushed)
    }

    /// Does the same for a remote's branch that has moved.
    fn share_moved(&self, shared: &Shared, commit: &Commit) -> Result<Pushed, Error> {
        let there = self.on_remote(&shared.remote, &shared.branch)?;
        if there.as_ref() == Some(commit) {
            return Ok(Pushed::Already);
        }
        there.as_ref().map_or(Ok(()), |there| self.refuse_foreign(shared, there))?;
        self.push(&shared.remote, &shared.branch, commit, there.as_ref())
    }

    /// Deletes the remote's branch, unless it has foreign commits, or commits that the local branch no longer has. A
    /// missing branch is not an error.
    pub fn unshare(&self, shared: &Shared) -> Result<Pushed, Error> {
        let before = self.resolve(&shared.branch.pushed())?;
        let away = before.map(|before| self.push_away(&shared.remote, &shared.branch, &before));
        let away = match away {
            None | Some(Err(Error::Moved { .. })) => self.unshare_moved(shared)?,
            Some(away) => away?,
        };
        self.forget_pushed(&shared.branch)?;
        Ok(away)
    }

    /// Does the same for a remote's branch that has moved.
    fn unshare_moved(&self, shared: &Shared) -> Result<Pushed, Error> {
        let Some(there) = self.on_remote(&shared.remote, &shared.branch)? else { return Ok(Pushed::Already) };
        self.refuse_foreign(shared, &there)?;
        self.refuse_left_behind(shared, &there)?;
        self.push_away(&shared.remote, &shared.branch, &there)
    }

    /// Refuses a commit of the remote's branch that is neither our last push nor in the local branch: only the commits of
    /// the local branch are known to be merged.
    fn refuse_left_behind(&self, shared: &Shared, there: &Commit) -> Result<(), Error> {
        let is_pushed = self.resolve(&shared.branch.pushed())?.as_ref() == Some(there);
        let tip = self.resolve(&shared.local.full())?;
        if is_pushed || tip.map_or(Ok(false), |tip| self.contains(&tip, there))? {
            return Ok(());
        }
        Err(Error::Foreign { remote: shared.remote.clone(), branch: shared.branch.clone(), at: there.clone() })
    }

    pub(super) fn forget_pushed(&self, branch: &Branch) -> Result<(), Error> {
        match self.resolve(&branch.pushed())? {
            Some(pushed) => self.call(&["update-ref", "-d"]).word(branch.pushed()).word(pushed).done().map(drop),
            None => Ok(()),
        }
    }

    fn refuse_foreign(&self, shared: &Shared, there: &Commit) -> Result<(), Error> {
        let is_ours = self.resolve(&shared.branch.pushed())?.as_ref() == Some(there)
            || self.has_been_in(&shared.local, there)?
            || (shared.branch != shared.local && self.has_been_in(&shared.branch, there)?);
        if is_ours {
            return Ok(());
        }
        Err(Error::Foreign { remote: shared.remote.clone(), branch: shared.branch.clone(), at: there.clone() })
    }

    /// Returns whether a local branch has this commit, or had it.
    fn has_been_in(&self, branch: &Branch, commit: &Commit) -> Result<bool, Error> {
        let Some(tip) = self.resolve(&branch.full())? else { return Ok(false) };
        if !self.is_known(commit)? {
            return Ok(false);
        }
        let before = self.call(&["rev-list", "--walk-reflogs"]).word(format!("--max-count={PLACES}"));
        let before = before.word(branch.full()).word("--").answer()?;
        let before = if before.code == 0 { before.line() } else { String::new() };
        let places = before.lines().chain([tip.as_str()]).map(|place| format!("^{place}"));
        let call = self.call(&["rev-list", "--max-count=1", "--ignore-missing"]).word(commit);
        Ok(places.fold(call, |call, place| call.word(place)).word("--").done()?.line().is_empty())
    }
}
