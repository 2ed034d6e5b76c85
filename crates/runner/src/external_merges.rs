//! Changes that were merged outside Windlass: with plain git, or on a page of a forge.
//!
//! Invariant: only an accepted change is recorded as merged without a person, and once. A person decides about all others.

use std::fs;

use windlass_engine::{Command, Event, EventType, State, Task, View};
use windlass_process::file;
use windlass_store::{ExecuteError, Filter};
use windlass_vcs::forge::Method;
use windlass_vcs::git::{Base, Branch, Commit, Error, Git};

use crate::workspace_problem::explained;
use crate::{EffectRunner, RunError, RunnerEvent};

/// A merge that a base has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalMerge {
    /// Commit that has the change in the base. If no single one has, the last commit of the change.
    pub commit: Commit,
    /// Whether that commit alone has all of it, on top of what it was merged into.
    pub is_one: bool,
    pub how: String,
}

/// Returns the last known state of a base, without a fetch.
pub fn last_seen(git: &Git<'_>, branch: &str) -> Result<Option<Base>, Error> {
    let branch = Branch::new(branch)?;
    let commit = git.last_seen(&branch)?;
    Ok(commit.map(|commit| Base { branch, remote: None, commit, stale: None }))
}

/// Returns how a base has the open change of a task, if it has both the submitted commit and the tip of the branch.
pub fn landed(
    git: &Git<'_>,
    base: &Base,
    task: &Task,
    submitted: Option<&str>,
) -> Result<Option<ExternalMerge>, Error> {
    let is_open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
    let Some(workspace) = task.workspace.as_ref().filter(|_| is_open) else { return Ok(None) };
    let Some(tip) = git.tip(&Branch::new(&workspace.branch)?)? else { return Ok(None) };
    let landed = in_base(git, base, &workspace.branch, &tip)?;
    match submitted.filter(|submitted| *submitted != tip.as_str()) {
        // A person may have reset the branch to the base.
        Some(submitted) if landed.is_some() && !git.has_all(&base.commit, &Commit::new(submitted)?)? => Ok(None),
        _ => Ok(landed),
    }
}

/// Returns how a base has the work of a branch, if it has it.
pub(crate) fn in_base(git: &Git<'_>, base: &Base, branch: &str, tip: &Commit) -> Result<Option<ExternalMerge>, Error> {
    let name = &base.branch;
    let found = |commit: Commit, how: String| {
        let is_one = commit != *tip;
        Ok(Some(ExternalMerge { commit, is_one, how }))
    };
    if let Some(commit) = git.merged_as(base, tip, Method::Merge)? {
        return found(commit, format!("{name} has the branch {branch}"));
    }
    if let Some(commit) = git.merged_as(base, tip, Method::Squash)? {
        return found(commit, format!("{name} has all of it in one commit"));
    }
    if git.has_all(&base.commit, tip)? {
        return Ok(Some(scattered(base, tip)));
    }
    Ok(None)
}

/// Describes a merge that no single commit of the base has.
pub(crate) fn scattered(base: &Base, tip: &Commit) -> ExternalMerge {
    let how = format!("{} has all of it in other commits", base.branch);
    ExternalMerge { commit: tip.clone(), is_one: false, how }
}

impl EffectRunner<'_> {
    /// Records accepted changes as merged if the newest base has them.
    pub fn record_external_merges(&mut self, in_use: &[String]) -> Result<(), RunError> {
        let worktrees = &self.settings.delivery.worktrees;
        if !worktrees.is_dir() || !matches!(self.repository(), Ok(Some(_))) || !self.is_my_turn() {
            return Ok(());
        }
        let noted = match self.with_git(|git| git.branches()) {
            Ok(branches) => self.accepted(&branches, in_use).and_then(|tasks| self.note(&tasks)),
            Err(error) => {
                self.cannot_tell(&error);
                Ok(())
            }
        };
        self.end_turn();
        noted?;
        self.run_pending()
    }

    /// Takes the merge lock. Returns false if another process merges, because that process records merges itself.
    fn is_my_turn(&mut self) -> bool {
        let file = file::open_lock(&self.settings.delivery.lock);
        let file = file.ok().filter(|file| !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
        self.merging = file;
        self.merging.is_some()
    }

    fn cannot_tell(&mut self, error: &Error) {
        let words = format!("cannot tell which changes are merged: {}", explained(error));
        (self.outside.tell)(RunnerEvent::Note(&words));
    }

    /// Returns the accepted tasks with open changes, and the submitted commit of each.
    fn accepted(
        &self,
        branches: &[(Branch, Commit)],
        in_use: &[String],
    ) -> Result<Vec<(Task, Option<String>)>, RunError> {
        let (mut accepted, snapshot) = (Vec::new(), self.store.snapshot()?);
        for id in branches.iter().filter_map(|(branch, _)| crate::worktree_gc::task_of(branch.as_str())) {
            let Some(task) = snapshot.task(id)? else { continue };
            let is_open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
            let is_left = task.workspace.as_ref().is_some_and(|place| !in_use.contains(&place.name));
            if task.state == State::Completed && is_open && is_left {
                let filter = Filter { types: vec![EventType::SubmissionStarted], task: Some(id), ..Filter::default() };
                let submitted = self.store.read_back(&filter, None, 1)?.into_iter().find_map(|record| {
                    if let Event::SubmissionStarted(started) = record.envelope.event { started.work } else { None }
                });
                accepted.push((task, submitted.map(|work| work.head)));
            }
        }
        Ok(accepted)
    }

    fn note(&mut self, tasks: &[(Task, Option<String>)]) -> Result<(), RunError> {
        if tasks.is_empty() {
            return Ok(());
        }
        // A fetch can take long, so the observer is told.
        if let Ok(Base { branch, remote: Some(remote), .. }) = self.with_git(|git| self.known_base(git)) {
            let words = format!("fetching {remote}/{branch}, to see which changes are merged");
            (self.outside.tell)(RunnerEvent::Note(&words));
        }
        let found = self.with_git(|git| {
            let base = self.base(git)?;
            let is_its = |task: &Task| task.workspace.as_ref().is_some_and(|place| place.base == base.branch.as_str());
            let tasks = tasks.iter().filter(|(task, _)| is_its(task));
            let found = tasks.map(|(task, submitted)| Ok((task.id, landed(git, &base, task, submitted.as_deref())?)));
            found.collect::<Result<Vec<_>, Error>>()
        });
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.cannot_tell(&error);
                return Ok(());
            }
        };
        for (id, landed) in found.into_iter().filter_map(|(id, landed)| Some((id, landed?))) {
            let ExternalMerge { commit, how, .. } = landed;
            let words = format!("the change of {id} is merged: {how}");
            match self.commit(&Command::RecordMerge { id, commit: commit.to_string(), seen: Some(how) }) {
                Err(RunError::Execute(ExecuteError::Refused(_))) => {}
                given => {
                    given?;
                    (self.outside.tell)(RunnerEvent::Note(&words));
                }
            }
        }
        Ok(())
    }
}
