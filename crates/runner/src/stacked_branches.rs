//! Stacked work: which lower task is not merged yet, and what of a branch is the task's own.
//!
//! Invariant: the log knows the merges that Windlass made, and git knows all others. Either is enough.

use windlass_engine::{StateView, Task, TaskId, TaskState, ViewResult, Workspace};
use windlass_vcs::git::{BranchName, Error, GitClient, GitCommitId};

/// A task that another one is stacked on, and whose work is not merged as far as the log knows.
#[derive(Debug, Clone)]
pub struct ParentStackTask {
    pub(crate) task: Task,
}

impl ParentStackTask {
    /// Describes the state of this task for work that is stacked on it.
    pub(crate) fn describe_state(&self) -> String {
        let why = match (self.task.state, &self.task.change) {
            (TaskState::Deleted, _) => "which was deleted and is not merged",
            (_, Some(_)) => "whose change is not merged yet",
            (_, None) => "which has no change and is not merged yet",
        };
        format!("it stands on the work of {}, {why}", self.task.id)
    }

    /// Returns a hint for a person.
    pub(crate) fn merge_hint(&self, workspace: &Workspace, base: &str) -> String {
        let start = workspace.start.get(..10).unwrap_or(&workspace.start);
        let id = self.task.id;
        match (self.task.state, work_without_change(&self.task)) {
            (TaskState::Deleted, _) => format!(
                "to leave that work out: `git rebase --onto {base} {start}` in .windlass/worktrees/{}; to keep it: merge \
                 {start} into {base} yourself; then try again",
                workspace.name
            ),
            (_, Some(work)) => format!("merge the branch {} of {id} into {base} yourself first", work.branch),
            (TaskState::Completed | TaskState::Blocked, None) => format!("`windlass change merge {id}` first"),
            (state, None) => {
                format!("{id} is {state}: its work must be accepted first; `windlass why {id}` shows its state")
            }
        }
    }
}

/// Returns the tasks that a workspace is stacked on, without those that Windlass has merged.
pub fn unmerged_lower_tasks(view: &dyn StateView, workspace: &Workspace) -> ViewResult<Vec<ParentStackTask>> {
    let mut found = Vec::new();
    for id in &workspace.stacked_on {
        found.extend(view.find_task(*id)?.filter(is_unmerged).map(|task| ParentStackTask { task }));
    }
    Ok(found)
}

/// Returns the workspace of a task that was completed without a change.
pub fn work_without_change(task: &Task) -> Option<&Workspace> {
    let is_work = task.state == TaskState::Completed && task.change.is_none() && task.report.is_none();
    task.workspace.as_ref().filter(|_| is_work)
}

/// Returns whether the log knows of no merge of a task's work. Git may know of one.
pub(crate) fn is_unmerged(task: &Task) -> bool {
    let is_open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
    is_open || work_without_change(task).is_some()
}

/// Returns the start of a task's own work, if it is stacked on the work of others.
pub fn own_work_start(workspace: &Workspace) -> Result<Option<GitCommitId>, Error> {
    (!workspace.stacked_on.is_empty()).then(|| GitCommitId::new(&workspace.start)).transpose()
}

/// Returns the first lower task whose work is in the branch and not in the base.
pub fn first_unmerged<'b>(
    git: &GitClient<'_>,
    workspace: &Workspace,
    below: &'b [ParentStackTask],
    base: &GitCommitId,
) -> Result<Option<&'b ParentStackTask>, Error> {
    if below.is_empty() {
        return Ok(None);
    }
    let Some(head) = git.branch_tip(&BranchName::new(&workspace.branch)?)? else { return Ok(below.first()) };
    let on_start = git.continues_from(&head, &GitCommitId::new(&workspace.start)?, base)?;
    for below in below {
        let place = below.task.workspace.as_ref();
        let tip = place.map(|place| git.branch_tip(&BranchName::new(&place.branch)?)).transpose()?.flatten();
        let stands = match tip {
            // The commits between the two are gone from here. A person may also have moved the branch.
            Some(tip) => {
                let shared = git.merge_base(&tip, &head)?;
                !git.has_all_changes(base, &tip)? && (on_start || git.continues_from(&head, &shared, base)?)
            }
            None => on_start,
        };
        if stands {
            return Ok(Some(below));
        }
    }
    Ok(None)
}

/// Returns the commit that a task's own work comes after: its start while that is not in the base, else the newest base.
pub fn own_work_base(
    git: &GitClient<'_>,
    workspace: &Workspace,
    below: &[ParentStackTask],
    newest: &GitCommitId,
) -> Result<GitCommitId, Error> {
    let head = git.branch_tip(&BranchName::new(&workspace.branch)?)?.filter(|_| !workspace.stacked_on.is_empty());
    let Some(head) = head else { return Ok(newest.clone()) };
    let start = GitCommitId::new(&workspace.start)?;
    if !git.continues_from(&head, &start, newest)? {
        return Ok(newest.clone());
    }
    // Once the base has the lower work, and was merged in, the start has no meaning any more.
    let is_brought = git.merge_base(newest, &head)? == *newest;
    let is_own = !is_brought || first_unmerged(git, workspace, below, newest)?.is_some();
    Ok(if is_own { start } else { newest.clone() })
}

/// Lists several tasks in a sentence, with a base that is needed beside them.
pub fn list_tasks(tasks: &[TaskId], base: Option<String>) -> String {
    let names: Vec<String> = tasks.iter().map(ToString::to_string).chain(base).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
