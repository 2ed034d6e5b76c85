//! Rules: conditions over what the agent did, looked at here because some of it is only known outside the log.
//!
//! Invariant: a rule is never judged by a list of files that may be wrong. The repository is the agent's to damage.

use std::path::Path;
use std::time::Duration;

use windlass_engine::{HookOutcome, HookReport, Rule, Workspace};
use windlass_hooks::{gist, ruling};
use windlass_process::{Capture, Exit, Finished, Invocation, Spec};
use windlass_vcs::git::{self, Branch, FileChange, has_git};

use super::{Running, Scene};
use crate::dispatch::Resolve;
use crate::stacking::own_base;
use crate::{Dispatch, RunError};

/// Looking at a repository takes no longer.
const LOOK: Duration = Duration::from_secs(10);
/// Names of files that are looked at.
const NAMES: usize = 256 * 1024;

impl Dispatch<'_> {
    pub(super) fn judge(&mut self, running: &Running<'_>, rules: &[Rule]) -> Result<HookReport, RunError> {
        Ok(match self.told_to_rules(running, rules)? {
            Ok(context) => ruling::report(running.hook, running.role(), rules, &context),
            Err(why) => HookReport { message: Some(why), ..HookOutcome::Failure.into() },
        })
    }

    /// What git sees as changed, or why that cannot be known; nothing where there is no repository. In a worktree of a task
    /// what its commits change is among it: between done and accepted there is nothing else.
    pub(super) fn modified_files(
        &mut self,
        scene: &Scene,
        resolve: Resolve,
    ) -> Result<Result<Vec<String>, String>, RunError> {
        let session = scene.session.as_ref();
        // A merge by hand belongs to no session.
        let workspace = match session {
            Some(session) => session.workspace.as_ref(),
            None => scene.task.as_ref().and_then(|task| task.workspace.as_ref()),
        };
        let committed = match workspace {
            Some(workspace) => self.committed_files(workspace)?,
            None => Ok(Vec::new()),
        };
        let files = match committed {
            Ok(files) => {
                self.uncommitted_files(&self.directory_of(session), resolve)?.map(|more| [files, more].concat())
            }
            Err(why) => Err(why),
        };
        Ok(files.map(|mut files| {
            files.sort_unstable();
            files.dedup();
            files
        }))
    }

    /// The files that the commits of a task's own work change.
    fn committed_files(&self, workspace: &Workspace) -> Result<Result<Vec<String>, String>, RunError> {
        let below = self.below(workspace)?;
        let work = self.with_git(|git| {
            let base = own_base(git, workspace, &below, &self.known_base(git)?.commit)?;
            git.work(&Branch::new(&workspace.branch)?, &base)
        });
        let name = |file: &FileChange| file.path.to_string_lossy().into_owned();
        Ok(work.map(|work| work.files.iter().map(name).collect()).map_err(|error: git::Error| error.to_string()))
    }

    fn uncommitted_files(
        &mut self,
        directory: &Path,
        resolve: Resolve,
    ) -> Result<Result<Vec<String>, String>, RunError> {
        let elsewhere = self.settings.environment.iter().any(|(name, _)| name == "GIT_DIR");
        if !elsewhere && !has_repository(directory) {
            return Ok(Ok(vec![]));
        }
        let words = ["git", "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"];
        let spec = Spec {
            timeout: Some(LOOK),
            capture: Capture { head: NAMES, tail: 0, spill: None },
            ..Spec::new(Invocation::Argv(words.map(Into::into).into()), directory, self.settings.environment.clone())
        };
        let ran = self.start(&spec, resolve)?;
        // Before anything is cut out of it: half a secret is one too.
        Ok(ran.map_err(|error| error.to_string()).and_then(|ran| listed(&ran, |ran| self.settings.mask.run(ran))))
    }
}

/// Whether git would find a repository here. Its own word for it is the same whether there is none or it is damaged.
fn has_repository(directory: &Path) -> bool {
    directory.ancestors().any(has_git)
}

/// The names that git lists, if it lists all of them.
fn listed(ran: &Finished, mask: impl FnOnce(Finished) -> Finished) -> Result<Vec<String>, String> {
    let how = match ran.exit {
        Exit::Code(0) if ran.stdout.left_out() == 0 => {
            let listed = ran.stdout.bytes();
            let names = listed.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
            return Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect());
        }
        Exit::Code(0) => return Err(format!("git names more than {} KiB of them", NAMES / 1024)),
        Exit::Code(code) => format!("git ended with exit {code}"),
        Exit::Signal(signal) => format!("git was ended by signal {signal}"),
        Exit::TimedOut | Exit::Silent => format!("git took longer than {} s", LOOK.as_secs()),
        Exit::Cancelled => "git was cancelled".to_owned(),
        Exit::Lost => "nobody knows how git ended".to_owned(),
    };
    Err(match gist(&mask(ran.clone())) {
        Some(said) => format!("{how}: {said}"),
        None => how,
    })
}
