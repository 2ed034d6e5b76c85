//! `run --resolve`: has an agent work again on a task whose change conflicts with its base.
//!
//! Invariants:
//! - A task is reopened only if its work conflicts with the newest base.
//! - Work that is stacked on another task's work waits for the merge of that one.
//! - A blocked task is reopened only if it is blocked by the conflict.
//!
//! Not here: the agent's message about the conflict (`runner/src/refresh.rs`, which finds it when the worktree is opened), and
//! the check that the agent resolves it (`runner/src/submission.rs`).

use windlass_engine::{
    Authority, Command, CommandOrigin, NewSession, Refusal, Task, TaskId, TaskResolution, TaskState, TaskTypes,
};
use windlass_runner::{BaseComparison, Runner, WorkspaceProblem};

use super::task_check::check_task_workable;
use crate::caller::CallerContext;
use crate::changes::{has_open_change, is_blocked_by_git};
use crate::context::OpenedProject;
use crate::next_step::{find_next_step, find_unclean_tree, merge_change_step};
use crate::resume_command::ResumeCommand;
use crate::{Failure, FailureCode, FrontEnd, Notice, environment, hints};

/// Fails if the state of a task does not allow its conflicts to be resolved now.
pub fn check_conflict(opened: &OpenedProject, id: TaskId) -> Result<(), Failure> {
    let inside = CallerContext::detect_from_ancestors(opened)?;
    if inside.run.is_some() || inside.via.is_some() {
        return Err(hints::refusal_failure(&Refusal::NoPerson { what: "reopen accepted work" }));
    }
    let task = opened.require_task(id)?;
    match task.state {
        TaskState::Completed | TaskState::Blocked if !has_open_change(&task) => Err(no_open_change_failure(id)),
        TaskState::Completed => Ok(()),
        TaskState::Blocked if is_blocked_by_git(&task) => Ok(()),
        TaskState::Blocked => {
            let why = task.blocked.map(|blocked| blocked.reason).unwrap_or_default();
            let failure = conflict_refusal(id).with_cause(format!("it is blocked, and not by a conflict: {why}"));
            Err(match find_next_step(opened, id)? {
                Some(step) => failure.with_hint(format!("`{}` settles that first", step.command)),
                None => failure,
            })
        }
        _ => check_task_workable(opened, id),
    }
}

/// The commands that a refusal offers.
pub struct OfferedCommands {
    /// The command that merges the change, with the steps before it.
    merge: String,
    /// The command that has a permitted agent resolve the conflicts.
    resolve: String,
}

impl OfferedCommands {
    pub fn find_for_task(opened: &OpenedProject, id: TaskId) -> Result<Self, Failure> {
        let resolve =
            ResumeCommand::for_conflict(opened, id)?.describe_in_sentence("has a permitted agent resolve them");
        let merge = match find_unclean_tree(opened, &opened.require_task(id)?) {
            Some(tree) => format!("in {}, {}, then `windlass change merge {id}`", tree.path.display(), tree.remedy),
            None => format!("`{}`", merge_change_step(opened, id).command),
        };
        Ok(Self { merge, resolve })
    }
}

/// Reopens a task that was accepted, or that waits for a person because of a conflict. Returns whether it did.
pub fn reopen_conflicting_task(
    runner: &mut Runner<'_>,
    id: TaskId,
    (types, begin): (&TaskTypes, &Command),
    offered: &OfferedCommands,
) -> Result<bool, Failure> {
    let Some(task) = runner.load_task(id).map_err(hints::run_failure)? else { return Ok(false) };
    // The comparison with the base may have found it merged.
    if matches!(task.state, TaskState::Completed | TaskState::Blocked) && !has_open_change(&task) {
        return Err(no_open_change_failure(id));
    }
    match runner.compare_with_base(&task).map_err(hints::run_failure)?.map_err(hints::git_failure)? {
        BaseComparison::Conflict => {}
        BaseComparison::Clean => return Err(no_conflict_failure(&task, offered)),
        BaseComparison::Stacked(WorkspaceProblem { cause, hint }) => {
            let failure = conflict_refusal(id).with_cause(cause);
            return Err(hint.into_iter().fold(failure, Failure::with_hint));
        }
    }
    // A task is not reopened for an agent that the session would be refused for.
    if let Command::StartSession(NewSession { agent, .. }) = begin {
        types.check_agent_allowed(&task, agent).map_err(|refusal| not_admitted_failure(&refusal, offered))?;
    }
    let base = task.workspace.map_or_else(|| "its base".to_owned(), |workspace| workspace.base);
    let reason = format!("The change conflicts with {base}. Resolve the conflicts so that it can be merged.");
    let command = match task.state {
        TaskState::Completed => Command::ReopenTask { id, reason },
        TaskState::Blocked => {
            let (answer, text) = (TaskResolution::Continue, Some(reason));
            Command::AnswerTask { id, answer, text, ignores: vec![], work: None }
        }
        _ => return Ok(false),
    };
    let (by, at) = (environment::user_name(), environment::steady_timestamp());
    let origin = CommandOrigin { by, at, authority: Authority::Forced, run: None, via: None };
    runner.commit_before_session(&origin, &command).map_err(hints::run_failure)?;
    Ok(true)
}

/// Shows how to go on with a task that was reopened for a session that could not begin.
pub fn notify_task_reopened(front_end: &dyn FrontEnd, id: TaskId) {
    let taken_up = format!("{id} is reopened; `windlass run --resolve {id}` resumes it");
    front_end.show_notice(Notice::Note(&taken_up));
}

fn conflict_refusal(id: TaskId) -> Failure {
    Failure::new(FailureCode::Refused, format!("cannot resolve conflicts of {id}"))
}

fn no_open_change_failure(id: TaskId) -> Failure {
    conflict_refusal(id).with_cause("it has no open change").with_hint("`windlass change list` shows the open changes")
}

fn no_conflict_failure(task: &Task, offered: &OfferedCommands) -> Failure {
    let id = task.id;
    let base = task.workspace.as_ref().map_or("its base", |workspace| &workspace.base);
    conflict_refusal(id).with_cause(format!("its work does not conflict with {base}")).with_hint(match task.state {
        TaskState::Completed | TaskState::Blocked => format!("{} merges it", offered.merge),
        _ => format!("`windlass run --task {id}` works on it"),
    })
}

fn not_admitted_failure(refusal: &Refusal, offered: &OfferedCommands) -> Failure {
    let list = match refusal {
        Refusal::NotForAgent { kind, .. } => {
            format!("; `task_types.{kind}.agents.implementer` in the configuration lists the permitted agents")
        }
        _ => String::new(),
    };
    hints::refusal_failure(refusal).with_hint(format!("{}{list}", offered.resolve))
}
