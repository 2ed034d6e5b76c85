//! Rules: conditions over the agent's work, evaluated here because some of their values are not in the log.
//!
//! Invariant: a rule is never judged by a wrong list of files. The agent may have damaged the repository.

use std::path::Path;
use std::time::Duration;

use windlass_engine::{DecisionRule, HookOutcome, HookReport, Workspace};
use windlass_hooks::rule_report;
use windlass_process::{ProgramOutcome, ProgramSpec};
use windlass_vcs::git::{self, BranchName, FileChange, GitClient, GitRepository, has_git_entry};

use super::{HookRun, HookSubject};
use crate::effect_runner::ChangedFiles;
use crate::stacked_branches::own_work_base;
use crate::{EffectRunner, RunError};

/// Maximum total size of the file names.
const MAX_FILE_NAME_BYTES: usize = 256 * 1024;
/// Timeout of git for the list.
const GIT_LIST_TIMEOUT: Duration = Duration::from_secs(10);

impl EffectRunner<'_> {
    pub(super) fn judge_rules(&mut self, run: &HookRun<'_>, rules: &[DecisionRule]) -> Result<HookReport, RunError> {
        Ok(match self.rules_context(run, rules)? {
            Ok(context) => rule_report::build_rule_report(run.hook, run.hook_role(), rules, &context),
            Err(why) => HookReport { message: Some(why), ..HookOutcome::Failure.into() },
        })
    }

    /// Returns the changed files, or why they cannot be known. Returns nothing without a repository. In a worktree of a task the
    /// files of its commits count: between done and accepted there are no others.
    pub(super) fn modified_files(&self, subject: &HookSubject) -> Result<ChangedFiles, RunError> {
        let session = subject.session.as_ref();
        // A merge by hand has no session.
        let workspace = match session {
            Some(session) => session.workspace.as_ref(),
            None => subject.task.as_ref().and_then(|task| task.workspace.as_ref()),
        };
        let committed = match workspace {
            Some(workspace) => self.committed_files(workspace)?,
            None => Ok(Vec::new()),
        };
        Ok(committed.and_then(|mut files| {
            files.extend(self.uncommitted_files(&self.session_directory(session))?);
            files.sort_unstable();
            files.dedup();
            Ok(files)
        }))
    }

    /// Returns the files that the commits of a task's own work change.
    fn committed_files(&self, workspace: &Workspace) -> Result<ChangedFiles, RunError> {
        let below = self.load_lower_tasks(workspace)?;
        let work = self.with_git(|git| {
            let base = own_work_base(git, workspace, &below, &self.last_known_base(git)?.commit)?;
            git.read_branch_work(&BranchName::new(&workspace.branch)?, &base)
        });
        let name = |file: &FileChange| file.path.to_string_lossy().into_owned();
        Ok(work.map(|work| work.files.iter().map(name).collect()).map_err(|error: git::Error| error.to_string()))
    }

    /// Returns the uncommitted files of a repository, new ones included.
    fn uncommitted_files(&self, directory: &Path) -> Result<Vec<String>, String> {
        let Some(root) = directory.ancestors().find(|above| has_git_entry(above)) else { return Ok(Vec::new()) };
        let listed = || {
            // A damaged repository is not the same as none.
            let missing = || git::Error::NotARepository { path: root.to_owned() };
            let repository = GitRepository::discover(root)?.ok_or_else(missing)?;
            // Mask before the output is cut: half a secret is a secret, too.
            let mask =
                |ran: ProgramOutcome| ProgramOutcome { stderr: self.settings.mask.mask_run(ran.clone()).stderr, ..ran };
            let run = |spec: &ProgramSpec| {
                self.run_query(&ProgramSpec { timeout: Some(GIT_LIST_TIMEOUT), ..spec.clone() }).map(mask)
            };
            GitClient::new(repository, &run, &self.settings.environment).list_uncommitted_of_tree(root)
        };
        let files = listed().map_err(|error| error.to_string())?;
        let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        match names.iter().map(String::len).sum::<usize>() > MAX_FILE_NAME_BYTES {
            true => Err(format!("git names more than {} KiB of them", MAX_FILE_NAME_BYTES / 1024)),
            false => Ok(names),
        }
    }
}
