//! The next command for a task in its present state.
//!
//! ```text
//! held by a session: watch it │ answer it │ go on with it      blocked by a dependency, waiting, stacked: that task first
//! blocked: answer, or merge its change      failed: retry      completed: merge its change      ready: run it
//! ```
//!
//! Invariants:
//! - An offered command is legal in this state. If it needs missing trust, its line says so.
//! - A command has no placeholder: a person can type it as printed. An unknown agent is the one exception.

use windlass_config::Config;
use windlass_engine::{EventType, Lease, NextAction, SessionName, StateView, Task, TaskId, TaskState};
use windlass_runner::stacked_branches::work_without_change;
use windlass_vcs::git::{BranchName, UncleanTree, quote_path as quoted_path};

use crate::changes::{has_open_change, waits_for_merge, with_optional_git};
use crate::context::OpenedProject;
use crate::resume_command::{ResumeCommand, quote_typed_word};
use crate::run::find_open_dependencies;
use crate::trust;
use crate::typed_step::NextStep;
use crate::waiting_work::find_open_blocker;
use crate::{Failure, environment, hints, runner_settings};

/// How many tasks are followed to the one that has to move first.
const MAX_HOPS: usize = 64;
/// The events of an answer. Without trust the engine refuses them if hooks run for them.
const ANSWER_EVENTS: &[EventType] = &[
    EventType::TaskAnswered,
    EventType::TaskUnblocked,
    EventType::TaskReopened,
    EventType::TaskReady,
    EventType::GateAnswered,
    EventType::FeedbackQueued,
];

/// Returns the next command for a task, unless another task has to move first.
pub fn find_own_step(opened: &OpenedProject, task: &Task) -> Result<Option<NextStep>, Failure> {
    Ok(match find_task_route(opened, task)? {
        TaskRoute::Step(step) => Some(step),
        TaskRoute::After(_) | TaskRoute::Wait => None,
    })
}

/// Returns the next command for a change that waits for a person.
pub fn find_change_step(opened: &OpenedProject, task: &Task) -> Result<Option<String>, Failure> {
    let step = if has_waiting_change(task) { find_next_step(opened, task.id)? } else { None };
    Ok(step.map(|step| step.shell_line()))
}

/// Returns whether a person can merge the change of a task now. A change below it comes first.
pub fn can_merge_change(opened: &OpenedProject, task: &Task) -> Result<bool, Failure> {
    Ok(has_waiting_change(task) && find_lower_change(opened, task)?.is_none())
}

/// Returns whether a task has an open change that no session works on.
fn has_waiting_change(task: &Task) -> bool {
    has_open_change(task) && matches!(task.state, TaskState::Completed | TaskState::Blocked)
}

/// The way to the next step of a task.
enum TaskRoute {
    Step(NextStep),
    /// Another task has to move first.
    After(TaskId),
    /// The holder has to move first.
    Wait,
}

/// Returns the next command for a task, or for the task that has to move first. The command for another task says so.
pub fn find_next_step(opened: &OpenedProject, id: TaskId) -> Result<Option<NextStep>, Failure> {
    let mut next = id;
    for _ in 0..MAX_HOPS {
        match find_task_route(opened, &opened.require_task(next)?)? {
            TaskRoute::Step(step) if next == id => return Ok(Some(step)),
            TaskRoute::Step(step) => return Ok(Some(step.with_first_note(format!("{next} comes first")))),
            TaskRoute::After(other) => next = other,
            TaskRoute::Wait => return Ok(None),
        }
    }
    Ok(None)
}

fn find_task_route(opened: &OpenedProject, task: &Task) -> Result<TaskRoute, Failure> {
    let id = task.id;
    if let Some(lease) = task.lease.as_ref().filter(|lease| !is_lease_expired(lease)) {
        return find_route_past_holder(opened, lease);
    }
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let blocker = find_open_blocker(&snapshot, task)?;
    let step = |command: String, purpose: &str| Ok(TaskRoute::Step(NextStep::new(command, purpose)));
    let look = has_open_change(task).then(|| format!("look first: windlass change show {id}"));
    match (task.state, &task.blocked) {
        (TaskState::Completed, _) if has_open_change(task) => find_merge_route(opened, task),
        (TaskState::Blocked, _) if blocker.is_some() => Ok(blocker.map_or(TaskRoute::Wait, TaskRoute::After)),
        (TaskState::Blocked, _) if waits_for_merge(task) => find_merge_route(opened, task),
        (TaskState::Blocked, blocked) => {
            let others = match blocked.as_ref().is_some_and(|blocked| !blocked.hooks.is_empty()) {
                true => "continue, with a message if you add one; or retry, approve, reject, ignore-hook",
                false => "continue, with a message if you add one; or retry, approve, reject",
            };
            let step = NextStep::new(format!("windlass answer {id} continue"), others);
            Ok(TaskRoute::Step(step.with_note(look).with_needed_trust(opened, ANSWER_EVENTS)))
        }
        (TaskState::Failed, _) => {
            let step = NextStep::new(format!("windlass answer {id} retry"), "resume it; or approve");
            Ok(TaskRoute::Step(step.with_needed_trust(opened, ANSWER_EVENTS)))
        }
        (TaskState::Created, _) if task.open_dependencies > 0 => Ok(find_open_dependencies(&snapshot, task)?
            .first()
            .map_or(TaskRoute::Wait, |first| TaskRoute::After(*first))),
        (TaskState::Active | TaskState::Submitted, _) if task.lease.is_none() => {
            step(format!("windlass task release {id}"), "give it back")
        }
        (TaskState::Completed, _) => step(format!("windlass why {id}"), "see who decided what"),
        (TaskState::Deleted, _) => step(format!("windlass task reopen {id} --force"), "bring it back"),
        _ => {
            let purpose = if task.started_at.is_some() { "try again" } else { "work on it" };
            Ok(TaskRoute::Step(ResumeCommand::for_task(opened, id)?.to_next_step(purpose)))
        }
    }
}

/// Returns the step that answers a session at its gate.
pub fn answer_gate_step(opened: &OpenedProject, name: &SessionName) -> NextStep {
    let purpose = "send the agent back, with a message if you add one; or ignore-hook, reject";
    NextStep::new(format!("windlass answer {name} continue"), purpose).with_needed_trust(opened, ANSWER_EVENTS)
}

/// Returns the step that reopens accepted work, with the reason for the agent.
pub fn reopen_task_step(opened: &OpenedProject, task: &Task, why: &str) -> NextStep {
    let id = task.id;
    // A reason that cannot be typed is left out; `task reopen` has a default one.
    let why = quote_typed_word(why);
    let command = match task.state {
        TaskState::Blocked => {
            format!("windlass answer {id} continue{}", why.map_or(String::new(), |why| format!(" {why}")))
        }
        _ => {
            let reason = why.map_or(String::new(), |why| format!(" --reason {why}"));
            format!("windlass task reopen {id} --force{reason}")
        }
    };
    NextStep::new(command, "resume it").with_needed_trust(opened, ANSWER_EVENTS)
}

/// Returns the route for a task that a session holds.
fn find_route_past_holder(opened: &OpenedProject, lease: &Lease) -> Result<TaskRoute, Failure> {
    let Some(name) = &lease.session else { return Ok(TaskRoute::Wait) };
    let session = opened.require_session(name)?;
    let alive = opened.is_session_running(&session);
    Ok(TaskRoute::Step(match (session.next_action(), alive) {
        (NextAction::Answer, _) => answer_gate_step(opened, name),
        (_, true) => NextStep::new(format!("windlass session logs {name} --follow"), "watch it"),
        (_, false) if session.stopping.is_some() || session.ending_kind().is_some() => {
            NextStep::new("windlass doctor --settle", "finish ending it")
        }
        (_, false) => ResumeCommand::for_session(opened, &session).to_next_step("resume it"),
    }))
}

/// Returns the step that merges a change, or the task that has to be merged first.
fn find_merge_route(opened: &OpenedProject, task: &Task) -> Result<TaskRoute, Failure> {
    let id = task.id;
    match find_lower_change(opened, task)? {
        // A person has to merge this work with git, and only git knows whether it is merged.
        Some(below) if below.state == TaskState::Deleted || !has_open_change(&below) => {
            return Ok(TaskRoute::Step(NextStep::new(format!("windlass change show {id}"), "look at it")));
        }
        Some(below) => return Ok(TaskRoute::After(below.id)),
        None => {}
    }
    Ok(TaskRoute::Step(match find_unclean_tree(opened, task) {
        Some(tree) => NextStep::new(format!("git -C {} status", quoted_path(&tree.path)), "see what blocks the merge")
            .with_note(format!("{}; then windlass change merge {id}", tree.remedy)),
        None => merge_change_step(opened, id),
    }))
}

/// Returns the first task below a stacked change whose work is not merged, as far as the log knows.
pub fn find_lower_change(opened: &OpenedProject, task: &Task) -> Result<Option<Task>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let is_unmerged = |task: &Task| has_open_change(task) || work_without_change(task).is_some();
    for below in task.workspace.iter().flat_map(|workspace| &workspace.stacked_on) {
        let below = snapshot.find_task(*below).map_err(hints::view_failure)?.filter(is_unmerged);
        if below.is_some() {
            return Ok(below);
        }
    }
    Ok(None)
}

/// Returns the tree that prevents the merge of a task's change: its local base is checked out there, and the tree is not clean.
pub fn find_unclean_tree(opened: &OpenedProject, task: &Task) -> Option<UncleanTree> {
    let base = BranchName::new(&task.workspace.as_ref()?.base).ok()?;
    let config = Config::load(&opened.project.root).ok()?;
    let counts = trust::is_config_effective(&opened.project, &config, opened.trust).ok()?;
    let config = if counts { config } else { config.without_trust() };
    let delivery = runner_settings::delivery_settings(&opened.project, &config);
    let found = with_optional_git(&opened.project, |git| {
        // Only an unclean tree justifies more calls of git.
        let Some(tree) = git.find_unclean_tree(&base)? else { return Ok(None) };
        let configured = delivery.base.as_deref().map(BranchName::new).transpose()?;
        Ok(git.local_base(configured.as_ref())?.filter(|local| *local == base).map(|_| tree))
    });
    found.flatten()
}

/// Returns the step that merges an open change, with the trust that it needs.
pub fn merge_change_step(opened: &OpenedProject, id: TaskId) -> NextStep {
    let step = NextStep::new(format!("windlass change merge {id}"), "merge it");
    step.with_note(format!("look first: windlass change show {id}")).with_needed_trust(opened, &[])
}

fn is_lease_expired(lease: &Lease) -> bool {
    lease.until.is_some_and(|until| until < environment::current_timestamp())
}
