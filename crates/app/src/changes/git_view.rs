//! Read-only views of changes in git. Nothing is fetched or written.

use std::collections::BTreeMap;

use windlass_config::Config;
use windlass_process::{RunControl, run_program as start};
use windlass_runner::external_merges;
use windlass_vcs::git::{BaseBranch, BranchName, Error, GitClient, GitRepository, RemoteName};

use super::{ChangeRecord, ChangeState};
use crate::context::OpenedProject;
use crate::project::Project;
use crate::{Failure, environment, execution, hints, trust};

/// Runs `work` with git, if the project is in a repository.
pub fn with_git<T>(
    project: &Project,
    control: &RunControl,
    work: impl FnOnce(&GitClient<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Failure> {
    // Git also helps under a configuration that cannot be read.
    with_configured_git(project, Config::load(&project.root).ok().as_ref(), control, work)
}

/// Runs `work` with git and the remote of a configuration, if the project is in a repository.
fn with_configured_git<T>(
    project: &Project,
    config: Option<&Config>,
    control: &RunControl,
    work: impl FnOnce(&GitClient<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Failure> {
    let owner_lock = execution::acquire_owner_lock(project)?;
    let Some(repository) = GitRepository::discover(&project.root).map_err(hints::git_failure)? else { return Ok(None) };
    let run = |spec: &_| start(spec, &owner_lock, control, &mut |_, _| {});
    let named = config.and_then(|config| config.settings.forge.remote.as_ref());
    let named = named.map(|remote| RemoteName::new(&remote.value)).transpose().map_err(hints::git_failure)?;
    let git = GitClient::new(repository, &run, &environment::inherited_environment()).with_remote(named);
    work(&git).map(Some).map_err(hints::git_failure)
}

/// Runs `work` with git, where the command can do without the result. A signal ends git, then this process, unless the command
/// listens to signals itself.
pub fn with_optional_git<T>(project: &Project, work: impl FnOnce(&GitClient<'_>) -> Result<T, Error>) -> Option<T> {
    let (control, received) = execution::listen_to_signals().ok()?;
    let done = with_git(project, &control, work);
    received.restore_default_actions();
    done.ok().flatten()
}

/// Returns the remote that the merge of a change pushes to; none if it moves a local branch, or if git cannot tell. As in a merge,
/// only a trusted configuration names the remote.
pub fn find_merge_remote(opened: &OpenedProject, change: &ChangeRecord) -> Option<String> {
    let base = BranchName::new(change.base_name()).ok()?;
    let config = Config::load(&opened.project.root).ok()?;
    let is_trusted = trust::is_config_effective(&opened.project, &config, opened.trust).ok()?;
    let config = if is_trusted { config } else { config.without_trust() };
    let control = RunControl::new();
    let found = with_configured_git(&opened.project, Some(&config), &control, |git| git.merge_remote(Some(&base)));
    found.ok().flatten().flatten().map(|remote| remote.to_string())
}

/// Returns the remote that work goes to.
pub fn find_shared_remote(project: &Project, config: &Config) -> Result<Option<RemoteName>, Failure> {
    let base = config.settings.base_branch.as_ref().map(|base| BranchName::new(&base.value)).transpose();
    let base = base.map_err(hints::git_failure)?;
    let found = with_configured_git(project, Some(config), &RunControl::new(), |git| git.merge_remote(base.as_ref()))?;
    Ok(found.flatten())
}

/// Returns the files of the project's store that git tracks: they come and go with the repository.
pub fn list_tracked_store_files(project: &Project) -> Vec<String> {
    // If git fails, the answer is unknown, which counts as none.
    with_optional_git(project, |git| query_tracked_store_files(git, project)).unwrap_or_default()
}

/// Returns the tracked files of the store, for a command that listens to signals.
pub fn list_tracked_store_files_cancellable(project: &Project, control: &RunControl) -> Vec<String> {
    with_git(project, control, |git| query_tracked_store_files(git, project)).ok().flatten().unwrap_or_default()
}

fn query_tracked_store_files(git: &GitClient<'_>, project: &Project) -> Result<Vec<String>, Error> {
    let files = ["", "-wal", "-shm", "-journal"].map(|end| format!(".windlass/windlass.db{end}"));
    git.tracked_files(&project.root, &files.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Marks the open changes that are merged into their bases, as far as the bases are known locally.
pub fn mark_landed_changes(git: &GitClient<'_>, changes: &mut [ChangeRecord]) -> Result<(), Error> {
    let mut bases: BTreeMap<String, Option<BaseBranch>> = BTreeMap::new();
    for change in changes.iter_mut().filter(|change| change.change_state() == ChangeState::Open) {
        let name = change.base_name().to_owned();
        if !bases.contains_key(&name) {
            bases.insert(name.clone(), external_merges::last_seen_base(git, &name)?);
        }
        let Some(Some(base)) = bases.get(&name) else { continue };
        let submitted = change.work.as_ref().map(|work| work.head.as_str());
        change.external_merge = external_merges::find_external_merge(git, base, &change.task, submitted)?;
    }
    Ok(())
}
