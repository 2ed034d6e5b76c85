//! The tasks that remain when no task can be worked on, and the reasons.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_engine::{Task, TaskId, TaskState, TaskTypes, TypeName, WorkspaceMode};
use windlass_store::TaskFilter;

use super::dependencies::{find_open_dependencies, join_task_ids};
use super::task_check::{describe_holder, is_held_by_idle_session};
use super::workspace_choice::{explain_left_in_place, is_left_in_place};
use crate::context::{OpenedProject, list_tasks_in_states};
use crate::{Failure, hints};

/// How many tasks are named to a person.
const MAX_NAMED_TASKS: usize = 10;

/// The restrictions that keep an agent from ready tasks.
#[derive(Clone, Copy)]
pub struct AgentRestrictions<'a> {
    pub opened: &'a OpenedProject,
    pub workspace_mode: WorkspaceMode,
    pub types: &'a TaskTypes,
    /// Task types that are left alone, each with the reason.
    pub held_back: &'a BTreeMap<TypeName, String>,
}

/// Incomplete tasks, each with the reason.
pub struct RemainingTasks {
    pub tasks: Vec<(Task, String)>,
    /// The number of tasks that are not listed.
    pub more: usize,
    /// Whether a task goes on only after a person acts.
    needs_person: bool,
    /// Whether there is any task at all.
    pub has_tasks: bool,
}

impl RemainingTasks {
    pub fn find_remaining(opened: &OpenedProject) -> Result<Self, Failure> {
        let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
        let counts = snapshot.count_tasks_by_state().map_err(hints::store_failure)?;
        let open = |state: TaskState| !matches!(state, TaskState::Completed | TaskState::Deleted);
        let stuck = |state: TaskState| matches!(state, TaskState::Blocked | TaskState::Failed);
        let all: u64 = counts.iter().filter(|(state, _)| open(*state)).map(|(_, count)| count).sum();
        let mut needs_a_person = counts.iter().any(|(state, count)| stuck(*state) && *count > 0);
        let mut found = Vec::new();
        let states = TaskState::ALL.into_iter().filter(|state| open(*state)).collect();
        let filter = TaskFilter { states, ..TaskFilter::default() };
        snapshot
            .visit_tasks(&filter, |task| {
                found.push(task);
                found.len() < MAX_NAMED_TASKS
            })
            .map_err(hints::store_failure)?;
        let mut tasks = Vec::new();
        for task in found {
            let why = match task.state {
                TaskState::Created => {
                    format!("waits for {}", join_task_ids(&find_open_dependencies(&snapshot, &task)?))
                }
                _ => explain_task_state(opened, &task)?,
            };
            tasks.push((task, why));
        }
        needs_a_person = needs_a_person || is_any_task_held_by_idle_session(opened)?;
        let more = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(tasks.len());
        Ok(Self { tasks, more, needs_person: needs_a_person, has_tasks: !counts.is_empty() })
    }

    /// Explains the tasks that this agent may not work on: names the agents that may, or the missing agent.
    pub fn explain_for_agent(self, restrictions: AgentRestrictions<'_>, agent: &str) -> Self {
        self.explain_ready_tasks(|task| {
            let held_back = || task.kind.as_ref().and_then(|kind| restrictions.held_back.get(kind)).cloned();
            match restrictions.types.allowed_agents(task.kind.as_ref()) {
                _ if is_left_in_place(task, restrictions.workspace_mode) => {
                    Some(explain_left_in_place(restrictions.opened, task.id))
                }
                Some(names) if names.is_empty() => Some("no agent may".to_owned()),
                Some(names) if !names.contains(agent) => {
                    Some(format!("{} may", names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")))
                }
                _ => held_back(),
            }
        })
    }

    /// Explains the ready tasks for which `why_not` has a reason.
    pub fn explain_ready_tasks(mut self, why_not: impl Fn(&Task) -> Option<String>) -> Self {
        for (task, why) in &mut self.tasks {
            if task.state.is_claimable() && task.lease.is_none() {
                *why = why_not(task).unwrap_or(std::mem::take(why));
            }
        }
        self
    }

    /// Returns the exit code of a run that finds nothing ready.
    pub fn exit_code(&self) -> u8 {
        if self.needs_person { 4 } else { 0 }
    }

    /// Returns the first task that goes on only after a person acts. The end of a dependency needs no answer from a person.
    pub fn first_task_for_person(&self) -> Option<TaskId> {
        let asks = |task: &Task| match task.state {
            TaskState::Blocked => task.blocked.as_ref().is_none_or(|blocked| blocked.by.is_none()),
            state => state == TaskState::Failed,
        };
        self.tasks.iter().map(|(task, _)| task).find(|task| asks(task)).map(|task| task.id)
    }

    /// Returns a line for each listed task, and one for the others.
    pub fn describe_lines(&self) -> Vec<String> {
        let one = |(task, why): &(Task, String)| format!("{}  {}  {}: {why}", task.id, task.state, task.goal);
        let more = (self.more > 0).then(|| format!("and {} more; `windlass task list` shows them", self.more));
        self.tasks.iter().map(one).chain(more).collect()
    }

    pub fn to_json(&self) -> Vec<Value> {
        let one =
            |(task, why): &(Task, String)| json!({"id": task.id, "state": task.state, "goal": task.goal, "why": why});
        self.tasks.iter().map(one).collect()
    }
}

/// Returns whether a task is held by a session that does not go on by itself.
fn is_any_task_held_by_idle_session(opened: &OpenedProject) -> Result<bool, Failure> {
    for task in list_tasks_in_states(&opened.store, &[TaskState::Active, TaskState::Submitted])? {
        if is_held_by_idle_session(opened, &task)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn explain_task_state(opened: &OpenedProject, task: &Task) -> Result<String, Failure> {
    Ok(match (&task.blocked, &task.lease, &task.reason) {
        (Some(blocked), ..) => blocked.reason.clone(),
        (None, Some(lease), _) => describe_holder(opened, task, lease)?,
        (None, None, Some(reason)) => reason.clone(),
        (None, None, None) if task.state == TaskState::Active => "started by hand".to_owned(),
        (None, None, None) => "it can be worked on".to_owned(),
    })
}
