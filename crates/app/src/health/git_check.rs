//! The checks of git: whether git and the forge let tasks be worked on and merged, and whether each of our worktrees and branches
//! has its task.
//!
//! Outside a repository there are no checks. Programs of git run only for facts that are not in its files, and use the network
//! only if the base is not known locally.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windlass_config::Config;
use windlass_engine::{StateView, Task, TaskId};
use windlass_process::{OwnerLock, ProgramSpec, RunControl, run_program};
use windlass_runner::{DeliverySettings, task_of_name};
use windlass_store::StoreSnapshot;
use windlass_vcs::forge::{ForgeProject, ForgeToken};
use windlass_vcs::git::{
    BaseBranch, BranchName, Error, GitClient, GitRepository, LinkedWorktree, RemoteName, quote_path,
    strip_removal_prefix,
};

use super::HealthCheck;
use crate::context::OpenedProject;
use crate::{environment, execution, runner_settings};

/// The prefix of our branches.
const TASK_BRANCH_PREFIX: &str = "windlass/";

pub fn check_git(opened: &OpenedProject, control: &RunControl) -> Vec<HealthCheck> {
    let Ok(config) = Config::load(&opened.project.root) else { return Vec::new() };
    let repository = match GitRepository::discover(&opened.project.root) {
        Ok(Some(repository)) => repository,
        Ok(None) => return Vec::new(),
        Err(error) => {
            return vec![failed_check("git", String::new(), vec![error.to_string()], error.hint().as_deref())];
        }
    };
    let Ok(owner_lock) = execution::acquire_owner_lock(&opened.project) else { return Vec::new() };
    let delivery = runner_settings::delivery_settings(&opened.project, &config);
    let look = GitInspection { opened, delivery, owner_lock: &owner_lock, control };
    // Tasks that are worked on in place need neither a base nor a forge.
    look.run_checks(repository, config.settings.worktrees != Some(false))
}

struct GitInspection<'a> {
    opened: &'a OpenedProject,
    delivery: DeliverySettings,
    owner_lock: &'a OwnerLock,
    control: &'a RunControl,
}

impl GitInspection<'_> {
    fn run_checks(&self, repository: GitRepository, delivers: bool) -> Vec<HealthCheck> {
        let start = |spec: &ProgramSpec| run_program(spec, self.owner_lock, self.control, &mut |_, _| {});
        let environment = environment::inherited_environment();
        let remote = self.delivery.remote.as_deref().and_then(|name| RemoteName::new(name).ok());
        let git = GitClient::new(repository, &start, &environment).with_remote(remote);
        let base = delivers.then(|| self.find_base(&git));
        let mut checks = vec![self.check_base_and_branches(&git, base.as_ref())];
        if let Some(Ok(base)) = &base {
            checks.extend(self.check_forge_access(&git, base));
        }
        checks.extend(self.check_worktrees(&git));
        checks
    }

    fn find_base(&self, git: &GitClient<'_>) -> Result<BaseBranch, Error> {
        let configured = self.delivery.base.as_deref().map(BranchName::new).transpose()?;
        git.known_base(configured.as_ref())
    }

    /// Checks the base, and finds the tasks of the branches with our prefix.
    fn check_base_and_branches(&self, git: &GitClient<'_>, base: Option<&Result<BaseBranch, Error>>) -> HealthCheck {
        let mut note = Vec::new();
        let (mut problems, mut hints) = (Vec::new(), Vec::new());
        match base {
            Some(Ok(base)) => note.push(format!("the base is {}", base.display_name())),
            Some(Err(error)) => {
                problems.push(error.to_string());
                hints.extend(error.hint().map(Cow::into_owned));
            }
            None => note.push("tasks are worked on in place".to_owned()),
        }
        let branches = git.branches_under(TASK_BRANCH_PREFIX).unwrap_or_default();
        let (mut of_tasks, mut former) = (0, Vec::new());
        for branch in branches {
            let name = branch.as_str();
            match self.find_task_by_name(name) {
                Some(task) if has_current_branch(&task, name) => of_tasks += 1,
                Some(task) if has_former_branch(&task, name) => former.push(format!("{name} ({})", task.id)),
                _ => problems.push(format!("the branch {name} belongs to no task")),
            }
        }
        if problems.len() > usize::from(matches!(base, Some(Err(_)))) {
            hints.push(
                "look at it with `git log`, then rename the branch, or remove it with `git branch -D`".to_owned(),
            );
        }
        match of_tasks {
            0 => {}
            1 => note.push("one branch of a task".to_owned()),
            many => note.push(format!("{many} branches of tasks")),
        }
        if !former.is_empty() {
            note.push(format!("of earlier attempts: {}", former.join(", ")));
        }
        let hint = (!hints.is_empty()).then(|| hints.join("; "));
        HealthCheck { what: "git", problems, note: note.join("; "), hint }
    }

    /// Checks the access to the remote's forge, as far as that is known without a request.
    fn check_forge_access(&self, git: &GitClient<'_>, base: &BaseBranch) -> Option<HealthCheck> {
        let address = git.remote_address(base.remote.as_ref()?).ok()?;
        let site = match ForgeProject::from_remote(&address, &self.delivery.forge) {
            Ok(site) => site?,
            Err(error) => {
                return Some(failed_check("forge", String::new(), vec![error.to_string()], Some(&error.hint())));
            }
        };
        let note = format!("{} on {}", site.project, site.host);
        let start = |spec| run_program(&spec, self.owner_lock, self.control, &mut |_, _| {});
        Some(match ForgeToken::find_token(&site, &environment::inherited_environment(), start) {
            Ok(_) => HealthCheck { what: "forge", problems: vec![], note, hint: None },
            Err(error) => failed_check("forge", note, vec![error.to_string()], Some(&error.hint())),
        })
    }

    /// Finds worktrees that are broken or belong to no task.
    fn check_worktrees(&self, git: &GitClient<'_>) -> Vec<HealthCheck> {
        let place = self.delivery.worktrees.canonicalize().unwrap_or_else(|_| self.delivery.worktrees.clone());
        let linked: BTreeMap<String, LinkedWorktree> = git
            .linked_worktrees()
            .into_iter()
            .filter(|linked| linked.path.parent() == Some(&place))
            .filter_map(|linked| Some((linked.path.file_name()?.to_str()?.to_owned(), linked)))
            .collect();
        let mut found: Vec<(String, Option<String>)> = Vec::new();
        for (name, linked) in &linked {
            found.extend(match (&linked.trouble, self.find_worktree_owner(name)) {
                (None, Some(_)) => None,
                (Some(error), Some(id)) => Some((format!("{id}: {error}"), error.hint().map(Cow::into_owned))),
                (trouble, None) => {
                    let hint = trouble.as_ref().and_then(Error::hint).map(Cow::into_owned).unwrap_or_else(|| {
                        format!(
                            "check whether you need anything in it, then `git worktree remove {}`, or move it away; `git worktree prune` forgets missing worktrees",
                            quote_path(&linked.path)
                        )
                    });
                    let why = trouble.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
                    Some((format!("{} belongs to no task{why}", linked.path.display()), Some(hint)))
                }
            });
        }
        for name in list_directory_names(&place).difference(&linked.keys().cloned().collect()) {
            let path = place.join(name);
            let problem = format!("{} is not a worktree of this repository", path.display());
            found.push((problem, Error::Occupied { path }.hint().map(Cow::into_owned)));
        }
        let check = |(problem, hint): (String, Option<String>)| {
            failed_check("worktrees", String::new(), vec![problem], hint.as_deref())
        };
        found.into_iter().map(check).collect()
    }

    /// Returns the task of a worktree, by its name.
    fn find_worktree_owner(&self, name: &str) -> Option<TaskId> {
        let task = self.find_task_by_name(name)?;
        let known = task.workspace.iter().chain(&task.former_workspaces).any(|place| place.name == name);
        let begun = task.workspace.is_none() && task.lease.is_some();
        (known || begun).then_some(task.id)
    }

    /// Returns the task that the name of a branch or a worktree contains.
    fn find_task_by_name(&self, name: &str) -> Option<Task> {
        let snapshot: StoreSnapshot<'_> = self.opened.store.begin_snapshot().ok()?;
        snapshot.find_task(task_of_name(name)?).ok()?
    }
}

/// Returns whether a branch is the current one of a task. A task that was just claimed may have a branch that the log does not
/// know yet.
fn has_current_branch(task: &Task, branch: &str) -> bool {
    task.workspace.as_ref().map_or(task.lease.is_some(), |place| place.branch == branch)
}

fn has_former_branch(task: &Task, branch: &str) -> bool {
    task.former_workspaces.iter().any(|place| place.branch == branch)
}

/// Returns the names of the directories in a directory.
fn list_directory_names(place: &Path) -> BTreeSet<String> {
    let found = std::fs::read_dir(place).into_iter().flatten().flatten();
    let directories = found.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
    // The next run removes what is left of a partial removal.
    names.filter(|name| strip_removal_prefix(name).is_none()).collect()
}

fn failed_check(what: &'static str, note: String, problems: Vec<String>, hint: Option<&str>) -> HealthCheck {
    HealthCheck { what, problems, note, hint: hint.map(str::to_owned) }
}
