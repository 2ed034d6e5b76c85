//! The types of tasks, and the agents that may work on each.
//!
//! Invariants:
//! - A project that defines no types accepts any type name, and every task is open to all agents.
//! - A type without a list of agents is open to all; a type with an empty list is open to none.
//! - A task keeps its type when the configuration no longer defines it, and is then open to all.
//!
//! Not here: the hooks of a type (`decide/hook_selection.rs`); its gatekeepers (`config`).

use std::collections::{BTreeMap, BTreeSet};

use windlass_expr::nearest_name;

use crate::command::refusal::Refusal;
use crate::delivery::WorkspaceMode;
use crate::log::id::{TaskId, TypeName};
use crate::task::Task;
use crate::view::StateView;

/// The task types that a configuration defines, each with the agents that may work on it; `None` means all agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskTypes {
    known: BTreeMap<TypeName, Option<BTreeSet<String>>>,
    /// Types whose tasks no agent takes for now.
    paused: BTreeSet<TypeName>,
    /// Types whose tasks end with a report.
    reports: BTreeSet<TypeName>,
}

impl TaskTypes {
    pub fn new(types: impl IntoIterator<Item = (TypeName, Option<BTreeSet<String>>)>) -> Self {
        Self { known: types.into_iter().collect(), ..Self::default() }
    }

    /// Sets the types whose tasks end with a report instead of a change.
    pub fn with_reports(self, reports: BTreeSet<TypeName>) -> Self {
        Self { reports, ..self }
    }

    /// Returns whether a task ends with a report instead of a change.
    pub fn requires_report(&self, task: &Task) -> bool {
        task.report.as_ref().is_some_and(|report| !report.by_type)
            || task.kind.as_ref().is_some_and(|kind| self.reports.contains(kind))
    }

    /// Excludes types from the choice of the next task: something is missing that only their tasks need.
    pub fn pausing_types(self, shut: BTreeSet<TypeName>) -> Self {
        Self { paused: shut, ..self }
    }

    /// Checks that a task may have this type.
    pub(crate) fn check_type_exists(&self, kind: &TypeName) -> Result<(), Refusal> {
        if self.known.is_empty() || self.known.contains_key(kind) {
            return Ok(());
        }
        let known: Vec<&str> = self.known.keys().map(TypeName::as_str).collect();
        let near = nearest_name(kind.as_str(), &known).map(str::to_owned);
        Err(Refusal::UnknownType { kind: kind.clone(), near, known: self.known.keys().cloned().collect() })
    }

    /// Returns the only agents that may work on tasks of this type, if it is not open to all.
    pub fn allowed_agents(&self, kind: Option<&TypeName>) -> Option<&BTreeSet<String>> {
        self.known.get(kind?)?.as_ref()
    }

    /// Returns the types that are closed to this agent; without an agent, those that are not open to all.
    pub fn types_closed_to(&self, agent: Option<&str>) -> BTreeSet<TypeName> {
        let is_closed = |allowed: &BTreeSet<String>| agent.is_none_or(|agent| !allowed.contains(agent));
        let closed = self.known.iter().filter(|(_, allowed)| allowed.as_ref().is_some_and(is_closed));
        closed.map(|(kind, _)| kind.clone()).collect()
    }

    /// Returns the next task for this agent, except those in `besides`; without an agent, the next task that is open to
    /// all. If the only tasks left are for other agents, that is a refusal. A session that works in worktrees takes no
    /// task whose work lies elsewhere.
    pub fn next_task_for(
        &self,
        view: &dyn StateView,
        agent: Option<&str>,
        besides: &[TaskId],
        workspace_mode: WorkspaceMode,
    ) -> Result<Option<TaskId>, Refusal> {
        let mut closed = self.types_closed_to(agent);
        closed.extend(self.paused.iter().cloned());
        let mut after = None;
        while let Some((priority, id)) = view.next_claimable_except(&closed, after)? {
            let elsewhere = !workspace_mode.is_in_place() && view.find_task(id)?.is_some_and(|task| task.in_place);
            if !besides.contains(&id) && !elsewhere {
                return Ok(Some(id));
            }
            after = Some((priority, id));
        }
        if after.is_some() {
            return Ok(None);
        }
        let Some((_, id)) = view.next_claimable(None)?.filter(|_| !closed.is_empty()) else { return Ok(None) };
        let kind = view.find_task(id)?.and_then(|task| task.kind);
        if kind.as_ref().is_some_and(|kind| self.paused.contains(kind)) {
            return Ok(None);
        }
        let allowed = self.allowed_agents(kind.as_ref()).into_iter().flatten().cloned().collect();
        Err(Refusal::NothingForAgent { agent: agent.map(str::to_owned), id, kind, allowed })
    }

    /// Checks that this agent may work on a task.
    pub fn check_agent_allowed(&self, task: &Task, agent: &str) -> Result<(), Refusal> {
        match (&task.kind, self.allowed_agents(task.kind.as_ref())) {
            (Some(kind), Some(allowed)) if !allowed.contains(agent) => Err(Refusal::NotForAgent {
                id: task.id,
                kind: kind.clone(),
                agent: agent.to_owned(),
                allowed: allowed.iter().cloned().collect(),
            }),
            _ => Ok(()),
        }
    }
}
