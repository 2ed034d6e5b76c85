//! What git shows of changes. Nothing is fetched or written.

use std::collections::BTreeMap;

use windlass_config::Config;
use windlass_process::{Control, run as start};
use windlass_runner::external_merges;
use windlass_vcs::git::{Base, Error, Git, RemoteName, Repository};

use super::{ChangeRecord, ChangeState};
use crate::project::Project;
use crate::{Failure, environment, execution, hints};

/// Does something with git, if the project is in a repository.
pub fn with_git<T>(
    project: &Project,
    control: &Control,
    work: impl FnOnce(&Git<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Failure> {
    let roster = execution::enlist(project)?;
    let Some(repository) = Repository::find(&project.root).map_err(hints::git)? else { return Ok(None) };
    let run = |spec: &_| start(spec, &roster, control, &mut |_, _| {});
    // A configuration that cannot be read is no reason to show nothing.
    let named = Config::load(&project.root).ok().and_then(|config| config.settings.forge.remote);
    let named = named.map(|remote| RemoteName::new(&remote.value)).transpose().map_err(hints::git)?;
    let git = Git::new(repository, &run, &environment::inherited()).through(named);
    work(&git).map(Some).map_err(hints::git)
}

/// Does something with git that the command can do without. A signal ends git, then this process, unless the command listens to
/// signals itself.
pub fn with_optional_git<T>(project: &Project, work: impl FnOnce(&Git<'_>) -> Result<T, Error>) -> Option<T> {
    let (control, received) = execution::listen().ok()?;
    let done = with_git(project, &control, work);
    received.release();
    done.ok().flatten()
}

/// Returns the files of the project's store that git tracks: those come with the repository, and go with it.
pub fn tracked_store(project: &Project) -> Vec<String> {
    // Where git cannot be asked, nothing is known of it.
    with_optional_git(project, |git| look_for_store(git, project)).unwrap_or_default()
}

/// The same, for a command that listens to signals.
pub fn find_tracked_store(project: &Project, control: &Control) -> Vec<String> {
    with_git(project, control, |git| look_for_store(git, project)).ok().flatten().unwrap_or_default()
}

fn look_for_store(git: &Git<'_>, project: &Project) -> Result<Vec<String>, Error> {
    let files = ["", "-wal", "-shm", "-journal"].map(|end| format!(".windlass/windlass.db{end}"));
    git.tracked(&project.root, &files.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Marks the open changes that their bases have, as far as these are known here.
pub fn mark_landed_changes(git: &Git<'_>, changes: &mut [ChangeRecord]) -> Result<(), Error> {
    let mut bases: BTreeMap<String, Option<Base>> = BTreeMap::new();
    for change in changes.iter_mut().filter(|change| change.state() == ChangeState::Open) {
        let name = change.base().to_owned();
        if !bases.contains_key(&name) {
            bases.insert(name.clone(), external_merges::last_seen(git, &name)?);
        }
        let Some(Some(base)) = bases.get(&name) else { continue };
        let submitted = change.work.as_ref().map(|work| work.head.as_str());
        change.landed = external_merges::landed(git, base, &change.task, submitted)?;
    }
    Ok(())
}
