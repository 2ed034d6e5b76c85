//! Changes of tasks: their records in the log, and their state in git.

mod change_contents;
mod change_record;
mod git_view;
mod merge;
mod work_without_change;

use windlass_config::BuiltinHook;
use windlass_engine::{GateFinding, SubmittedWork, Task, Workspace};

pub use change_contents::ChangeContents;
pub use change_record::{ChangeRecord, ChangeState, list_changes, list_open_changes};
pub use git_view::{
    find_merge_remote, find_shared_remote, list_tracked_store_files, list_tracked_store_files_cancellable, mark_landed_changes, with_git,
    with_optional_git,
};
pub use merge::{MergeReport, merge_change};
pub use work_without_change::{find_branch_without_change, note_work_without_change};

/// Returns whether a task has a change that is not merged.
pub fn has_open_change(task: &Task) -> bool {
    task.open_change().is_some()
}

/// Returns whether a task waits for a person only because its change could not be merged. A person's rejection does not count.
pub fn waits_for_merge(task: &Task) -> bool {
    is_blocked_by_hooks(task, &[BuiltinHook::MergePr])
}

/// Returns whether a task waits for a person because its change could not be rebased or merged.
pub fn is_blocked_by_git(task: &Task) -> bool {
    is_blocked_by_hooks(task, &[BuiltinHook::RebaseOnMain, BuiltinHook::MergePr])
}

/// Returns whether one of these hooks made an open change wait for a person. A person's rejection does not count.
fn is_blocked_by_hooks(task: &Task, hooks: &[BuiltinHook]) -> bool {
    let blocked = task.blocked.as_ref().is_some_and(|blocked| blocked.by.is_none());
    let is_of_hook = |finding: &GateFinding| {
        let source = finding.source.rsplit(':').next();
        hooks.iter().any(|hook| source == Some(hook.name())) && task.rejected.as_ref() != Some(finding)
    };
    has_open_change(task) && blocked && task.findings.iter().any(is_of_hook)
}

/// Returns the tasks whose work a branch is stacked on.
pub fn list_stacked_tasks(workspace: &Workspace) -> Option<String> {
    let below: Vec<String> = workspace.stacked_on.iter().map(ToString::to_string).collect();
    (!below.is_empty()).then(|| below.join(", "))
}

/// Returns the size of some work in words.
pub fn describe_work_size(work: &SubmittedWork) -> String {
    let commits = if work.commits == 1 { "one commit".to_owned() } else { format!("{} commits", work.commits) };
    let files = if work.files == 1 { "one file".to_owned() } else { format!("{} files", work.files) };
    format!("{commits}, {files}")
}
