//! Worktree of a session's task, opened before the work.
//!
//! Invariants:
//! - The branch of a task is the same at every attempt, so that the next one finds earlier work. Only after an attempt that was
//!   silent for too long, and may wake up, the next one begins another branch at the end of that branch.
//! - A problem of one task's worktree is left to a person. A problem of the repository or the machine ends the session, and is
//!   no fault of the task.

use std::fs;
use std::path::{Path, PathBuf};

use windlass_engine::{
    Command, Ending, Event, Finding, Next, Phase, Session, State, Task, TaskId, View, Wanted as SessionWanted,
    Workspace, awaited,
};
use windlass_vcs::git::{Base, Branch, Commit, Error, Existing, Git, RemoteName, Repository, Wanted, Worktree};

use crate::refresh::RefreshOutcome;
use crate::stacked_branches::{self, LowerTask};
use crate::workspace_problem::{Trouble, WorkspaceProblem};
use crate::{EffectRunner, RunError, Runner, RunnerEvent};

/// Maximum length of a goal in the name of a branch.
const SLUG: usize = 40;

/// Work that a task builds on.
#[derive(Default)]
pub(crate) struct Stack {
    /// Unmerged work of other tasks: the task, and the last commit.
    open: Vec<(TaskId, Commit)>,
    /// Whether a part of the lower work is in the base.
    needs_base: bool,
    /// Whether the task reviews this work, which is then checked out without the base.
    is_reviewed: bool,
}

impl Stack {
    fn tips(&self) -> Vec<Commit> {
        self.open.iter().map(|(_, tip)| tip.clone()).collect()
    }

    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        self.open.iter().map(|(id, _)| *id).collect()
    }

    /// Returns the commits to start from. The base is last, since the lower work may have all of it.
    pub(crate) fn with_base(&self, base: &Commit) -> Vec<Commit> {
        if self.is_reviewed && !self.open.is_empty() {
            return self.tips();
        }
        self.tips().into_iter().chain([base.clone()]).collect()
    }
}

/// Action for a worktree on an older base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upkeep {
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

impl EffectRunner<'_> {
    /// Returns the repository of the project, if there is one.
    pub(crate) fn repository(&self) -> Result<Option<Repository>, Error> {
        Repository::find(&self.settings.project)
    }

    /// Runs a closure with git in the project's repository.
    pub(crate) fn with_git<T, E: From<Error>>(&self, work: impl FnOnce(&Git<'_>) -> Result<T, E>) -> Result<T, E> {
        let missing = || Error::NotARepository { path: self.settings.project.clone() };
        let repository = self.repository()?.ok_or_else(missing)?;
        let run = |spec: &_| self.look_with(spec);
        let git = Git::new(repository, &run, &self.settings.environment).with_known(&self.known);
        work(&git.through(self.remote()?))
    }

    /// Returns the configured remote, if a person has named one.
    fn remote(&self) -> Result<Option<RemoteName>, Error> {
        self.settings.delivery.remote.as_deref().map(RemoteName::new).transpose()
    }

    /// Returns the present base of the project's work.
    pub(crate) fn base(&self, git: &Git<'_>) -> Result<Base, Error> {
        let configured = self.settings.delivery.base.as_deref().map(Branch::new).transpose()?;
        git.base(configured.as_ref())
    }

    /// Returns the base, read again if a program has run since the last call.
    pub(crate) fn recent_base(&self, git: &Git<'_>) -> Result<Base, Error> {
        let configured = self.settings.delivery.base.as_deref().map(Branch::new).transpose()?;
        git.recent_base(configured.as_ref())
    }

    /// Returns the last known base, without a fetch.
    pub(crate) fn known_base(&self, git: &Git<'_>) -> Result<Base, Error> {
        let configured = self.settings.delivery.base.as_deref().map(Branch::new).transpose()?;
        git.known_base(configured.as_ref())
    }

    pub(crate) fn worktree(&self, workspace: &Workspace) -> Result<Worktree, Error> {
        let path = self.settings.delivery.worktrees.join(&workspace.name);
        Ok(Worktree { path, branch: Branch::new(&workspace.branch)? })
    }

    /// Returns the directory that a session works in: the project's directory in its worktree, if there is one.
    pub(crate) fn directory_of(&self, session: Option<&Session>) -> PathBuf {
        let workspace = session.and_then(|session| session.workspace.as_ref());
        workspace.map_or_else(|| self.settings.directory.clone(), |workspace| self.place_of(workspace))
    }

    /// Returns the project's directory in a worktree, as far as it exists. While there is a worktree, it is not the person's own
    /// tree.
    pub(crate) fn place_of(&self, workspace: &Workspace) -> PathBuf {
        self.project_within(&self.settings.delivery.worktrees.join(&workspace.name))
    }

    /// Returns the project's directory in a checkout, as far as it exists.
    pub(crate) fn project_within(&self, worktree: &Path) -> PathBuf {
        let places = [self.projects_part(worktree), Some(worktree.to_owned())];
        let place = places.into_iter().flatten().find(|place| place.is_dir());
        place.unwrap_or_else(|| self.settings.directory.clone())
    }

    /// Returns the path of the project in a worktree.
    fn projects_part(&self, worktree: &Path) -> Option<PathBuf> {
        let root = self.repository().ok().flatten()?.root;
        let below = self.settings.project.strip_prefix(root).ok()?;
        // A join with an empty path would leave a slash at the end.
        Some(if below.as_os_str().is_empty() { worktree.to_owned() } else { worktree.join(below) })
    }

    /// Returns the path of the project below the root of the repository.
    pub(crate) fn below_root(&self) -> PathBuf {
        let root = self.repository().ok().flatten().map(|repository| repository.root);
        root.and_then(|root| self.settings.project.strip_prefix(root).ok()).map(Path::to_owned).unwrap_or_default()
    }

    /// Creates the project's directory in a worktree: git has none for a project without any committed file.
    fn make_place(&self, worktree: &Path) -> Result<(), WorkspaceProblem> {
        let Some(place) = self.projects_part(worktree).filter(|place| !place.is_dir()) else { return Ok(()) };
        let why = |error| {
            WorkspaceProblem::plain(format!("cannot make the project's directory {}: {error}", place.display()))
        };
        fs::create_dir_all(&place).map_err(why)
    }

    /// Makes sure that the worktree of a task exists.
    pub(crate) fn reopen(&self, task: &Task) -> Result<(), WorkspaceProblem> {
        match self.open(task, Upkeep::Leave) {
            Ok(_) => Ok(()),
            Err(Trouble::Task(why) | Trouble::Outside(why)) => Err(why),
        }
    }

    /// Returns the tasks that a workspace is stacked on, without those that Windlass has merged.
    pub(crate) fn below(&self, workspace: &Workspace) -> Result<Vec<LowerTask>, RunError> {
        Ok(stacked_branches::below(&self.store.snapshot()?, workspace)?)
    }

    /// Returns the work that a task builds on. A task does not build on a merged change, but on the base; nor on the work of a deleted
    /// task.
    fn stacked_on(&self, task: &Task, git: &Git<'_>, base: &Commit) -> Result<Stack, Trouble> {
        let outside = |error: &dyn std::error::Error| Trouble::Outside(WorkspaceProblem::plain(error.to_string()));
        let snapshot = self.store.snapshot().map_err(|error| outside(&error))?;
        let reviewed = task.report.as_ref().and_then(|report| report.reviews);
        let mut stack = Stack { is_reviewed: reviewed.is_some(), ..Stack::default() };
        let below = match reviewed {
            Some(reviewed) => vec![reviewed],
            None => awaited(&snapshot, task.id).map_err(|error| outside(&error))?,
        };
        for id in below {
            let Some(other) = snapshot.task(id).map_err(|error| outside(&error))? else { continue };
            let is_unmerged = stacked_branches::is_unmerged(&other);
            if other.state == State::Deleted || (other.change.is_none() && !is_unmerged) {
                continue;
            }
            let branch = other.workspace.as_ref().filter(|_| is_unmerged).map(|workspace| &workspace.branch);
            let tip = branch.map(|branch| git.tip(&Branch::new(branch)?)).transpose()?.flatten();
            let is_at_start = |tip: &Commit| {
                stacked_branches::work_without_change(&other).is_some_and(|work| work.start == tip.as_str())
            };
            match tip {
                Some(tip) if !git.has_all(base, &tip)? => stack.open.push((id, tip)),
                // The task has no commits, so the base has none of them.
                Some(tip) if is_at_start(&tip) => {}
                _ => stack.needs_base = true,
            }
        }
        Ok(stack)
    }

    fn open(&self, task: &Task, upkeep: Upkeep) -> Result<OpenedWorkspace, Trouble> {
        self.with_git(|git| self.open_with(git, task, upkeep))
    }

    fn open_with(&self, git: &Git<'_>, task: &Task, upkeep: Upkeep) -> Result<OpenedWorkspace, Trouble> {
        let base = self.base(git)?;
        let known = task.workspace.clone();
        let former = task.former.last();
        let branch = match (&known, task.former.first()) {
            (Some(known), _) => Branch::new(&known.branch)?,
            (None, Some(first)) => Branch::new(&format!("{}-{}", first.branch, task.former.len() + 1))?,
            (None, None) => Branch::new(&branch(task))?,
        };
        let name = branch.as_str().trim_start_matches("windlass/").replace('/', "-");
        let is_begun = known.is_some() || former.is_some();
        let stacked = match upkeep {
            Upkeep::Leave if is_begun => Stack::default(),
            Upkeep::Leave | Upkeep::Refresh => self.stacked_on(task, git, &base.commit)?,
        };
        let left = former.map(|former| git.tip(&Branch::new(&former.branch)?)).transpose()?.flatten();
        let start: Vec<Commit> = match left {
            Some(left) => vec![left],
            None => stacked.with_base(&base.commit),
        };
        let path = self.settings.delivery.worktrees.join(&name);
        let existing = if known.is_some() { Existing::Take } else { Existing::IfOurs };
        let open = |start: &[Commit]| git.open(Wanted { branch: &branch, path: &path, start, existing });
        let opened = match open(&start) {
            // The lower work will have to be rebased onto the base, but this task does not need the base.
            Err(Error::Conflict { .. }) if !stacked.needs_base => open(&stacked.tips()),
            opened => opened,
        };
        let opened = opened.map_err(|error| match error {
            Error::Conflict { files, .. } => {
                let base = stacked.needs_base.then(|| base.shown());
                Error::Conflict { files, between: stacked_branches::named(&stacked.tasks(), base) }
            }
            error => error,
        })?;
        self.make_place(&path).map_err(Trouble::Task)?;
        let mut workspace = Workspace {
            branch: branch.to_string(),
            base: base.branch.to_string(),
            // Earlier work on another branch is a part of the work.
            start: former.map_or_else(|| opened.start.to_string(), |former| former.start.clone()),
            name,
            stacked_on: match known.as_ref().or(former) {
                Some(earlier) => earlier.stacked_on.clone(),
                None => stacked.tasks(),
            },
            protected: known.as_ref().or(former).and_then(|earlier| earlier.protected),
        };
        let refreshed = match upkeep {
            Upkeep::Refresh if is_begun => self.refresh(git, task, &mut workspace, (&base, &stacked))?,
            Upkeep::Refresh | Upkeep::Leave => RefreshOutcome::Unchanged,
        };
        let stale = base.stale.map(|why| format!("the work starts from what is known of {}: {why}", base.branch));
        Ok(OpenedWorkspace { workspace, reused: opened.reused, stale, refreshed })
    }

    /// Returns a snapshot of the protected files at the start of the work. For a resumed task, it leaves out files that git keeps.
    fn protected_in(&self, session: &Session, task: &Task, workspace: &Workspace) -> Result<Option<String>, Trouble> {
        if session.protected.is_none() || workspace.protected.is_some() {
            return Ok(None);
        }
        let there = Session { workspace: Some(workspace.clone()), ..session.clone() };
        let look = self.settings.protected.look(&self.directory_of(Some(&there)));
        let look = look.map_err(|error| {
            Trouble::Outside(WorkspaceProblem::plain(format!("cannot watch the protected files: {error}")))
        })?;
        let is_begun = task.workspace.is_some() || !task.former.is_empty();
        if is_begun { Ok(Some(self.leave_out_kept_files(workspace, &look)?)) } else { Ok(Some(look)) }
    }
}

impl Runner<'_> {
    /// Opens a worktree for the task of a session.
    pub(crate) fn open_workspace(&mut self, session: &Session) -> Result<(), RunError> {
        let name = session.name.clone();
        let task = self.task_of(session)?;
        let opened = self.dispatch.open(&task, Upkeep::Refresh).and_then(|opened| {
            let protected = self.dispatch.protected_in(session, &task, &opened.workspace)?;
            Ok((opened, protected))
        });
        match opened {
            Ok((opened, protected)) => {
                let OpenedWorkspace { workspace, reused, stale, refreshed } = opened;
                let (said, feedback) = refreshed.told();
                let feedback = self.unless_pending(session, feedback)?;
                stale.iter().chain(&said).for_each(|words| (self.dispatch.outside.tell)(RunnerEvent::Note(words)));
                self.commit(&Command::OpenWorkspace { name, workspace, reused, protected, feedback }).map(drop)
            }
            Err(_) if self.dispatch.control.is_cancelled() => Ok(()),
            Err(Trouble::Task(said)) => {
                self.commit(&Command::LeaveToPerson { name, reason: said.to_string(), commits: vec![] }).map(drop)
            }
            Err(Trouble::Outside(said)) => self.ask_to_end(&name, Ending::Error, Some(said.to_string())),
        }
    }

    /// Returns a finding for the agent, unless its pending feedback has the same text.
    fn unless_pending(&self, session: &Session, finding: Option<Finding>) -> Result<Option<Finding>, RunError> {
        let Some(finding) = finding else { return Ok(None) };
        for piece in &session.pending {
            if let Event::FeedbackQueued(queued) = self.dispatch.event(piece.at)?.envelope.event
                && queued.text == finding.text
            {
                return Ok(None);
            }
        }
        Ok(Some(finding))
    }

    /// Returns the current state of a task.
    pub fn task(&self, id: TaskId) -> Result<Option<Task>, RunError> {
        self.dispatch.task(id)
    }

    /// Moves the worktree of a session that another process has left onto the present base. Work that a gate has judged, or is about
    /// to judge, stays.
    pub(crate) fn refresh_workspace(&mut self, session: &Session) -> Result<(), RunError> {
        let is_at_work = session.epoch().is_some() && !session.resumes && session.stopping.is_none();
        let is_judged = match session.phase {
            Phase::Pipeline(_) | Phase::Judging(..) | Phase::Decided(..) | Phase::Asking(..) => true,
            Phase::Settled(Next::Close(_)) => true,
            _ => session.wanted() == SessionWanted::Work,
        };
        if !is_at_work || is_judged || session.workspace.is_none() {
            return Ok(());
        }
        let task = self.task_of(session)?;
        // A problem here is a problem of the work, too, and is reported there.
        let Ok(opened) = self.dispatch.open(&task, Upkeep::Refresh) else { return Ok(()) };
        let has_moved = !matches!(opened.refreshed, RefreshOutcome::Left(_));
        let (Some(said), feedback) = opened.refreshed.told() else { return Ok(()) };
        (self.dispatch.outside.tell)(RunnerEvent::Note(&said));
        if !has_moved {
            return Ok(());
        }
        let feedback = self.unless_pending(session, feedback)?;
        let (name, workspace) = (session.name.clone(), opened.workspace);
        self.commit(&Command::OpenWorkspace { name, workspace, reused: true, protected: None, feedback }).map(drop)
    }

    pub(crate) fn task_of(&self, session: &Session) -> Result<Task, RunError> {
        let task = session.task.map(|id| self.dispatch.store.snapshot()?.task(id).map_err(RunError::from));
        task.transpose()?.flatten().ok_or_else(|| RunError::Stuck(session.name.clone()))
    }

    /// Makes sure that the worktree exists before the work: a person may have removed it. Returns false if it cannot exist.
    pub(crate) fn ensure_workspace(&mut self, session: &Session) -> Result<bool, RunError> {
        let Some(workspace) = session.workspace.as_ref().filter(|_| session.epoch().is_some()) else { return Ok(true) };
        let worktree = self.dispatch.settings.delivery.worktrees.join(&workspace.name);
        let standing = match worktree.join(".git").exists() {
            true => self.dispatch.make_place(&worktree).map_err(Trouble::Task),
            false => self.restore_worktree(&self.task_of(session)?, workspace),
        };
        match standing {
            Ok(()) => Ok(true),
            Err(_) if self.dispatch.control.is_cancelled() => Ok(true),
            Err(Trouble::Task(reason) | Trouble::Outside(reason)) => {
                let reason = format!("its worktree cannot be worked in: {reason}");
                self.ask_to_end(&session.name, Ending::Error, Some(reason))?;
                Ok(false)
            }
        }
    }
}

impl Runner<'_> {
    /// Creates a removed worktree again, and reports it to the observer.
    fn restore_worktree(&mut self, task: &Task, workspace: &Workspace) -> Result<(), Trouble> {
        let tip = self.dispatch.with_git(|git| git.tip(&Branch::new(&workspace.branch)?))?;
        self.dispatch.open(task, Upkeep::Leave)?;
        let (id, Workspace { name, branch, .. }) = (task.id, workspace);
        let note = match tip {
            Some(_) => format!("{id}: its worktree {name} was removed, and is made again from {branch}"),
            None => {
                self.removed_branch = Some(id);
                format!("{id}: its worktree {name} and its branch {branch} were removed, and are made again")
            }
        };
        (self.dispatch.outside.tell)(RunnerEvent::Note(&note));
        Ok(())
    }
}

/// Returns the name of a task's branch: `windlass/t7-fix-the-login`.
fn branch(task: &Task) -> String {
    let words = task.goal.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= SLUG {
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
    use windlass_engine::{Memory, NewTask, Registry, Rules};

    use super::*;

    fn task(goal: &str) -> Task {
        let mut memory = Memory::default();
        let origin = windlass_engine::Origin {
            by: "ada".to_owned(),
            at: windlass_engine::Timestamp::from_millis(0),
            authority: windlass_engine::Authority::Person,
            run: None,
            via: None,
        };
        let rules = Rules { registry: Registry::with_builtins(), ..Rules::default() };
        let new = Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() });
        let (entries, _) = windlass_engine::decide(&memory, &rules, &origin, &new).unwrap().into_parts();
        entries.iter().for_each(|entry| memory.apply(&entry.record).unwrap());
        memory.task(TaskId(1)).unwrap().unwrap()
    }

    #[test]
    fn branches_have_names_that_git_takes() {
        let check = |goal: &str, expected: &str| {
            let name = branch(&task(goal));
            assert_eq!(name, expected);
            Branch::new(&name).unwrap();
        };
        check("Fix the login!", "windlass/t1-fix-the-login");
        check("--upload-pack=evil ../../x.lock @{-1}", "windlass/t1-upload-pack-evil-x-lock-1");
        check("直す", "windlass/t1");
        check(&"word ".repeat(40), "windlass/t1-word-word-word-word-word-word-word-word");
    }

    #[test]
    fn a_commit_says_what_it_is_for_on_one_line() {
        assert_eq!(commit_message(&task("\nFix\u{1b}[31m it\nand more")), "Fix[31m it\n\nTask: T1\n");
    }
}
