//! The view in memory: for tests, for rebuilding rows, and as the reference for what every view must answer.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::apply::{ApplyError, apply};
use crate::bridge::{BridgeCaller, BridgeConversation};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::event::EventRecord;
use crate::log::id::{ConfigDigest, EdgeId, EffectId, Seq, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::Session;
use crate::task::{Task, TaskEdge, TaskPriority};
use crate::view::{EdgeDirection, RowChange, StateView, ViewResult};

/// All rows, with the indexes that the look-ups need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryView {
    head: Seq,
    tasks: BTreeMap<TaskId, Task>,
    /// The claimable tasks by type. No set is empty.
    claimable: BTreeMap<Option<TypeName>, BTreeSet<(TaskPriority, TaskId)>>,
    leases: BTreeSet<(Timestamp, TaskId)>,
    edges: BTreeMap<EdgeId, TaskEdge>,
    from: BTreeSet<(TaskId, EdgeId)>,
    to: BTreeSet<(TaskId, EdgeId)>,
    sessions: BTreeMap<SessionName, Session>,
    effects: BTreeMap<EffectId, PendingEffect>,
    conversations: BTreeMap<BridgeCaller, BridgeConversation>,
    configs: BTreeMap<ConfigDigest, String>,
}

impl MemoryView {
    /// Folds one event.
    pub fn apply_event(&mut self, record: &EventRecord) -> Result<(), ApplyError> {
        for change in apply(self, record.seq, &record.envelope)? {
            self.apply_row_change(change);
        }
        self.head = record.seq;
        Ok(())
    }

    /// Returns every row, as the change that creates it.
    pub fn into_rows(self) -> impl Iterator<Item = RowChange> {
        let tasks = self.tasks.into_values().map(|task| RowChange::PutTask(Box::new(task)));
        let edges = self.edges.into_values().map(RowChange::PutEdge);
        let sessions = self.sessions.into_values().map(|session| RowChange::PutSession(Box::new(session)));
        let effects = self.effects.into_values().map(|effect| RowChange::PutEffect(Box::new(effect)));
        let conversations = self.conversations.into_values().map(|row| RowChange::PutConversation(Box::new(row)));
        let configs = self.configs.into_iter().map(|(digest, text)| RowChange::PutConfig { digest, text });
        tasks.chain(edges).chain(sessions).chain(effects).chain(conversations).chain(configs)
    }

    /// Applies the changes of a commit that ends at `head`, as every view does.
    pub fn apply_row_changes(&mut self, changes: Vec<RowChange>, head: Seq) {
        changes.into_iter().for_each(|change| self.apply_row_change(change));
        self.head = head;
    }

    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Borrows a task's row: rows may be long, so this avoids a clone.
    pub fn task_row(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id)
    }

    pub(crate) fn update_effect_share(&mut self, id: EffectId, change: impl FnOnce(u32) -> u32) {
        if let Some(effect) = self.effects.get_mut(&id).filter(|effect| matches!(effect.kind, EffectKind::Hook(_))) {
            effect.share = change(effect.share);
        }
    }

    pub(crate) fn has_edge(&self, id: EdgeId) -> bool {
        self.edges.contains_key(&id)
    }

    pub(crate) fn apply_row_change(&mut self, change: RowChange) {
        match change {
            RowChange::PutTask(task) => self.put_task(*task),
            RowChange::PutEdge(edge) => {
                self.from.insert((edge.from_id, edge.id));
                self.to.insert((edge.to_id, edge.id));
                self.edges.insert(edge.id, edge);
            }
            RowChange::DropEdge(id) => {
                if let Some(edge) = self.edges.remove(&id) {
                    self.from.remove(&(edge.from_id, id));
                    self.to.remove(&(edge.to_id, id));
                }
            }
            RowChange::PutSession(session) => drop(self.sessions.insert(session.name.clone(), *session)),
            RowChange::PutEffect(effect) => drop(self.effects.insert(effect.id, *effect)),
            RowChange::DropEffect(id) => drop(self.effects.remove(&id)),
            RowChange::PutConversation(row) => drop(self.conversations.insert(row.caller.clone(), *row)),
            RowChange::DropConversation(caller) => drop(self.conversations.remove(&caller)),
            RowChange::PutConfig { digest, text } => drop(self.configs.insert(digest, text)),
        }
    }

    fn put_task(&mut self, task: Task) {
        if task.state.is_claimable() {
            self.claimable.entry(task.kind.clone()).or_default().insert((task.priority, task.id));
        }
        let until = |task: &Task| task.lease.as_ref().and_then(|lease| lease.until);
        if let Some(until) = until(&task) {
            self.leases.insert((until, task.id));
        }
        let place = |task: &Task| task.state.is_claimable().then(|| (task.kind.clone(), task.priority));
        let now = (place(&task), until(&task));
        if let Some(old) = self.tasks.insert(task.id, task) {
            if let Some((kind, priority)) = place(&old).filter(|_| place(&old) != now.0) {
                self.remove_claimable(&kind, (priority, old.id));
            }
            if let Some(ran) = until(&old).filter(|ran| now.1 != Some(*ran)) {
                self.leases.remove(&(ran, old.id));
            }
        }
    }

    fn remove_claimable(&mut self, kind: &Option<TypeName>, key: (TaskPriority, TaskId)) {
        let Some(of_kind) = self.claimable.get_mut(kind) else { return };
        of_kind.remove(&key);
        if of_kind.is_empty() {
            self.claimable.remove(kind);
        }
    }
}

impl StateView for MemoryView {
    fn head_position(&self) -> ViewResult<Seq> {
        Ok(self.head)
    }

    fn find_task(&self, id: TaskId) -> ViewResult<Option<Task>> {
        Ok(self.tasks.get(&id).cloned())
    }

    fn last_task_id(&self) -> ViewResult<Option<TaskId>> {
        Ok(self.tasks.last_key_value().map(|(id, _)| *id))
    }

    fn find_edges(&self, id: TaskId, direction: EdgeDirection) -> ViewResult<Vec<TaskEdge>> {
        let index = match direction {
            EdgeDirection::From => &self.from,
            EdgeDirection::To => &self.to,
        };
        let range = index.range((id, EdgeId(0))..=(id, EdgeId(u64::MAX)));
        Ok(range.map(|(_, edge)| self.edges[edge]).collect())
    }

    fn last_edge_id(&self) -> ViewResult<Option<EdgeId>> {
        Ok(self.edges.last_key_value().map(|(id, _)| *id))
    }

    fn next_claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(TaskPriority, TaskId)>,
    ) -> ViewResult<Option<(TaskPriority, TaskId)>> {
        let is_open = |kind: &Option<TypeName>| kind.as_ref().is_none_or(|kind| !closed.contains(kind));
        let open = self.claimable.iter().filter(|(kind, _)| is_open(kind));
        let first = |tasks: &BTreeSet<_>| tasks.range((after.map_or(Unbounded, Excluded), Unbounded)).next().copied();
        Ok(open.filter_map(|(_, tasks)| first(tasks)).min())
    }

    fn next_expired_lease(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, TaskId)>,
    ) -> ViewResult<Option<(Timestamp, TaskId)>> {
        let next = self.leases.range((after.map_or(Unbounded, Excluded), Unbounded)).next();
        Ok(next.filter(|(until, _)| *until < before).copied())
    }

    fn find_session(&self, name: &SessionName) -> ViewResult<Option<Session>> {
        Ok(self.sessions.get(name).cloned())
    }

    fn find_effect(&self, id: EffectId) -> ViewResult<Option<PendingEffect>> {
        Ok(self.effects.get(&id).cloned())
    }

    fn find_conversation(&self, caller: &BridgeCaller) -> ViewResult<Option<BridgeConversation>> {
        Ok(self.conversations.get(caller).cloned())
    }

    fn next_pending_effect(&self, after: Option<EffectId>) -> ViewResult<Option<PendingEffect>> {
        Ok(self.effects.range((after.map_or(Unbounded, Excluded), Unbounded)).next().map(|(_, effect)| effect.clone()))
    }

    fn find_config_text(&self, digest: ConfigDigest) -> ViewResult<Option<String>> {
        Ok(self.configs.get(&digest).cloned())
    }

    fn has_config(&self, digest: ConfigDigest) -> ViewResult<bool> {
        Ok(self.configs.contains_key(&digest))
    }
}
