//! The branch of a task on the remote that all machines of a fleet share: pushed before the end of each turn is recorded, so that
//! another machine can go on with the work, and taken from there before the work.

use windlass_engine::{Session, Workspace};
use windlass_vcs::git::{BranchName, Error, GitClient, GitCommitId, RemoteBranch};

use crate::workspace_problem::explain_git_error;
use crate::{EffectRunner, Runner, RunnerEvent};

const WINDLASS_BRANCHES: &str = "windlass/";

impl Runner<'_> {
    /// Pushes the commits of a turn; files that the agent has not committed stay here. A remote that is away is named, and the next turn pushes them.
    pub(crate) fn share_work(&mut self, session: &Session) {
        let Some(workspace) = session.workspace.as_ref().filter(|_| self.effects.settings.delivery.shares_work) else {
            return;
        };
        if let Err(error) = self.effects.with_git(|git| self.effects.push_shared_branch(git, workspace)) {
            let words = format!(
                "cannot push {}, so no other machine can go on with it: {}",
                workspace.branch,
                explain_git_error(&error)
            );
            (self.effects.env.observe)(RunnerEvent::Note(&words));
        }
    }
}

impl EffectRunner<'_> {
    fn push_shared_branch(&self, git: &GitClient<'_>, workspace: &Workspace) -> Result<(), Error> {
        let Some(shared) = self.shared_branch(git, workspace)? else { return Ok(()) };
        let Some(tip) = git.branch_tip(&shared.local)? else { return Ok(()) };
        if tip == GitCommitId::new(&workspace.start)? || git.is_last_push(&shared.branch, &tip)? {
            return Ok(());
        }
        git.publish_branch(&shared, &tip).map(drop)
    }

    /// Takes the work of a branch that another machine has pushed, if there is any that this repository lacks.
    pub(crate) fn take_shared_branch(&self, git: &GitClient<'_>, workspace: &Workspace) -> Result<(), Error> {
        let Some(shared) = self.shared_branch(git, workspace)? else { return Ok(()) };
        match git.take_remote_branch(&shared) {
            // The work goes on with what is here.
            Err(Error::Unreachable { .. }) if git.branch_tip(&shared.local)?.is_some() => Ok(()),
            taken => taken,
        }
    }

    /// Does the same for a branch and those that it is stacked on.
    pub(crate) fn take_shared_branches(&self, git: &GitClient<'_>, workspace: &Workspace) -> Result<(), Error> {
        if !self.settings.delivery.shares_work {
            return Ok(());
        }
        for below in self.load_lower_tasks(workspace).unwrap_or_default() {
            if let Some(workspace) = &below.task.workspace {
                self.take_shared_branch(git, workspace)?;
            }
        }
        self.take_shared_branch(git, workspace)
    }

    /// Returns the branch of a task on the shared remote; none outside a fleet, or without a remote.
    fn shared_branch(&self, git: &GitClient<'_>, workspace: &Workspace) -> Result<Option<RemoteBranch>, Error> {
        if !self.settings.delivery.shares_work {
            return Ok(None);
        }
        let base = self.settings.delivery.base.as_deref().map(BranchName::new).transpose()?;
        let Some(remote) = git.merge_remote(base.as_ref())? else { return Ok(None) };
        let local = BranchName::new(&workspace.branch)?;
        // The name comes from the log, and only branches of Windlass travel.
        if !workspace.branch.starts_with(WINDLASS_BRANCHES) {
            return Ok(None);
        }
        Ok(Some(RemoteBranch { remote, branch: local.clone(), local }))
    }
}
