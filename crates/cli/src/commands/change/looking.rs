//! Looking at changes with git. Nothing is fetched, and nothing written.

use std::collections::BTreeMap;

use windlass_process::{Control, run as start};
use windlass_runner::landing;
use windlass_vcs::git::{Base, Error, Git, RemoteName, Repository};

use super::known::{Known, Standing};
use crate::config::Config;
use crate::failure::Failure;
use crate::project::Project;
use crate::{dispatch, environment, remedy};

/// Does something with git, if the project is in a repository.
pub fn with_git<T>(
    project: &Project,
    control: &Control,
    work: impl FnOnce(&Git<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Failure> {
    let roster = dispatch::enlist(project)?;
    let Some(repository) = Repository::find(&project.root).map_err(remedy::git)? else { return Ok(None) };
    let run = |spec: &_| start(spec, &roster, control, &mut |_, _| {});
    // A configuration that cannot be read is no reason to show nothing.
    let named = Config::load(project).ok().and_then(|config| config.settings.forge.remote);
    let named = named.map(|remote| RemoteName::new(&remote.value)).transpose().map_err(remedy::git)?;
    let git = Git::new(repository, &run, &environment::inherited()).through(named);
    work(&git).map(Some).map_err(remedy::git)
}

/// Returns the files of the project's store that git tracks: those come with the repository, and go with it. A signal ends git,
/// then this process: to be called once, by a command that listens to no signals.
pub fn tracked_store(project: &Project) -> Vec<String> {
    let Ok((control, received)) = dispatch::listen() else { return Vec::new() };
    let tracked = find_tracked_store(project, &control);
    received.release();
    tracked
}

/// The same, for a command that listens to signals.
pub fn find_tracked_store(project: &Project, control: &Control) -> Vec<String> {
    let files = ["", "-wal", "-shm", "-journal"].map(|end| format!(".windlass/windlass.db{end}"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    // Where git cannot be asked, nothing is known of it.
    let tracked = with_git(project, control, |git| git.tracked(&project.root, &files));
    tracked.ok().flatten().unwrap_or_default()
}

/// Looks which of the open ones their bases have, as far as these are known here.
pub fn look_for_landed(git: &Git<'_>, changes: &mut [Known]) -> Result<(), Error> {
    let mut bases: BTreeMap<String, Option<Base>> = BTreeMap::new();
    for change in changes.iter_mut().filter(|change| change.standing() == Standing::Open) {
        let name = change.base().to_owned();
        if !bases.contains_key(&name) {
            bases.insert(name.clone(), landing::last_seen(git, &name)?);
        }
        let Some(Some(base)) = bases.get(&name) else { continue };
        let submitted = change.work.as_ref().map(|work| work.head.as_str());
        change.landed = landing::landed(git, base, &change.task, submitted)?;
    }
    Ok(())
}
