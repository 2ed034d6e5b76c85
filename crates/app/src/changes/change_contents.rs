//! The contents of a change as git shows them. Nothing is fetched or written, except the branch of a change that another machine of
//! a fleet has made.

use windlass_process::RunControl;
use windlass_runner::stacked_branches::{self, ParentStackTask};
use windlass_vcs::git::{BranchName, DiffText, Error, FileChange, GitClient, GitCommitId, LoggedCommit, RemoteBranch};

use super::{ChangeRecord, mark_landed_changes, with_git};
use crate::context::OpenedProject;
use crate::fleet::FleetMembership;
use crate::{Failure, FailureCode, hints};

/// The most commits that are read.
const MAX_SHOWN_COMMITS: usize = 1000;

/// The commits, the files and the diff of a change, as git reports them.
pub struct ChangeContents {
    pub commits: Vec<LoggedCommit>,
    pub files: Vec<FileChange>,
    pub diff: DiffText,
}

impl ChangeContents {
    /// Loads the contents of a change, with at most `most` bytes of its diff.
    pub fn load_contents(
        opened: &OpenedProject,
        change: &mut ChangeRecord,
        most: usize,
        control: &RunControl,
    ) -> Result<Self, Failure> {
        let below = match &change.task.workspace {
            Some(workspace) => {
                let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
                stacked_branches::unmerged_lower_tasks(&snapshot, workspace).map_err(hints::view_failure)?
            }
            None => Vec::new(),
        };
        let is_shared = FleetMembership::find(&opened.project)?.is_some();
        let seen = with_git(&opened.project, control, |git| {
            if is_shared {
                fetch_missing_branch(git, change)?;
            }
            mark_landed_changes(git, std::slice::from_mut(change))?;
            read_change_contents(git, &below, change, most)
        })?;
        seen.ok_or_else(|| {
            Failure::new(FailureCode::Refused, "cannot show the change: this project is in no git repository any more")
        })
    }
}

/// Takes the branch of a change from the remote that all machines of a fleet share, if another machine has made it.
fn fetch_missing_branch(git: &GitClient<'_>, change: &ChangeRecord) -> Result<(), Error> {
    let branch = BranchName::new(change.branch_name())?;
    if change.merge_commit().is_some() || git.branch_tip(&branch)?.is_some() {
        return Ok(());
    }
    match git.merge_remote(Some(&BranchName::new(change.base_name())?))? {
        Some(remote) if branch.as_str().starts_with("windlass/") => {
            git.take_remote_branch(&RemoteBranch { remote, branch: branch.clone(), local: branch })
        }
        _ => Ok(()),
    }
}

fn read_change_contents(
    git: &GitClient<'_>,
    below: &[ParentStackTask],
    change: &ChangeRecord,
    most: usize,
) -> Result<ChangeContents, Error> {
    let (from, to) = find_change_range(git, below, change)?;
    Ok(ChangeContents {
        commits: git.read_log(&from, &to, MAX_SHOWN_COMMITS)?,
        files: git.changed_files_with_renames(&from, &to)?,
        diff: git.diff_commits(&from, &to, most)?,
    })
}

/// Returns the first (exclusive) and the last commit of a change.
fn find_change_range(
    git: &GitClient<'_>,
    below: &[ParentStackTask],
    change: &ChangeRecord,
) -> Result<(GitCommitId, GitCommitId), Error> {
    let unknown = |commit: &str| Error::UnknownCommit { commit: commit.to_owned() };
    let own = find_own_tip(git, change)?;
    let one =
        change.external_merge.as_ref().filter(|landed| landed.is_single_commit).map(|landed| landed.commit.as_str());
    let is_own = |merged: &&str| own.as_ref().is_some_and(|own| own.as_str() == *merged);
    if let Some(merged) = change.change.merged.as_deref().or(one).filter(|merged| !is_own(merged)) {
        let to = GitCommitId::new(merged)?;
        let from = git.parent_commit(&to)?.ok_or_else(|| unknown(merged))?;
        return Ok((from, to));
    }
    let tip = own.ok_or_else(|| unknown(change.branch_name()))?;
    if let (Some(_), Some(workspace)) = (change.merge_commit(), &change.task.workspace) {
        // The base does not show the work any more: the change is the submitted work, or all commits since the workspace began.
        let submitted = change.work.as_ref().filter(|work| work.head == tip.as_str());
        let from = submitted.map(|work| git.ancestor_commit(&tip, work.commits)).transpose()?.flatten();
        let from = from.map_or_else(|| git.merge_base(&GitCommitId::new(&workspace.start)?, &tip), Ok)?;
        return Ok((from, tip));
    }
    let newest =
        git.last_seen_base(&BranchName::new(change.base_name())?)?.ok_or_else(|| unknown(change.base_name()))?;
    let base = match &change.task.workspace {
        Some(workspace) => stacked_branches::own_work_base(git, workspace, below, &newest)?,
        None => newest,
    };
    Ok((git.merge_base(&base, &tip)?, tip))
}

/// Returns the last commit of the work itself. A merge deletes the branch; the submitted commit stays for a while.
fn find_own_tip(git: &GitClient<'_>, change: &ChangeRecord) -> Result<Option<GitCommitId>, Error> {
    if let (Some(_), Some(work)) = (&change.change.merged, &change.work) {
        return GitCommitId::new(&work.head).map(Some);
    }
    git.branch_tip(&BranchName::new(change.branch_name())?)
}
