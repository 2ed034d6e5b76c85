//! Check for changes of protected files during a session.
//!
//! ```text
//! in place ─► their content now, against the recorded one
//! worktree ─► files of git ─► against the commit that the work stands on: the base's own changes are no tampering. A file whose
//!                              bytes a filter or line ends change: against the recorded content
//!             all others   ─► against the recorded content
//! a commit in delivery ─► its files, against those of the commit that the work stands on
//! ```
//!
//! Invariants:
//! - An unknown state counts as changed.
//! - A checkout has the bytes of a commit only with the same attributes, so these are protected, too.
//! - Commits that were made in the worktree are the agent's, also after a push to the base. An agent that goes back behind the
//!   start of its work stands on that start.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use windlass_engine::{HookOutcome, HookReport, Session, StateView, Workspace};
use windlass_vcs::git::{BaselineFile, BranchName, Error, GitClient, GitCommitId};

use crate::gate_checkout::commit_in_delivery;
use crate::protected::{
    ProtectedFiles, changed_names, describe_difference, digest_file, is_attributes_file, list_changed_files,
    parent_link_name,
};
use crate::stacked_branches::{self, ParentStackTask};
use crate::workspace_problem::explain_git_error;
use crate::{EffectRunner, RunError};

/// Commits that the work in a worktree comes after.
struct WorkOrigin {
    start: GitCommitId,
    /// Last commit of the base in the work, or the start of work that is stacked on others.
    base: GitCommitId,
}

/// Protected files that git keeps, by their names in the project.
struct ProtectedComparison {
    changed: BTreeSet<PathBuf>,
    kept: BTreeSet<PathBuf>,
    /// The kept files, and those that were kept at the start of the work.
    ever: BTreeSet<PathBuf>,
}

/// Snapshot of the files below a directory of a worktree, from the start of the work.
struct ProtectedSnapshot<'a> {
    within: &'a Path,
    protected: &'a ProtectedFiles,
    /// Targets of protected links, which are protected, too.
    targets: &'a BTreeSet<PathBuf>,
    /// Links to directories that protected files may lie behind.
    ways: BTreeSet<&'a str>,
    /// Digest of each file. Nothing for a name that has more than one line.
    held: HashMap<&'a str, Option<&'a str>>,
}

impl<'a> ProtectedSnapshot<'a> {
    fn new(look: &'a str, within: &'a Path, protected: &'a ProtectedFiles, targets: &'a BTreeSet<PathBuf>) -> Self {
        let mut all = HashMap::new();
        for (held, name) in look.lines().filter_map(|line| line.split_once(' ')) {
            all.entry(name).and_modify(|found| *found = None).or_insert(Some(held));
        }
        Self { within, protected, targets, ways: look.lines().filter_map(parent_link_name).collect(), held: all }
    }

    /// Returns the path below the directory if a file is protected, given its path in the worktree.
    fn protected_path(&self, path: &Path) -> Option<PathBuf> {
        let path = path.strip_prefix(self.within).ok()?;
        let is_above =
            |target: &Path| is_attributes_file(path) && path.parent().is_some_and(|above| target.starts_with(above));
        let is_target = || self.targets.iter().any(|target| path.starts_with(target) || is_above(target));
        let is_way = || !self.ways.is_empty() && self.ways.contains(self.protected.masked_name(path).as_str());
        (self.protected.is_protected(path) || is_target() || is_way()).then(|| path.to_owned())
    }

    /// Returns the path, from the directory, of an attributes file above it that changes the checkout of protected files.
    fn attributes_above(&self, path: &Path) -> Option<PathBuf> {
        let below = self.within.strip_prefix(path.parent().filter(|_| is_attributes_file(path))?).ok()?;
        let up: PathBuf = below.iter().map(|_| "..").collect();
        Some(up.join(path.file_name()?)).filter(|_| below != Path::new(""))
    }

    /// Returns the recorded digest of a file, given its path in the worktree.
    fn recorded_digest(&self, path: &Path) -> Option<&'a str> {
        let path = path.strip_prefix(self.within).ok().filter(|path| path.to_str().is_some())?;
        *self.held.get(self.protected.masked_name(path).as_str())?
    }
}

impl EffectRunner<'_> {
    /// Returns a report if a gate cannot be trusted: protected files have changed in this session, or may have.
    pub(crate) fn report_tampering(&self, session: Option<&Session>) -> Result<Option<HookReport>, RunError> {
        let Some((session, recorded)) = session.and_then(|session| Some((session, session.protected?))) else {
            return Ok(None);
        };
        let before = self.store.begin_snapshot()?.find_config_text(recorded)?.unwrap_or_default();
        let workspace = session
            .workspace
            .as_ref()
            .filter(|workspace| self.settings.delivery.worktrees.join(&workspace.name).join(".git").exists());
        let changed = match workspace {
            Some(workspace) => {
                let below = self.load_lower_tasks(workspace)?;
                let head = commit_in_delivery(session).map(|(_, head)| head);
                self.find_changed_files((workspace, head), &below, &before)
            }
            None => {
                let look = self.settings.protected.take_snapshot(&self.session_directory(Some(session)));
                look.map(|now| describe_difference(&before, &now)).map_err(|error| error.to_string())
            }
        };
        let said = match changed {
            Ok(None) => return Ok(None),
            Err(_) if self.control.is_cancelled() => return Ok(Some(HookOutcome::Cancelled.into())),
            Ok(Some(files)) => {
                format!("protected files have changed in this session: {files}")
            }
            Err(why) => format!("cannot tell whether protected files have changed: {why}"),
        };
        let said = self.settings.mask.mask_text(&said).into_owned();
        Ok(Some(HookReport { message: Some(said), ..HookOutcome::Escalate.into() }))
    }

    /// Returns the changed protected files of a worktree as text, compared with the commit that the work stands on.
    fn find_changed_files(
        &self,
        (workspace, head): (&Workspace, Option<&str>),
        below: &[ParentStackTask],
        before: &str,
    ) -> Result<Option<String>, String> {
        let (worktree, place) =
            (self.settings.delivery.worktrees.join(&workspace.name), self.project_in_worktree(workspace));
        let within = place.strip_prefix(worktree).unwrap_or(Path::new("")).to_owned();
        let protected = &self.settings.protected;
        let found = protected.find_files(&place).map_err(|error| error.to_string())?;
        let recorded = ProtectedSnapshot::new(before, &within, protected, &found.targets);
        let compared = self.with_git(|git| self.compare_kept_files(git, (workspace, head), below, &recorded));
        let compared = compared.map_err(|error| explain_git_error(&error))?;
        let others = found.files.difference(&compared.kept).cloned().collect();
        let ways = found.parent_links.difference(&compared.kept).cloned().collect();
        let now = protected.snapshot_files(&place, &others).map_err(|error| error.to_string())?;
        let now = now + &protected.snapshot_parent_links(&place, &ways);
        let names = |files: &BTreeSet<PathBuf>| -> BTreeSet<String> {
            files.iter().map(|path| protected.masked_name(path)).collect()
        };
        let kept = names(&compared.ever);
        let is_kept = |line: &&str| line.split_once(' ').is_some_and(|(_, path)| kept.contains(path));
        let before: String = before.lines().filter(|line| !is_kept(line)).map(|line| format!("{line}\n")).collect();
        let mut changed = names(&compared.changed);
        let beside = changed_names(&before, &now);
        let any = !changed.is_empty() || beside.is_some();
        changed.extend(beside.unwrap_or_default());
        Ok(any.then(|| list_changed_files(&changed)))
    }

    /// Compares the protected files that git keeps below a directory of a worktree.
    fn compare_kept_files(
        &self,
        git: &GitClient<'_>,
        (workspace, head): (&Workspace, Option<&str>),
        below: &[ParentStackTask],
        recorded: &ProtectedSnapshot<'_>,
    ) -> Result<ProtectedComparison, Error> {
        let worktree = self.task_worktree(workspace)?;
        let own = |path: &Path| recorded.protected_path(path);
        let is_meant = |path: &Path| own(path).is_some();
        let names = |kept: &[BaselineFile]| kept.iter().filter_map(|file| own(&file.path)).collect::<BTreeSet<_>>();
        let origin = self.find_work_origin(git, workspace, below)?;
        let counts = |path: &Path| own(path).or_else(|| recorded.attributes_above(path));
        let is_compared = |path: &Path| counts(path).is_some();
        let all = git.baseline_files(&worktree.path, &origin.base, &is_compared)?;
        let files: Vec<BaselineFile> = all.iter().filter(|file| is_meant(&file.path)).cloned().collect();
        let began = if origin.base == origin.start {
            files.clone()
        } else {
            git.baseline_files(&worktree.path, &origin.start, &is_meant)?
        };
        let mut changed = git.changed_since_baseline(&worktree.path, &files)?;
        let is_as_recorded = |path: &PathBuf| {
            let is_kept_as_before = files.iter().any(|file| file.path == *path && began.contains(file));
            is_kept_as_before
                && digest_file(&worktree.path.join(path))
                    .is_ok_and(|(now, _)| recorded.recorded_digest(path) == Some(&now))
        };
        changed.retain(|path| !is_as_recorded(path));
        if let Some(head) = head {
            let committed = git.baseline_files(&worktree.path, &GitCommitId::new(head)?, &is_compared)?;
            let differs = |file: &&BaselineFile, others: &[BaselineFile]| !others.contains(file);
            changed.extend(all.iter().filter(|file| differs(file, &committed)).map(|file| file.path.clone()));
            changed.extend(committed.iter().filter(|file| differs(file, &all)).map(|file| file.path.clone()));
        }
        let (kept, mut ever) = (names(&files), names(&files));
        ever.extend(names(&began));
        if origin.base != origin.start {
            let made = git.commits_made_in(&worktree, &origin.start, &origin.base)?;
            let made: Vec<GitCommitId> = made.into_iter().map(|logged| logged.commit).collect();
            changed.extend(git.touched_files(&made)?);
        }
        let changed = changed.iter().filter_map(|path| counts(path)).collect();
        Ok(ProtectedComparison { changed, kept, ever })
    }

    /// Returns the lines of a snapshot for files that git did not keep at the start of the work.
    pub(crate) fn leave_out_kept_files(&self, workspace: &Workspace, look: &str) -> Result<String, Error> {
        let (worktree, place) = (self.task_worktree(workspace)?, self.project_in_worktree(workspace));
        let within = place.strip_prefix(&worktree.path).unwrap_or(Path::new("")).to_owned();
        let start = GitCommitId::new(&workspace.start)?;
        let kept =
            self.with_git(|git| git.baseline_files(&worktree.path, &start, &|path| path.starts_with(&within)))?;
        let own = kept.iter().filter_map(|file| file.path.strip_prefix(&within).ok());
        let names: BTreeSet<String> = own.map(|path| self.settings.protected.masked_name(path)).collect();
        let is_kept = |line: &&str| line.split_once(' ').is_some_and(|(_, name)| names.contains(name));
        Ok(look.lines().filter(|line| !is_kept(line)).map(|line| format!("{line}\n")).collect())
    }

    fn find_work_origin(
        &self,
        git: &GitClient<'_>,
        workspace: &Workspace,
        below: &[ParentStackTask],
    ) -> Result<WorkOrigin, Error> {
        let unknown = || Error::UnknownCommit { commit: workspace.base.clone() };
        let newest = git.last_seen_base(&BranchName::new(&workspace.base)?)?.ok_or_else(unknown)?;
        let (start, head) =
            (GitCommitId::new(&workspace.start)?, git.worktree_commit(&self.task_worktree(workspace)?)?);
        let on = git.merge_base(&stacked_branches::own_work_base(git, workspace, below, &newest)?, &head)?;
        if on == start {
            return Ok(WorkOrigin { base: on, start });
        }
        let parted = git.merge_base(&start, &newest)?;
        let goes_on = git.merge_base(&parted, &on)? == parted;
        Ok(WorkOrigin { base: if goes_on { on } else { start.clone() }, start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_above_project_have_relative_names() {
        let (protected, targets) = (ProtectedFiles::new(&["gate.sh".to_owned()]).unwrap(), BTreeSet::new());
        let recorded = ProtectedSnapshot::new("", Path::new("apps/shop"), &protected, &targets);
        let name = |path: &str| recorded.attributes_above(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(name(".gitattributes").as_deref(), Some("../../.gitattributes"));
        assert_eq!(name("apps/.gitattributes").as_deref(), Some("../.gitattributes"));
        for other in ["apps/shop/.gitattributes", "docs/.gitattributes", "gate.sh"] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
