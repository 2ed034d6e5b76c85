//! Our branches on a remote, where others may continue them.
//!
//! Invariant: Windlass overwrites or deletes nothing that did not come from here. A ref holds our last push, and the reflog
//! every tip of a Windlass branch. That a commit is known locally proves nothing, because any fetch may have brought it.

use super::{BranchName, Error, GitClient, GitCommitId, PushOutcome, RemoteName};

/// The number of reflog entries that are searched for earlier tips.
const MAX_REFLOG_PLACES: usize = 200;

/// A Windlass branch, with its name on a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteBranch {
    pub remote: RemoteName,
    pub branch: BranchName,
    /// The local branch with the work.
    pub local: BranchName,
}

impl GitClient<'_> {
    /// Sets the remote's branch to a commit, unless it has foreign commits.
    pub fn publish_branch(&self, shared: &RemoteBranch, commit: &GitCommitId) -> Result<PushOutcome, Error> {
        let before = self.resolve_ref(&shared.branch.pushed_ref())?;
        // The remote's branch is nearly always at our last push, so it is read only after a failure.
        let pushed = match self.push_with_lease(&shared.remote, &shared.branch, commit, before.as_ref()) {
            Err(Error::Moved { .. }) => self.publish_moved_branch(shared, commit)?,
            sent => sent?,
        };
        if before.as_ref() != Some(commit) {
            self.build_command(&["update-ref"])
                .with_argument(shared.branch.pushed_ref())
                .with_argument(commit)
                .run_checked()?;
        }
        Ok(pushed)
    }

    /// Does the same for a remote's branch that has moved.
    fn publish_moved_branch(&self, shared: &RemoteBranch, commit: &GitCommitId) -> Result<PushOutcome, Error> {
        let there = self.remote_tip(&shared.remote, &shared.branch)?;
        if there.as_ref() == Some(commit) {
            return Ok(PushOutcome::AlreadyPushed);
        }
        there.as_ref().map_or(Ok(()), |there| self.refuse_foreign_commit(shared, there))?;
        self.push_branch(&shared.remote, &shared.branch, commit, there.as_ref())
    }

    /// Returns whether a commit is our last push of a branch.
    pub fn is_last_push(&self, branch: &BranchName, commit: &GitCommitId) -> Result<bool, Error> {
        Ok(self.resolve_ref(&branch.pushed_ref())?.as_ref() == Some(commit))
    }

    /// Makes the local branch, or moves it forward, to the remote's branch, which another machine of ours has pushed. A missing
    /// branch on the remote is not an error. Nothing moves if both have commits of their own.
    pub fn take_remote_branch(&self, shared: &RemoteBranch) -> Result<(), Error> {
        let tracking = shared.remote.tracking_ref(&shared.branch);
        let fetched = self.fetch_ref_again(&shared.remote, &format!("+{}:{tracking}", shared.branch.full_ref()))?;
        if fetched.code != 0 {
            let is_missing = fetched.said.contains("couldn't find remote ref");
            let unreachable = || Error::Unreachable { remote: shared.remote.clone(), said: fetched.said.clone() };
            return if is_missing { Ok(()) } else { Err(unreachable()) };
        }
        let Some(there) = self.resolve_ref(&tracking)? else { return Ok(()) };
        let tip = self.resolve_ref(&shared.local.full_ref())?;
        if tip.as_ref().map_or(Ok(true), |tip| self.contains_commit(&there, tip))? {
            self.move_branch_forward(shared, tip.as_ref(), &there)?;
        } else if !self.contains_commit(tip.as_ref().unwrap_or(&there), &there)? {
            return Ok(());
        }
        // The remote's branch is ours: the next push goes on from there.
        self.build_command(&["update-ref"])
            .with_argument(shared.branch.pushed_ref())
            .with_argument(&there)
            .run_checked()?;
        Ok(())
    }

    /// Moves the local branch to a commit that has all of it. A worktree that has it checked out goes along.
    fn move_branch_forward(
        &self,
        shared: &RemoteBranch,
        tip: Option<&GitCommitId>,
        there: &GitCommitId,
    ) -> Result<(), Error> {
        if tip == Some(there) {
            return Ok(());
        }
        if let (Some(_), Some(place)) = (tip, self.repository.checkout_path(&shared.local)) {
            let call = self.build_command(&["merge", "--ff-only", "--quiet", "--no-overwrite-ignore", "--no-stat"]);
            return call.with_argument(there).in_directory(&place).with_identity()?.run_checked().map(drop);
        }
        let call = self.build_command(&["update-ref", "-m", "windlass: taken from the remote"]);
        let call = call.with_argument(shared.local.full_ref()).with_argument(there);
        let before = tip.map_or_else(String::new, GitCommitId::to_string);
        call.with_argument(before).run_checked().map(drop)
    }

    /// Deletes the remote's branch, unless it has foreign commits, or commits that the local branch no longer has. A
    /// missing branch is not an error.
    pub fn unpublish_branch(&self, shared: &RemoteBranch) -> Result<PushOutcome, Error> {
        let before = self.resolve_ref(&shared.branch.pushed_ref())?;
        let away = before.map(|before| self.delete_remote_branch(&shared.remote, &shared.branch, &before));
        let away = match away {
            None | Some(Err(Error::Moved { .. })) => self.unpublish_moved_branch(shared)?,
            Some(away) => away?,
        };
        self.forget_pushed_ref(&shared.branch)?;
        Ok(away)
    }

    /// Does the same for a remote's branch that has moved.
    fn unpublish_moved_branch(&self, shared: &RemoteBranch) -> Result<PushOutcome, Error> {
        let Some(there) = self.remote_tip(&shared.remote, &shared.branch)? else {
            return Ok(PushOutcome::AlreadyPushed);
        };
        self.refuse_foreign_commit(shared, &there)?;
        self.refuse_unmerged_remote(shared, &there)?;
        self.delete_remote_branch(&shared.remote, &shared.branch, &there)
    }

    /// Refuses a commit of the remote's branch that is neither our last push nor in the local branch: only the commits of
    /// the local branch are known to be merged.
    fn refuse_unmerged_remote(&self, shared: &RemoteBranch, there: &GitCommitId) -> Result<(), Error> {
        let is_pushed = self.resolve_ref(&shared.branch.pushed_ref())?.as_ref() == Some(there);
        let tip = self.resolve_ref(&shared.local.full_ref())?;
        if is_pushed || tip.map_or(Ok(false), |tip| self.contains_commit(&tip, there))? {
            return Ok(());
        }
        Err(Error::Foreign { remote: shared.remote.clone(), branch: shared.branch.clone(), at: there.clone() })
    }

    pub(super) fn forget_pushed_ref(&self, branch: &BranchName) -> Result<(), Error> {
        match self.resolve_ref(&branch.pushed_ref())? {
            Some(pushed) => self
                .build_command(&["update-ref", "-d"])
                .with_argument(branch.pushed_ref())
                .with_argument(pushed)
                .run_checked()
                .map(drop),
            None => Ok(()),
        }
    }

    fn refuse_foreign_commit(&self, shared: &RemoteBranch, there: &GitCommitId) -> Result<(), Error> {
        let is_ours = self.resolve_ref(&shared.branch.pushed_ref())?.as_ref() == Some(there)
            || self.has_been_on_branch(&shared.local, there)?
            || (shared.branch != shared.local && self.has_been_on_branch(&shared.branch, there)?);
        if is_ours {
            return Ok(());
        }
        Err(Error::Foreign { remote: shared.remote.clone(), branch: shared.branch.clone(), at: there.clone() })
    }

    /// Returns whether a local branch has this commit, or had it.
    fn has_been_on_branch(&self, branch: &BranchName, commit: &GitCommitId) -> Result<bool, Error> {
        let Some(tip) = self.resolve_ref(&branch.full_ref())? else { return Ok(false) };
        if !self.has_commit(commit)? {
            return Ok(false);
        }
        let before = self
            .build_command(&["rev-list", "--walk-reflogs"])
            .with_argument(format!("--max-count={MAX_REFLOG_PLACES}"));
        let before = before.with_argument(branch.full_ref()).with_argument("--").run_unchecked()?;
        let before = if before.code == 0 { before.trimmed_text() } else { String::new() };
        let places = before.lines().chain([tip.as_str()]).map(|place| format!("^{place}"));
        let call = self.build_command(&["rev-list", "--max-count=1", "--ignore-missing"]).with_argument(commit);
        Ok(places
            .fold(call, |call, place| call.with_argument(place))
            .with_argument("--")
            .run_checked()?
            .trimmed_text()
            .is_empty())
    }
}
