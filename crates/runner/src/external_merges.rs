//! Changes that were merged outside Windlass: with plain git, or on a page of a forge.
//!
//! Invariant: only an accepted change is recorded as merged without a person, and once. A person decides about all others.

use std::fs;

use windlass_engine::{Command, Event, EventType, StateView, Task, TaskState};
use windlass_process::file;
use windlass_store::{EventFilter, ExecuteError};
use windlass_vcs::forge::ForgeMergeMethod;
use windlass_vcs::git::{BaseBranch, BranchName, Error, GitClient, GitCommitId};

use crate::workspace_problem::explain_git_error;
use crate::{EffectRunner, RunError, RunnerEvent};

/// A merge that a base has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalMerge {
    /// Commit that has the change in the base. If no single one has, the last commit of the change.
    pub commit: GitCommitId,
    /// Whether that commit alone has all of it, on top of what it was merged into.
    pub is_single_commit: bool,
    pub how: String,
}

/// Returns the last known state of a base, without a fetch.
pub fn last_seen_base(git: &GitClient<'_>, branch: &str) -> Result<Option<BaseBranch>, Error> {
    let branch = BranchName::new(branch)?;
    let commit = git.last_seen_base(&branch)?;
    Ok(commit.map(|commit| BaseBranch { branch, remote: None, commit, stale: None }))
}

/// Returns how a base has the open change of a task, if it has both the submitted commit and the tip of the branch.
pub fn find_external_merge(
    git: &GitClient<'_>,
    base: &BaseBranch,
    task: &Task,
    submitted: Option<&str>,
) -> Result<Option<ExternalMerge>, Error> {
    let is_open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
    let Some(workspace) = task.workspace.as_ref().filter(|_| is_open) else { return Ok(None) };
    let Some(tip) = git.branch_tip(&BranchName::new(&workspace.branch)?)? else { return Ok(None) };
    let landed = find_branch_in_base(git, base, &workspace.branch, &tip)?;
    match submitted.filter(|submitted| *submitted != tip.as_str()) {
        // A person may have reset the branch to the base.
        Some(submitted) if landed.is_some() && !git.has_all_changes(&base.commit, &GitCommitId::new(submitted)?)? => {
            Ok(None)
        }
        _ => Ok(landed),
    }
}

/// Returns how a base has the work of a branch, if it has it.
pub(crate) fn find_branch_in_base(
    git: &GitClient<'_>,
    base: &BaseBranch,
    branch: &str,
    tip: &GitCommitId,
) -> Result<Option<ExternalMerge>, Error> {
    let name = &base.branch;
    let found = |commit: GitCommitId, how: String| {
        let is_one = commit != *tip;
        Ok(Some(ExternalMerge { commit, is_single_commit: is_one, how }))
    };
    if let Some(commit) = git.find_merge_commit(base, tip, ForgeMergeMethod::Merge)? {
        return found(commit, format!("{name} has the branch {branch}"));
    }
    if let Some(commit) = git.find_merge_commit(base, tip, ForgeMergeMethod::Squash)? {
        return found(commit, format!("{name} has all of it in one commit"));
    }
    if git.has_all_changes(&base.commit, tip)? {
        return Ok(Some(scattered_merge(base, tip)));
    }
    Ok(None)
}

/// Describes a merge that no single commit of the base has.
pub(crate) fn scattered_merge(base: &BaseBranch, tip: &GitCommitId) -> ExternalMerge {
    let how = format!("{} has all of it in other commits", base.branch);
    ExternalMerge { commit: tip.clone(), is_single_commit: false, how }
}

impl EffectRunner<'_> {
    /// Records accepted changes as merged if the newest base has them.
    pub fn record_external_merges(&mut self, in_use: &[String]) -> Result<(), RunError> {
        let worktrees = &self.settings.delivery.worktrees;
        if !worktrees.is_dir() || !matches!(self.repository(), Ok(Some(_))) || !self.takes_merge_lock() {
            return Ok(());
        }
        let noted = match self.with_git(|git| git.list_branches()) {
            Ok(branches) => {
                self.accepted_open_changes(&branches, in_use).and_then(|tasks| self.record_found_merges(&tasks))
            }
            Err(error) => {
                self.report_unknown_merges(&error);
                Ok(())
            }
        };
        self.release_merge_lock();
        noted?;
        self.run_pending_effects()
    }

    /// Takes the merge lock. Returns false if another process merges, because that process records merges itself.
    fn takes_merge_lock(&mut self) -> bool {
        let file = file::open_lock_file(&self.settings.delivery.lock);
        let file = file.ok().filter(|file| !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
        self.merging = file;
        self.merging.is_some()
    }

    fn report_unknown_merges(&mut self, error: &Error) {
        let words = format!("cannot tell which changes are merged: {}", explained(error));
        (self.env.observe)(RunnerEvent::Note(&words));
    }

    /// Returns the accepted tasks with open changes, and the submitted commit of each.
    fn accepted_open_changes(
        &self,
        branches: &[(BranchName, GitCommitId)],
        in_use: &[String],
    ) -> Result<Vec<(Task, Option<String>)>, RunError> {
        let (mut accepted, snapshot) = (Vec::new(), self.store.begin_snapshot()?);
        for id in branches.iter().filter_map(|(branch, _)| crate::worktree_gc::task_of_name(branch.as_str())) {
            let Some(task) = snapshot.find_task(id)? else { continue };
            let is_open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
            let is_left = task.workspace.as_ref().is_some_and(|place| !in_use.contains(&place.name));
            if task.state == TaskState::Completed && is_open && is_left {
                let filter =
                    EventFilter { types: vec![EventType::SubmissionStarted], task: Some(id), ..EventFilter::default() };
                let submitted = self.store.read_events_back(&filter, None, 1)?.into_iter().find_map(|record| {
                    if let Event::SubmissionStarted(started) = record.envelope.event { started.work } else { None }
                });
                accepted.push((task, submitted.map(|work| work.head)));
            }
        }
        Ok(accepted)
    }

    fn record_found_merges(&mut self, tasks: &[(Task, Option<String>)]) -> Result<(), RunError> {
        if tasks.is_empty() {
            return Ok(());
        }
        // A fetch can take long, so the observer is told.
        if let Ok(BaseBranch { branch, remote: Some(remote), .. }) = self.with_git(|git| self.last_known_base(git)) {
            let words = format!("fetching {remote}/{branch}, to see which changes are merged");
            (self.env.observe)(RunnerEvent::Note(&words));
        }
        let found = self.with_git(|git| {
            let base = self.load_base(git)?;
            let is_its = |task: &Task| task.workspace.as_ref().is_some_and(|place| place.base == base.branch.as_str());
            let tasks = tasks.iter().filter(|(task, _)| is_its(task));
            let found = tasks
                .map(|(task, submitted)| Ok((task.id, find_external_merge(git, &base, task, submitted.as_deref())?)));
            found.collect::<Result<Vec<_>, Error>>()
        });
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.report_unknown_merges(&error);
                return Ok(());
            }
        };
        for (id, landed) in found.into_iter().filter_map(|(id, landed)| Some((id, landed?))) {
            let ExternalMerge { commit, how, .. } = landed;
            let words = format!("the change of {id} is merged: {how}");
            match self.commit_command(&Command::RecordMerge { id, commit: commit.to_string(), seen: Some(how) }) {
                Err(RunError::Execute(ExecuteError::Refused(_))) => {}
                given => {
                    given?;
                    (self.env.observe)(RunnerEvent::Note(&words));
                }
            }
        }
        Ok(())
    }
}
