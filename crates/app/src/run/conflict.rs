//! `run --resolve`: has an agent work again on a task whose change conflicts with its base.
//!
//! Invariants:
//! - A task is reopened only if its work conflicts with the newest base.
//! - Work that is stacked on another task's work waits for the merge of that one.
//! - A blocked task is reopened only if it is blocked by the conflict.
//!
//! Not here: the agent's message about the conflict (`runner/src/refresh.rs`, which finds it when the worktree is opened), and
//! the check that the agent resolves it (`runner/src/submission.rs`).

use windlass_engine::{Authority, Command, NewSession, Origin, Refusal, Resolution, State, Task, TaskId, Types};
use windlass_runner::{BaseFit, Runner, WorkspaceProblem};

use super::task_check::check_task;
use crate::caller::Inside;
use crate::changes::{has_open_change, is_stopped_by_git};
use crate::context::Opened;
use crate::next_step::{find_unclean_tree, merge_step, next_step};
use crate::resume_command::ResumeCommand;
use crate::{Code, Failure, FrontEnd, Notice, environment, hints};

/// Fails if the state of a task does not allow its conflicts to be resolved now.
pub fn check_conflict(opened: &Opened, id: TaskId) -> Result<(), Failure> {
    let inside = Inside::look_above(opened)?;
    if inside.run.is_some() || inside.via.is_some() {
        return Err(hints::refusal(&Refusal::NoPerson { what: "take accepted work up again" }));
    }
    let task = opened.task(id)?;
    match task.state {
        State::Completed | State::Blocked if !has_open_change(&task) => Err(without_change(id)),
        State::Completed => Ok(()),
        State::Blocked if is_stopped_by_git(&task) => Ok(()),
        State::Blocked => {
            let why = task.blocked.map(|blocked| blocked.reason).unwrap_or_default();
            let failure = refused(id).caused_by(format!("it is blocked, and not by a conflict: {why}"));
            Err(match next_step(opened, id)? {
                Some(step) => failure.hint(format!("`{}` settles that first", step.command)),
                None => failure,
            })
        }
        _ => check_task(opened, id),
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
    pub fn find(opened: &Opened, id: TaskId) -> Result<Self, Failure> {
        let resolve = ResumeCommand::for_conflict(opened, id)?.in_sentence("has an agent resolve them that may");
        let merge = match find_unclean_tree(opened, &opened.task(id)?) {
            Some(tree) => format!("in {}, {}, then `windlass change merge {id}`", tree.path.display(), tree.remedy),
            None => format!("`{}`", merge_step(opened, id).command),
        };
        Ok(Self { merge, resolve })
    }
}

/// Reopens a task that was accepted, or that waits for a person because of a conflict. Returns whether it did.
pub fn take_up_conflict(
    runner: &mut Runner<'_>,
    id: TaskId,
    (types, begin): (&Types, &Command),
    offered: &OfferedCommands,
) -> Result<bool, Failure> {
    let Some(task) = runner.task(id).map_err(hints::run)? else { return Ok(false) };
    // The comparison with the base may have found it merged.
    if matches!(task.state, State::Completed | State::Blocked) && !has_open_change(&task) {
        return Err(without_change(id));
    }
    match runner.compare_with_base(&task).map_err(hints::run)?.map_err(hints::git)? {
        BaseFit::Conflict => {}
        BaseFit::Clean => return Err(without_conflict(&task, offered)),
        BaseFit::Stacked(WorkspaceProblem { cause, hint }) => {
            let failure = refused(id).caused_by(cause);
            return Err(hint.into_iter().fold(failure, Failure::hint));
        }
    }
    // A task is not reopened for an agent that the session would be refused for.
    if let Command::StartSession(NewSession { agent, .. }) = begin {
        types.admit(&task, agent).map_err(|refusal| not_admitted(&refusal, offered))?;
    }
    let base = task.workspace.map_or_else(|| "its base".to_owned(), |workspace| workspace.base);
    let reason = format!("The change conflicts with {base}. Resolve the conflicts so that it can be merged.");
    let command = match task.state {
        State::Completed => Command::ReopenTask { id, reason },
        State::Blocked => {
            let (answer, text) = (Resolution::Continue, Some(reason));
            Command::AnswerTask { id, answer, text, ignores: vec![], work: None }
        }
        _ => return Ok(false),
    };
    let (by, at) = (environment::user(), environment::steady_now());
    let origin = Origin { by, at, authority: Authority::Forced, run: None, via: None };
    runner.prepare(&origin, &command).map_err(hints::run)?;
    Ok(true)
}

/// Shows how to go on with a task that was reopened for a session that could not begin.
pub fn tell_taken_up(front_end: &dyn FrontEnd, id: TaskId) {
    let taken_up = format!("{id} is taken up again; `windlass run --resolve {id}` goes on with it");
    front_end.show(Notice::Note(&taken_up));
}

fn refused(id: TaskId) -> Failure {
    Failure::new(Code::Refused, format!("cannot resolve conflicts of {id}"))
}

fn without_change(id: TaskId) -> Failure {
    refused(id).caused_by("it has no open change").hint("`windlass change list` shows the open changes")
}

fn without_conflict(task: &Task, offered: &OfferedCommands) -> Failure {
    let id = task.id;
    let base = task.workspace.as_ref().map_or("its base", |workspace| &workspace.base);
    refused(id).caused_by(format!("its work does not conflict with {base}")).hint(match task.state {
        State::Completed | State::Blocked => format!("{} merges it", offered.merge),
        _ => format!("`windlass run --task {id}` works on it"),
    })
}

fn not_admitted(refusal: &Refusal, offered: &OfferedCommands) -> Failure {
    let list = match refusal {
        Refusal::NotForAgent { kind, .. } => {
            format!("; `task_types.{kind}.agents.implementer` in the configuration says which may")
        }
        _ => String::new(),
    };
    hints::refusal(refusal).hint(format!("{}{list}", offered.resolve))
}
