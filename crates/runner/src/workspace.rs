//! Worktree of a session's task, opened before the work.
//!
//! Invariants:
//! - The branch of a task is the same at every attempt, so that the next one finds earlier work. Only after an attempt that was
//!   silent for too long, and may wake up, the next one begins another branch at the end of that branch.
//! - A problem of one task's worktree is left to a person. A problem of the repository or the machine ends the session, and is
//!   no fault of the task.

use std::fs;
use std::path::{Component, Path, PathBuf};

use windlass_engine::{
    AfterIteration, Command, Event, GateFinding, NextAction as SessionWanted, Session, SessionEndKind, SessionPhase,
    StateView, Task, TaskId, TaskState, Workspace, awaited_tasks,
};
use windlass_vcs::git::{
    BaseBranch, BranchName, Error, ExistingBranch, GitClient, GitCommitId, GitRepository, RemoteName, Worktree,
    WorktreeRequest,
};

use crate::refresh::RefreshOutcome;
use crate::stacked_branches::{self, ParentStackTask};
use crate::workspace_problem::{WorkspaceError, WorkspaceProblem};
use crate::{EffectRunner, RunError, Runner, RunnerEvent};

/// Maximum length of a goal in the name of a branch.
const MAX_SLUG_LENGTH: usize = 40;

/// Work that a task builds on.
#[derive(Default)]
pub(crate) struct WorkStack {
    /// Unmerged work of other tasks: the task, and the last commit.
    open: Vec<(TaskId, GitCommitId)>,
    /// Whether a part of the lower work is in the base.
    needs_base: bool,
    /// Whether the task reviews this work, which is then checked out without the base.
    is_reviewed: bool,
}

impl WorkStack {
    fn open_tips(&self) -> Vec<GitCommitId> {
        self.open.iter().map(|(_, tip)| tip.clone()).collect()
    }

    pub(crate) fn open_tasks(&self) -> Vec<TaskId> {
        self.open.iter().map(|(id, _)| *id).collect()
    }

    /// Returns the commits to start from. The base is last, since the lower work may have all of it.
    pub(crate) fn start_commits(&self, base: &GitCommitId) -> Vec<GitCommitId> {
        if self.is_reviewed && !self.open.is_empty() {
            return self.open_tips();
        }
        self.open_tips().into_iter().chain([base.clone()]).collect()
    }
}

/// Action for a worktree on an older base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseRefreshPolicy {
    /// Move it onto the present base, because its task is taken up.
    Refresh,
    Leave,
}

/// An opened worktree of a task.
struct OpenedWorkspace {
    workspace: Workspace,
    /// Whether it existed before.
    reused: bool,
    /// Reason why the newest base is unknown.
    stale: Option<String>,
    refreshed: RefreshOutcome,
}

/// Refuses a name that leads out of the directory of worktrees. In a fleet, the name may come from another machine.
fn check_worktree_name(name: &str) -> Result<(), Error> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(()),
        _ => Err(Error::BadName { kind: "worktree", name: name.to_owned(), why: "it is not one plain file name" }),
    }
}

impl EffectRunner<'_> {
    /// Returns the repository of the project, if there is one.
    pub(crate) fn find_repository(&self) -> Result<Option<GitRepository>, Error> {
        GitRepository::discover(&self.settings.project)
    }

    /// Runs a closure with git in the project's repository.
    pub(crate) fn with_git<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&GitClient<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let missing = || Error::NotARepository { path: self.settings.project.clone() };
        let repository = self.find_repository()?.ok_or_else(missing)?;
        let run = |spec: &_| self.run_query(spec);
        let git = GitClient::new(repository, &run, &self.settings.environment).with_known_facts(&self.known);
        work(&git.with_remote(self.configured_remote()?))
    }

    /// Returns the configured remote, if a person has named one.
    fn configured_remote(&self) -> Result<Option<RemoteName>, Error> {
        self.settings.delivery.remote.as_deref().map(RemoteName::new).transpose()
    }

    /// Returns the present base of the project's work.
    pub(crate) fn load_base(&self, git: &GitClient<'_>) -> Result<BaseBranch, Error> {
        let configured = self.settings.delivery.base.as_deref().map(BranchName::new).transpose()?;
        git.fetch_base(configured.as_ref())
    }

    /// Returns the base, read again if a program has run since the last call.
    pub(crate) fn recent_base(&self, git: &GitClient<'_>) -> Result<BaseBranch, Error> {
        let configured = self.settings.delivery.base.as_deref().map(BranchName::new).transpose()?;
        git.recent_base(configured.as_ref())
    }

    /// Returns the last known base, without a fetch.
    pub(crate) fn last_known_base(&self, git: &GitClient<'_>) -> Result<BaseBranch, Error> {
        let configured = self.settings.delivery.base.as_deref().map(BranchName::new).transpose()?;
        git.known_base(configured.as_ref())
    }

    pub(crate) fn task_worktree(&self, workspace: &Workspace) -> Result<Worktree, Error> {
        check_worktree_name(&workspace.name)?;
        let path = self.settings.delivery.worktrees.join(&workspace.name);
        Ok(Worktree { path, branch: BranchName::new(&workspace.branch)? })
    }

    /// Returns the directory that a session works in: the project's directory in its worktree, if there is one.
    pub(crate) fn session_directory(&self, session: Option<&Session>) -> PathBuf {
        let workspace = session.and_then(|session| session.workspace.as_ref());
        workspace.map_or_else(|| self.settings.directory.clone(), |workspace| self.project_in_worktree(workspace))
    }

    /// Returns the project's directory in a worktree, as far as it exists. While there is a worktree, it is not the person's own
    /// tree.
    pub(crate) fn project_in_worktree(&self, workspace: &Workspace) -> PathBuf {
        self.project_in_checkout(&self.settings.delivery.worktrees.join(&workspace.name))
    }

    /// Returns the project's directory in a checkout, as far as it exists.
    pub(crate) fn project_in_checkout(&self, worktree: &Path) -> PathBuf {
        let places = [self.project_path_in(worktree), Some(worktree.to_owned())];
        let place = places.into_iter().flatten().find(|place| place.is_dir());
        place.unwrap_or_else(|| self.settings.directory.clone())
    }

    /// Returns the path of the project in a worktree.
    fn project_path_in(&self, worktree: &Path) -> Option<PathBuf> {
        let root = self.find_repository().ok().flatten()?.root;
        let below = self.settings.project.strip_prefix(root).ok()?;
        // A join with an empty path would leave a slash at the end.
        Some(if below.as_os_str().is_empty() { worktree.to_owned() } else { worktree.join(below) })
    }

    /// Returns the path of the project below the root of the repository.
    pub(crate) fn project_below_root(&self) -> PathBuf {
        let root = self.find_repository().ok().flatten().map(|repository| repository.root);
        root.and_then(|root| self.settings.project.strip_prefix(root).ok()).map(Path::to_owned).unwrap_or_default()
    }

    /// Creates the project's directory in a worktree: git has none for a project without any committed file.
    fn create_project_directory(&self, worktree: &Path) -> Result<(), WorkspaceProblem> {
        let Some(place) = self.project_path_in(worktree).filter(|place| !place.is_dir()) else { return Ok(()) };
        let why = |error| {
            WorkspaceProblem::from_cause(format!("cannot make the project's directory {}: {error}", place.display()))
        };
        fs::create_dir_all(&place).map_err(why)
    }

    /// Makes sure that the worktree of a task exists.
    pub(crate) fn reopen_worktree(&self, task: &Task) -> Result<(), WorkspaceProblem> {
        match self.open_worktree(task, BaseRefreshPolicy::Leave) {
            Ok(_) => Ok(()),
            Err(WorkspaceError::Task(why) | WorkspaceError::Outside(why)) => Err(why),
        }
    }

    /// Returns the tasks that a workspace is stacked on, without those that Windlass has merged.
    pub(crate) fn load_lower_tasks(&self, workspace: &Workspace) -> Result<Vec<ParentStackTask>, RunError> {
        Ok(stacked_branches::unmerged_lower_tasks(&self.store.begin_snapshot()?, workspace)?)
    }

    /// Returns the work that a task builds on. A task does not build on a merged change, but on the base; nor on the work of a deleted
    /// task.
    fn load_work_stack(
        &self,
        task: &Task,
        git: &GitClient<'_>,
        base: &GitCommitId,
    ) -> Result<WorkStack, WorkspaceError> {
        let outside =
            |error: &dyn std::error::Error| WorkspaceError::Outside(WorkspaceProblem::from_cause(error.to_string()));
        let snapshot = self.store.begin_snapshot().map_err(|error| outside(&error))?;
        let reviewed = task.report.as_ref().and_then(|report| report.reviews);
        let mut stack = WorkStack { is_reviewed: reviewed.is_some(), ..WorkStack::default() };
        let below = match reviewed {
            Some(reviewed) => vec![reviewed],
            None => awaited_tasks(&snapshot, task.id).map_err(|error| outside(&error))?,
        };
        for id in below {
            let Some(other) = snapshot.find_task(id).map_err(|error| outside(&error))? else { continue };
            let is_unmerged = stacked_branches::is_unmerged(&other);
            if other.state == TaskState::Deleted || (other.change.is_none() && !is_unmerged) {
                continue;
            }
            if let Some(workspace) = other.workspace.as_ref().filter(|_| is_unmerged) {
                self.take_shared_branch(git, workspace)?;
            }
            let branch = other.workspace.as_ref().filter(|_| is_unmerged).map(|workspace| &workspace.branch);
            let tip = branch.map(|branch| git.branch_tip(&BranchName::new(branch)?)).transpose()?.flatten();
            let is_at_start = |tip: &GitCommitId| {
                stacked_branches::work_without_change(&other).is_some_and(|work| work.start == tip.as_str())
            };
            match tip {
                Some(tip) if !git.has_all_changes(base, &tip)? => stack.open.push((id, tip)),
                // The task has no commits, so the base has none of them.
                Some(tip) if is_at_start(&tip) => {}
                _ => stack.needs_base = true,
            }
        }
        Ok(stack)
    }

    fn open_worktree(&self, task: &Task, refresh_policy: BaseRefreshPolicy) -> Result<OpenedWorkspace, WorkspaceError> {
        self.with_git(|git| self.open_worktree_with_git(git, task, refresh_policy))
    }

    fn open_worktree_with_git(
        &self,
        git: &GitClient<'_>,
        task: &Task,
        refresh_policy: BaseRefreshPolicy,
    ) -> Result<OpenedWorkspace, WorkspaceError> {
        let base = self.load_base(git)?;
        let known = task.workspace.clone();
        let former = task.former_workspaces.last();
        let branch = match (&known, task.former_workspaces.first()) {
            (Some(known), _) => BranchName::new(&known.branch)?,
            (None, Some(first)) => BranchName::new(&format!("{}-{}", first.branch, task.former_workspaces.len() + 1))?,
            (None, None) => BranchName::new(&branch_name(task))?,
        };
        let name = branch.as_str().trim_start_matches("windlass/").replace('/', "-");
        let is_begun = known.is_some() || former.is_some();
        let stacked = match refresh_policy {
            BaseRefreshPolicy::Leave if is_begun => WorkStack::default(),
            BaseRefreshPolicy::Leave | BaseRefreshPolicy::Refresh => self.load_work_stack(task, git, &base.commit)?,
        };
        if let Some(earlier) = known.as_ref().or(former) {
            self.take_shared_branch(git, earlier)?;
        }
        let left = former.map(|former| git.branch_tip(&BranchName::new(&former.branch)?)).transpose()?.flatten();
        let start: Vec<GitCommitId> = match left {
            Some(left) => vec![left],
            None => stacked.start_commits(&base.commit),
        };
        let path = self.settings.delivery.worktrees.join(&name);
        let existing = if known.is_some() { ExistingBranch::Take } else { ExistingBranch::IfOurs };
        let open = |start: &[GitCommitId]| {
            git.open_worktree(WorktreeRequest { branch: &branch, path: &path, start, existing })
        };
        let opened = match open(&start) {
            // The lower work will have to be rebased onto the base, but this task does not need the base.
            Err(Error::Conflict { .. }) if !stacked.needs_base => open(&stacked.open_tips()),
            opened => opened,
        };
        let opened = opened.map_err(|error| match error {
            Error::Conflict { files, .. } => {
                let base = stacked.needs_base.then(|| base.display_name());
                Error::Conflict { files, between: stacked_branches::list_tasks(&stacked.open_tasks(), base) }
            }
            error => error,
        })?;
        self.create_project_directory(&path).map_err(WorkspaceError::Task)?;
        let mut workspace = Workspace {
            branch: branch.to_string(),
            base: base.branch.to_string(),
            // Earlier work on another branch is a part of the work.
            start: former.map_or_else(|| opened.start.to_string(), |former| former.start.clone()),
            name,
            stacked_on: match known.as_ref().or(former) {
                Some(earlier) => earlier.stacked_on.clone(),
                None => stacked.open_tasks(),
            },
            protected: known.as_ref().or(former).and_then(|earlier| earlier.protected),
        };
        let refreshed = match refresh_policy {
            BaseRefreshPolicy::Refresh if is_begun => {
                self.refresh_worktree(git, task, &mut workspace, (&base, &stacked))?
            }
            BaseRefreshPolicy::Refresh | BaseRefreshPolicy::Leave => RefreshOutcome::Unchanged,
        };
        let stale =
            base.stale.map(|why| format!("the work starts from the last known state of {}: {why}", base.branch));
        Ok(OpenedWorkspace { workspace, reused: opened.reused, stale, refreshed })
    }

    /// Returns a snapshot of the protected files at the start of the work. For a resumed task, it leaves out files that git keeps.
    fn snapshot_protected_files(
        &self,
        session: &Session,
        task: &Task,
        workspace: &Workspace,
    ) -> Result<Option<String>, WorkspaceError> {
        if session.protected.is_none() || workspace.protected.is_some() {
            return Ok(None);
        }
        let there = Session { workspace: Some(workspace.clone()), ..session.clone() };
        let look = self.settings.protected.take_snapshot(&self.session_directory(Some(&there)));
        let look = look.map_err(|error| {
            WorkspaceError::Outside(WorkspaceProblem::from_cause(format!("cannot watch the protected files: {error}")))
        })?;
        let is_begun = task.workspace.is_some() || !task.former_workspaces.is_empty();
        if is_begun { Ok(Some(self.leave_out_kept_files(workspace, &look)?)) } else { Ok(Some(look)) }
    }
}

impl Runner<'_> {
    /// Opens a worktree for the task of a session.
    pub(crate) fn open_workspace(&mut self, session: &Session) -> Result<(), RunError> {
        let name = session.name.clone();
        let task = self.load_session_task(session)?;
        let opened = self.effects.open_worktree(&task, BaseRefreshPolicy::Refresh).and_then(|opened| {
            let protected = self.effects.snapshot_protected_files(session, &task, &opened.workspace)?;
            Ok((opened, protected))
        });
        match opened {
            Ok((opened, protected)) => {
                let OpenedWorkspace { workspace, reused, stale, refreshed } = opened;
                let (said, feedback) = refreshed.into_messages();
                let feedback = self.unless_feedback_pending(session, feedback)?;
                stale.iter().chain(&said).for_each(|words| (self.effects.env.observe)(RunnerEvent::Note(words)));
                self.commit_command(&Command::OpenWorkspace { name, workspace, reused, protected, feedback }).map(drop)
            }
            Err(_) if self.effects.control.is_cancelled() => Ok(()),
            Err(WorkspaceError::Task(said)) => self
                .commit_command(&Command::LeaveToPerson { name, reason: said.to_string(), commits: vec![] })
                .map(drop),
            Err(WorkspaceError::Outside(said)) => {
                self.stop_session(&name, SessionEndKind::Error, Some(said.to_string()))
            }
        }
    }

    /// Returns a finding for the agent, unless its pending feedback has the same text.
    fn unless_feedback_pending(
        &self,
        session: &Session,
        finding: Option<GateFinding>,
    ) -> Result<Option<GateFinding>, RunError> {
        let Some(finding) = finding else { return Ok(None) };
        for piece in &session.pending {
            if let Event::FeedbackQueued(queued) = self.effects.load_event(piece.at)?.envelope.event
                && queued.text == finding.text
            {
                return Ok(None);
            }
        }
        Ok(Some(finding))
    }

    /// Returns the current state of a task.
    pub fn load_task(&self, id: TaskId) -> Result<Option<Task>, RunError> {
        self.effects.load_task(id)
    }

    /// Moves the worktree of a session that another process has left onto the present base. Work that a gate has judged, or is about
    /// to judge, stays.
    pub(crate) fn refresh_workspace(&mut self, session: &Session) -> Result<(), RunError> {
        let is_at_work = session.held_epoch().is_some() && !session.resumes_at_gate && session.stopping.is_none();
        let is_judged = match session.phase {
            SessionPhase::Pipeline(_)
            | SessionPhase::Judging(..)
            | SessionPhase::Decided(..)
            | SessionPhase::Asking(..) => true,
            SessionPhase::Settled(AfterIteration::Close(_)) => true,
            _ => session.next_action() == SessionWanted::Work,
        };
        if !is_at_work || is_judged || session.workspace.is_none() {
            return Ok(());
        }
        let task = self.load_session_task(session)?;
        // A problem here is a problem of the work, too, and is reported there.
        let Ok(opened) = self.effects.open_worktree(&task, BaseRefreshPolicy::Refresh) else { return Ok(()) };
        let has_moved = !matches!(opened.refreshed, RefreshOutcome::Left(_));
        let (Some(said), feedback) = opened.refreshed.into_messages() else { return Ok(()) };
        (self.effects.env.observe)(RunnerEvent::Note(&said));
        if !has_moved {
            return Ok(());
        }
        let feedback = self.unless_feedback_pending(session, feedback)?;
        let (name, workspace) = (session.name.clone(), opened.workspace);
        self.commit_command(&Command::OpenWorkspace { name, workspace, reused: true, protected: None, feedback })
            .map(drop)
    }

    pub(crate) fn load_session_task(&self, session: &Session) -> Result<Task, RunError> {
        let task = session.task.map(|id| self.effects.store.begin_snapshot()?.find_task(id).map_err(RunError::from));
        task.transpose()?.flatten().ok_or_else(|| RunError::Stuck(session.name.clone()))
    }

    /// Makes sure that the worktree exists before the work: a person may have removed it. Returns false if it cannot exist.
    pub(crate) fn ensure_workspace(&mut self, session: &Session) -> Result<bool, RunError> {
        let Some(workspace) = session.workspace.as_ref().filter(|_| session.held_epoch().is_some()) else {
            return Ok(true);
        };
        let worktree = self.effects.settings.delivery.worktrees.join(&workspace.name);
        let restored = match worktree.join(".git").exists() {
            true => self.effects.create_project_directory(&worktree).map_err(WorkspaceError::Task),
            false => self.restore_worktree(&self.load_session_task(session)?, workspace),
        };
        match restored {
            Ok(()) => Ok(true),
            Err(_) if self.effects.control.is_cancelled() => Ok(true),
            Err(WorkspaceError::Task(reason) | WorkspaceError::Outside(reason)) => {
                let reason = format!("its worktree is not usable: {reason}");
                self.stop_session(&session.name, SessionEndKind::Error, Some(reason))?;
                Ok(false)
            }
        }
    }
}

impl Runner<'_> {
    /// Creates a removed worktree again, and reports it to the observer.
    fn restore_worktree(&mut self, task: &Task, workspace: &Workspace) -> Result<(), WorkspaceError> {
        let tip = self.effects.with_git(|git| git.branch_tip(&BranchName::new(&workspace.branch)?))?;
        self.effects.open_worktree(task, BaseRefreshPolicy::Leave)?;
        let (id, Workspace { name, branch, .. }) = (task.id, workspace);
        let note = match tip {
            Some(_) => format!("{id}: its worktree {name} was removed, and is made again from {branch}"),
            None => {
                self.removed_branch = Some(id);
                format!("{id}: its worktree {name} and its branch {branch} were removed, and are made again")
            }
        };
        (self.effects.env.observe)(RunnerEvent::Note(&note));
        Ok(())
    }
}

/// Returns the name of a task's branch: `windlass/t7-fix-the-login`.
fn branch_name(task: &Task) -> String {
    let words = task.goal.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= MAX_SLUG_LENGTH {
            break;
        }
        slug.push('-');
        slug.push_str(&word.to_ascii_lowercase());
    }
    format!("windlass/{}{slug}", task.id.to_string().to_ascii_lowercase())
}

/// Returns the message of a commit of uncommitted work.
pub(crate) fn commit_message(task: &Task) -> String {
    let subject: String = task.title().chars().filter(|letter| !letter.is_control()).take(72).collect();
    format!("{subject}\n\nTask: {}\n", task.id)
}

#[cfg(test)]
mod tests {
    use windlass_engine::{EngineRules, HookRegistry, MemoryView, NewTask};

    use super::*;

    fn task(goal: &str) -> Task {
        let mut memory = MemoryView::default();
        let origin = windlass_engine::CommandOrigin {
            by: "ada".to_owned(),
            at: windlass_engine::Timestamp::from_millis(0),
            authority: windlass_engine::Authority::Person,
            run: None,
            via: None,
        };
        let rules = EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() };
        let new = Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() });
        let (entries, _) = windlass_engine::decide(&memory, &rules, &origin, &new).unwrap().into_parts();
        entries.iter().for_each(|entry| memory.apply_event(&entry.record).unwrap());
        memory.find_task(TaskId(1)).unwrap().unwrap()
    }

    #[test]
    fn worktree_name_that_leads_elsewhere_is_refused() {
        assert!(check_worktree_name("t1-mend-the-pump-2").is_ok());
        for name in ["", ".", "..", "/etc", "a/b", "../a", "a/", "a/.."] {
            assert!(check_worktree_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn branch_name_of_any_goal_is_valid_for_git() {
        let check = |goal: &str, expected: &str| {
            let name = branch_name(&task(goal));
            assert_eq!(name, expected);
            BranchName::new(&name).unwrap();
        };
        check("Fix the login!", "windlass/t1-fix-the-login");
        check("--upload-pack=evil ../../x.lock @{-1}", "windlass/t1-upload-pack-evil-x-lock-1");
        check("直す", "windlass/t1");
        check(&"word ".repeat(40), "windlass/t1-word-word-word-word-word-word-word-word");
    }

    #[test]
    fn commit_message_has_one_subject_line() {
        assert_eq!(commit_message(&task("\nFix\u{1b}[31m it\nand more")), "Fix[31m it\n\nTask: T1\n");
    }
}
