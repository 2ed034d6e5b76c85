//! The assignment of agents to tasks: the ready task or unfinished session that a worker takes next, and its agent.

use std::collections::BTreeSet;

use windlass_agents::Agent;
use windlass_config::{Config, RoleSettings, plan};
use windlass_engine::{
    Digest, NextAction, Session, SessionName, StateView, Task, TaskId, TaskPriority, TaskState, TaskTypes, TypeName,
    WorkSource, WorkspaceMode,
};
use windlass_store::{SqliteStore, StoreSnapshot};

use super::super::agent_choice::no_agent_failure;
use super::super::ended_lease::find_next_ended_lease;
use super::super::session_choice::{is_owner_still_alive, name_after_task};
use super::super::workspace_choice::{explain_left_in_place, is_left_in_place};
use crate::context::{OpenedProject, list_tasks_in_states, visit_tasks_in_states};
use crate::{Failure, agents, gatekeepers, hints};

/// The number of tasks that the workers of a fleet choose from.
const MAX_SPREAD_TASKS: usize = 16;

/// The agents of a run with several workers.
pub struct AgentAssignment<'a> {
    pub config: &'a Config,
    pub types: TaskTypes,
    /// `--agent`
    pub named: Option<&'a str>,
    pub workspace_mode: WorkspaceMode,
    /// Task types that none of the agents may work on.
    closed: BTreeSet<TypeName>,
    /// Implementers of task types that are known agents.
    known: BTreeSet<String>,
}

impl<'a> AgentAssignment<'a> {
    pub fn new(config: &'a Config, named: Option<&'a str>, workspace_mode: WorkspaceMode) -> Self {
        let types = plan::plan_task_types(config);
        let has_no_implementer = |kind: &TypeName| types.allowed_agents(Some(kind)).is_some_and(BTreeSet::is_empty);
        let mut closed: BTreeSet<TypeName> = match named {
            Some(agent) => types.types_closed_to(Some(agent)),
            None => types.types_closed_to(None).into_iter().filter(has_no_implementer).collect(),
        };
        let listed = config.task_types().filter_map(|(_, roles)| roles.implementer.as_ref());
        let listed = listed.flat_map(|names| names.iter().map(|name| &name.value));
        let known = listed.filter(|name| agents::resolve_agent(name, &config.settings).is_ok()).cloned().collect();
        let mut assignment = Self { config, types, named, workspace_mode, closed: BTreeSet::new(), known };
        closed.extend(
            assignment
                .task_type_roles()
                .filter(|(kind, roles)| assignment.find_missing_agent(kind, roles).is_some())
                .map(|(kind, _)| kind),
        );
        assignment.closed = closed;
        assignment
    }

    fn task_type_roles(&self) -> impl Iterator<Item = (TypeName, &RoleSettings)> {
        let parsed = |kind: &str| kind.parse().expect("the names of types were checked when they were read");
        self.config.task_types().map(move |(kind, roles)| (parsed(kind), roles))
    }

    /// Returns the failure if a task type lacks a known agent to work on it, or one to judge the work.
    fn find_missing_agent(&self, kind: &TypeName, roles: &RoleSettings) -> Option<Failure> {
        let usual = self.config.settings.agent.as_ref().map(|agent| agent.as_str());
        let listed = self.types.allowed_agents(Some(kind));
        let names: Vec<&str> = match (self.named, listed) {
            (Some(agent), _) => vec![agent],
            (None, Some(names)) => names.iter().map(String::as_str).collect(),
            (None, None) => usual.into_iter().collect(),
        };
        let known: Vec<&str> =
            names.iter().copied().filter(|name| listed.is_none() || self.known.contains(*name)).collect();
        let stranger = names.first().filter(|_| known.is_empty());
        let stranger = stranger.and_then(|name| agents::resolve_agent(name, &self.config.settings).err());
        stranger.or_else(|| gatekeepers::explain_unjudged_type(self.config, kind.as_str(), roles, &known))
    }

    /// Returns the failure if the type of a task lacks an agent.
    pub fn find_missing_agent_for_task(&self, task: &Task) -> Option<Failure> {
        let (kind, roles) = self.task_type_roles().find(|(kind, _)| task.kind.as_ref() == Some(kind))?;
        self.find_missing_agent(&kind, roles)
    }

    /// Returns whether the workers leave a task to a run that names it.
    fn leaves_in_place(&self, task: &Task) -> bool {
        is_left_in_place(task, self.workspace_mode)
    }

    /// Returns why no worker takes a ready task, or `None` if one may.
    pub fn explain_untaken_task(&self, opened: &OpenedProject, task: &Task) -> Option<String> {
        let listed = self.types.allowed_agents(task.kind.as_ref());
        match (listed, self.named) {
            _ if self.leaves_in_place(task) => Some(explain_left_in_place(opened, task.id)),
            (Some(names), _) if names.is_empty() => Some("no agent may work on tasks of its type".to_owned()),
            (Some(names), Some(agent)) if !names.contains(agent) => {
                Some(format!("{} may", names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")))
            }
            _ if self.choose_agent_name(task, 0).is_none() => Some("no agent is named for it".to_owned()),
            _ if task.kind.as_ref().is_some_and(|kind| self.closed.contains(kind)) => {
                self.find_missing_agent_for_task(task).map(|failure| failure.message)
            }
            _ => None,
        }
    }

    /// Returns the agent for a task: the named one, else one that the task's type names, else the default.
    pub fn resolve_agent_for(&self, task: &Task, worker: usize) -> Result<Agent, Failure> {
        let name = self.choose_agent_name(task, worker).ok_or_else(no_agent_failure)?;
        agents::resolve_agent(name, &self.config.settings)
    }

    fn choose_agent_name(&self, task: &Task, worker: usize) -> Option<&str> {
        let listed = self.types.allowed_agents(task.kind.as_ref());
        let listed = listed.and_then(|names| {
            let known: Vec<&String> = names.iter().filter(|name| self.known.contains(*name)).collect();
            known.get(worker % known.len().max(1)).copied().or(names.first())
        });
        let usual = || self.config.settings.agent.as_ref().map(|agent| agent.as_str());
        self.named.or(listed.map(String::as_str)).or_else(usual)
    }

    /// Returns the first ready task without a named agent.
    pub fn find_task_without_agent(&self, store: &SqliteStore) -> Result<Option<TaskId>, Failure> {
        let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
        let mut after = None;
        while let Some(next) = snapshot.next_claimable_except(&self.closed, after).map_err(hints::view_failure)? {
            let task = snapshot.find_task(next.1).map_err(hints::view_failure)?;
            if task.is_some_and(|task| !self.leaves_in_place(&task) && self.choose_agent_name(&task, 0).is_none()) {
                return Ok(Some(next.1));
            }
            after = Some(next);
        }
        Ok(None)
    }

    /// Returns the failure for the first ready task that lacks an agent.
    pub fn find_first_missing_agent(&self, store: &SqliteStore) -> Result<Option<Failure>, Failure> {
        let mut lack = None;
        visit_tasks_in_states(store, &[TaskState::Ready, TaskState::NeedsContinuation], |task| {
            let may = self.named.is_none_or(|agent| self.types.check_agent_allowed(&task, agent).is_ok());
            lack = self
                .find_missing_agent_for_task(&task)
                .filter(|_| may && task.lease.is_none() && !self.leaves_in_place(&task));
            lack.is_none()
        })?;
        Ok(lack)
    }

    /// Returns the agent that a session was started with, if it is one of the agents of this run. An agent that only the
    /// project's store names does not count.
    pub fn resolve_session_agent(&self, session: &Session, trusted: bool) -> Result<Option<Agent>, Failure> {
        let name = session.agent.as_str();
        let usual = self.config.settings.agent.as_ref().map(|agent| agent.as_str());
        let listed = || {
            let mut roles = self.config.task_types().filter_map(|(_, roles)| roles.implementer.as_ref());
            roles.any(|names| names.iter().any(|listed| listed.value == name))
        };
        let meant = match self.named {
            Some(named) => named == name,
            None => trusted || usual == Some(name) || listed(),
        };
        meant.then(|| agents::resolve_agent(name, &self.config.settings)).transpose()
    }

    /// Returns the next available task besides these, with a name for its session. Workers of a fleet choose one of the first
    /// tasks by their names (`spread`): if all tried the same task, all but one would try in vain.
    pub fn find_next_task(
        &self,
        store: &SqliteStore,
        busy: &BTreeSet<TaskId>,
        left: &BTreeSet<TaskId>,
        spread: Option<&str>,
    ) -> Result<Option<(Task, SessionName)>, Failure> {
        let snapshot = store.begin_snapshot().map_err(hints::store_failure)?;
        let free = |id: &TaskId| !busy.contains(id) && !left.contains(id);
        let mut after = None;
        let most = if spread.is_some() { MAX_SPREAD_TASKS } else { 1 };
        let mut first: Vec<(TaskPriority, TaskId)> = Vec::new();
        while let Some(next) = snapshot.next_claimable_except(&self.closed, after).map_err(hints::view_failure)? {
            // A more urgent task comes first, whatever the number of workers.
            if first.first().is_some_and(|(priority, _)| *priority != next.0) {
                break;
            }
            let task = snapshot.find_task(next.1).map_err(hints::view_failure)?;
            if free(&next.1)
                && task.is_some_and(|task| !self.leaves_in_place(&task) && self.choose_agent_name(&task, 0).is_some())
            {
                first.push(next);
                if first.len() >= most {
                    break;
                }
            }
            after = Some(next);
        }
        let chosen = spread.map_or(0, |name| choose_index(name, first.len()));
        if let Some((_, id)) = first.get(chosen) {
            return self.name_task_session(&snapshot, *id);
        }
        let mut after = None;
        while let Some((ended, task)) = find_next_ended_lease(&snapshot, after)? {
            let is_open = task.kind.as_ref().is_none_or(|kind| !self.closed.contains(kind));
            if free(&task.id) && is_open && !self.leaves_in_place(&task) && self.choose_agent_name(&task, 0).is_some() {
                return self.name_task_session(&snapshot, task.id);
            }
            after = Some((ended, task.id));
        }
        Ok(None)
    }

    fn name_task_session(
        &self,
        snapshot: &StoreSnapshot<'_>,
        id: TaskId,
    ) -> Result<Option<(Task, SessionName)>, Failure> {
        let Some(task) = snapshot.find_task(id).map_err(hints::view_failure)? else { return Ok(None) };
        let base = name_after_task(snapshot, id)?;
        // The task has as many names in use as it had attempts.
        for number in 1_u64.. {
            let name = if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let name: SessionName = name.parse().expect("letters, digits and dashes, few enough");
            if snapshot.find_session(&name).map_err(hints::view_failure)?.is_none() {
                return Ok(Some((task, name)));
            }
        }
        Ok(None)
    }
}

/// Returns an index below `count` that differs between names.
fn choose_index(name: &str, count: usize) -> usize {
    let digest = Digest::of_bytes(name.as_bytes());
    let number = u64::from_le_bytes(digest.0[..8].try_into().expect("a digest has 32 bytes"));
    usize::try_from(number % count.max(1) as u64).expect("it is below a count")
}

/// Returns the unfinished sessions of dead owners that work on tasks and do not wait for a person, in the order of their starts.
pub fn find_left_sessions(
    opened: &OpenedProject,
    sessions: Vec<Session>,
    workspace_mode: WorkspaceMode,
) -> Vec<Session> {
    let left = sessions.into_iter().filter(|session| is_for_workers(session, workspace_mode));
    let mut left: Vec<Session> =
        left.filter(|session| !is_owner_still_alive(&opened.project, session.owner.as_str())).collect();
    left.sort_by_key(|session| session.started);
    left
}

/// Returns whether workers may resume a session. They do not work in a person's own tree unasked, and a session keeps its
/// workspace.
fn is_for_workers(session: &Session, workspace_mode: WorkspaceMode) -> bool {
    if session.workspace_mode.is_in_place() && !workspace_mode.is_in_place() {
        return false;
    }
    let of_graph = session.work == WorkSource::Graph || (session.goal.is_none() && session.task.is_some());
    of_graph && session.ending_kind().is_none() && session.next_action() != NextAction::Answer
}

/// Returns the sessions that hold a task and whose owner has died.
pub fn find_orphaned_sessions(opened: &OpenedProject, workspace_mode: WorkspaceMode) -> Result<Vec<Session>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let tasks = list_tasks_in_states(&opened.store, &[TaskState::Active, TaskState::Submitted])?;
    let leases = tasks
        .into_iter()
        .filter_map(|task| task.lease)
        .filter(|lease| !opened.project.is_own_process(lease.owner.as_str()));
    let mut sessions = Vec::new();
    for name in leases.filter_map(|lease| lease.session) {
        sessions.extend(
            snapshot
                .find_session(&name)
                .map_err(hints::view_failure)?
                .filter(|session| is_for_workers(session, workspace_mode)),
        );
    }
    sessions.retain(|session| opened.project.is_owner_dead(session.owner.as_str()));
    Ok(sessions)
}
