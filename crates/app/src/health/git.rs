//! The checks of git: whether git and the forge let tasks be worked on and merged, and whether each of our worktrees and branches
//! has its task.
//!
//! Outside a repository there are no checks. Programs of git run only for facts that are not in its files, and use the network
//! only if the base is not known locally.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windlass_config::Config;
use windlass_engine::{Task, TaskId, View};
use windlass_process::{Control, Roster, Spec, run};
use windlass_runner::{Delivery, task_of};
use windlass_store::Snapshot;
use windlass_vcs::forge::{Site, Token};
use windlass_vcs::git::{Base, Branch, Error, Git, Linked, RemoteName, Repository, half_removed, quoted};

use super::HealthCheck;
use crate::context::Opened;
use crate::{environment, execution, runner_settings};

/// The prefix of our branches.
const OURS: &str = "windlass/";

pub fn check_git(opened: &Opened, control: &Control) -> Vec<HealthCheck> {
    let Ok(config) = Config::load(&opened.project.root) else { return Vec::new() };
    let repository = match Repository::find(&opened.project.root) {
        Ok(Some(repository)) => repository,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![wrong("git", String::new(), vec![error.to_string()], error.hint().as_deref())],
    };
    let Ok(roster) = execution::enlist(&opened.project) else { return Vec::new() };
    let delivery = runner_settings::delivery(&opened.project, &config);
    let look = Look { opened, delivery, roster: &roster, control };
    // Tasks that are worked on in place need neither a base nor a forge.
    look.at(repository, config.settings.worktrees != Some(false))
}

struct Look<'a> {
    opened: &'a Opened,
    delivery: Delivery,
    roster: &'a Roster,
    control: &'a Control,
}

impl Look<'_> {
    fn at(&self, repository: Repository, delivers: bool) -> Vec<HealthCheck> {
        let start = |spec: &Spec| run(spec, self.roster, self.control, &mut |_, _| {});
        let environment = environment::inherited();
        let remote = self.delivery.remote.as_deref().and_then(|name| RemoteName::new(name).ok());
        let git = Git::new(repository, &start, &environment).through(remote);
        let base = delivers.then(|| self.base(&git));
        let mut checks = vec![self.account(&git, base.as_ref())];
        if let Some(Ok(base)) = &base {
            checks.extend(self.forge(&git, base));
        }
        checks.extend(self.worktrees(&git));
        checks
    }

    fn base(&self, git: &Git<'_>) -> Result<Base, Error> {
        let configured = self.delivery.base.as_deref().map(Branch::new).transpose()?;
        git.known_base(configured.as_ref())
    }

    /// Checks the base, and finds the tasks of the branches with our prefix.
    fn account(&self, git: &Git<'_>, base: Option<&Result<Base, Error>>) -> HealthCheck {
        let mut note = Vec::new();
        let (mut problems, mut hints) = (Vec::new(), Vec::new());
        match base {
            Some(Ok(base)) => note.push(format!("the base is {}", base.shown())),
            Some(Err(error)) => {
                problems.push(error.to_string());
                hints.extend(error.hint().map(Cow::into_owned));
            }
            None => note.push("tasks are worked on in place".to_owned()),
        }
        let branches = git.branches_under(OURS).unwrap_or_default();
        let (mut of_tasks, mut former) = (0, Vec::new());
        for branch in branches {
            let name = branch.as_str();
            match self.task(name) {
                Some(task) if is_at(&task, name) => of_tasks += 1,
                Some(task) if was_at(&task, name) => former.push(format!("{name} ({})", task.id)),
                _ => problems.push(format!("the branch {name} belongs to no task")),
            }
        }
        if problems.len() > usize::from(matches!(base, Some(Err(_)))) {
            hints.push(
                "look at it with `git log`, and rename or remove a branch (`git branch -D`) that nobody needs"
                    .to_owned(),
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
    fn forge(&self, git: &Git<'_>, base: &Base) -> Option<HealthCheck> {
        let address = git.address(base.remote.as_ref()?).ok()?;
        let site = match Site::of(&address, &self.delivery.forge) {
            Ok(site) => site?,
            Err(error) => return Some(wrong("forge", String::new(), vec![error.to_string()], Some(&error.hint()))),
        };
        let note = format!("{} on {}", site.project, site.host);
        let start = |spec| run(&spec, self.roster, self.control, &mut |_, _| {});
        Some(match Token::find(&site, &environment::inherited(), start) {
            Ok(_) => HealthCheck { what: "forge", problems: vec![], note, hint: None },
            Err(error) => wrong("forge", note, vec![error.to_string()], Some(&error.hint())),
        })
    }

    /// Finds worktrees that are broken or belong to no task.
    fn worktrees(&self, git: &Git<'_>) -> Vec<HealthCheck> {
        let place = self.delivery.worktrees.canonicalize().unwrap_or_else(|_| self.delivery.worktrees.clone());
        let linked: BTreeMap<String, Linked> = git
            .linked()
            .into_iter()
            .filter(|linked| linked.path.parent() == Some(&place))
            .filter_map(|linked| Some((linked.path.file_name()?.to_str()?.to_owned(), linked)))
            .collect();
        let mut found: Vec<(String, Option<String>)> = Vec::new();
        for (name, linked) in &linked {
            found.extend(match (&linked.trouble, self.owner(name)) {
                (None, Some(_)) => None,
                (Some(error), Some(id)) => Some((format!("{id}: {error}"), error.hint().map(Cow::into_owned))),
                (trouble, None) => {
                    let hint = trouble.as_ref().and_then(Error::hint).map(Cow::into_owned).unwrap_or_else(|| {
                        format!(
                            "look whether anything in it is needed, then `git worktree remove {}`, or move it away; `git worktree prune` forgets what is gone",
                            quoted(&linked.path)
                        )
                    });
                    let why = trouble.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
                    Some((format!("{} belongs to no task{why}", linked.path.display()), Some(hint)))
                }
            });
        }
        for name in directories(&place).difference(&linked.keys().cloned().collect()) {
            let path = place.join(name);
            let problem = format!("{} is no worktree of this repository", path.display());
            found.push((problem, Error::Occupied { path }.hint().map(Cow::into_owned)));
        }
        let check = |(problem, hint): (String, Option<String>)| {
            wrong("worktrees", String::new(), vec![problem], hint.as_deref())
        };
        found.into_iter().map(check).collect()
    }

    /// Returns the task of a worktree, by its name.
    fn owner(&self, name: &str) -> Option<TaskId> {
        let task = self.task(name)?;
        let known = task.workspace.iter().chain(&task.former).any(|place| place.name == name);
        let begun = task.workspace.is_none() && task.lease.is_some();
        (known || begun).then_some(task.id)
    }

    /// Returns the task that the name of a branch or a worktree contains.
    fn task(&self, name: &str) -> Option<Task> {
        let snapshot: Snapshot<'_> = self.opened.store.snapshot().ok()?;
        snapshot.task(task_of(name)?).ok()?
    }
}

/// Returns whether a branch is the current one of a task. A task that was just claimed may have a branch that the log does not
/// know yet.
fn is_at(task: &Task, branch: &str) -> bool {
    task.workspace.as_ref().map_or(task.lease.is_some(), |place| place.branch == branch)
}

fn was_at(task: &Task, branch: &str) -> bool {
    task.former.iter().any(|place| place.branch == branch)
}

/// Returns the names of the directories in a directory.
fn directories(place: &Path) -> BTreeSet<String> {
    let found = std::fs::read_dir(place).into_iter().flatten().flatten();
    let directories = found.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
    // The next run removes what is left of a partial removal.
    names.filter(|name| half_removed(name).is_none()).collect()
}

fn wrong(what: &'static str, note: String, problems: Vec<String>, hint: Option<&str>) -> HealthCheck {
    HealthCheck { what, problems, note, hint: hint.map(str::to_owned) }
}
