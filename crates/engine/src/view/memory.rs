//! The view in memory: for tests, for rebuilding rows, and as the reference for what every view must answer.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::apply::{ApplyError, apply};
use crate::bridge::{Caller, Conversation};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::event::Record;
use crate::log::id::{ConfigDigest, EdgeId, EffectId, Seq, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::Session;
use crate::task::{Edge, Priority, Task};
use crate::view::{Change, Direction, Looked, View};

/// All rows, with the indexes that the look-ups need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    head: Seq,
    tasks: BTreeMap<TaskId, Task>,
    /// The claimable tasks by type. No set is empty.
    claimable: BTreeMap<Option<TypeName>, BTreeSet<(Priority, TaskId)>>,
    leases: BTreeSet<(Timestamp, TaskId)>,
    edges: BTreeMap<EdgeId, Edge>,
    from: BTreeSet<(TaskId, EdgeId)>,
    to: BTreeSet<(TaskId, EdgeId)>,
    sessions: BTreeMap<SessionName, Session>,
    effects: BTreeMap<EffectId, PendingEffect>,
    conversations: BTreeMap<Caller, Conversation>,
    configs: BTreeMap<ConfigDigest, String>,
}

impl Memory {
    /// Folds one event.
    pub fn apply(&mut self, record: &Record) -> Result<(), ApplyError> {
        for change in apply(self, record.seq, &record.envelope)? {
            self.execute(change);
        }
        self.head = record.seq;
        Ok(())
    }

    /// Returns every row, as the change that creates it.
    pub fn into_rows(self) -> impl Iterator<Item = Change> {
        let tasks = self.tasks.into_values().map(|task| Change::PutTask(Box::new(task)));
        let edges = self.edges.into_values().map(Change::PutEdge);
        let sessions = self.sessions.into_values().map(|session| Change::PutSession(Box::new(session)));
        let effects = self.effects.into_values().map(|effect| Change::PutEffect(Box::new(effect)));
        let conversations = self.conversations.into_values().map(|row| Change::PutConversation(Box::new(row)));
        let configs = self.configs.into_iter().map(|(digest, text)| Change::PutConfig { digest, text });
        tasks.chain(edges).chain(sessions).chain(effects).chain(conversations).chain(configs)
    }

    /// Applies the changes of a commit that ends at `head`, as every view does.
    pub fn carry_out(&mut self, changes: Vec<Change>, head: Seq) {
        changes.into_iter().for_each(|change| self.execute(change));
        self.head = head;
    }

    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Borrows a task's row: rows may be long, so this avoids a clone.
    pub fn row(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id)
    }

    pub(crate) fn change_share(&mut self, id: EffectId, change: impl FnOnce(u32) -> u32) {
        if let Some(effect) = self.effects.get_mut(&id).filter(|effect| matches!(effect.kind, EffectKind::Hook(_))) {
            effect.share = change(effect.share);
        }
    }

    pub(crate) fn has_edge(&self, id: EdgeId) -> bool {
        self.edges.contains_key(&id)
    }

    pub(crate) fn execute(&mut self, change: Change) {
        match change {
            Change::PutTask(task) => self.put_task(*task),
            Change::PutEdge(edge) => {
                self.from.insert((edge.from_id, edge.id));
                self.to.insert((edge.to_id, edge.id));
                self.edges.insert(edge.id, edge);
            }
            Change::DropEdge(id) => {
                if let Some(edge) = self.edges.remove(&id) {
                    self.from.remove(&(edge.from_id, id));
                    self.to.remove(&(edge.to_id, id));
                }
            }
            Change::PutSession(session) => drop(self.sessions.insert(session.name.clone(), *session)),
            Change::PutEffect(effect) => drop(self.effects.insert(effect.id, *effect)),
            Change::DropEffect(id) => drop(self.effects.remove(&id)),
            Change::PutConversation(row) => drop(self.conversations.insert(row.caller.clone(), *row)),
            Change::DropConversation(caller) => drop(self.conversations.remove(&caller)),
            Change::PutConfig { digest, text } => drop(self.configs.insert(digest, text)),
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
                self.no_longer_claimable(&kind, (priority, old.id));
            }
            if let Some(ran) = until(&old).filter(|ran| now.1 != Some(*ran)) {
                self.leases.remove(&(ran, old.id));
            }
        }
    }

    fn no_longer_claimable(&mut self, kind: &Option<TypeName>, key: (Priority, TaskId)) {
        let Some(of_kind) = self.claimable.get_mut(kind) else { return };
        of_kind.remove(&key);
        if of_kind.is_empty() {
            self.claimable.remove(kind);
        }
    }
}

impl View for Memory {
    fn head(&self) -> Looked<Seq> {
        Ok(self.head)
    }

    fn task(&self, id: TaskId) -> Looked<Option<Task>> {
        Ok(self.tasks.get(&id).cloned())
    }

    fn last_task(&self) -> Looked<Option<TaskId>> {
        Ok(self.tasks.last_key_value().map(|(id, _)| *id))
    }

    fn edges(&self, id: TaskId, direction: Direction) -> Looked<Vec<Edge>> {
        let index = match direction {
            Direction::From => &self.from,
            Direction::To => &self.to,
        };
        let range = index.range((id, EdgeId(0))..=(id, EdgeId(u64::MAX)));
        Ok(range.map(|(_, edge)| self.edges[edge]).collect())
    }

    fn last_edge(&self) -> Looked<Option<EdgeId>> {
        Ok(self.edges.last_key_value().map(|(id, _)| *id))
    }

    fn claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(Priority, TaskId)>,
    ) -> Looked<Option<(Priority, TaskId)>> {
        let is_open = |kind: &Option<TypeName>| kind.as_ref().is_none_or(|kind| !closed.contains(kind));
        let open = self.claimable.iter().filter(|(kind, _)| is_open(kind));
        let first = |tasks: &BTreeSet<_>| tasks.range((after.map_or(Unbounded, Excluded), Unbounded)).next().copied();
        Ok(open.filter_map(|(_, tasks)| first(tasks)).min())
    }

    fn expired(&self, before: Timestamp, after: Option<(Timestamp, TaskId)>) -> Looked<Option<(Timestamp, TaskId)>> {
        let next = self.leases.range((after.map_or(Unbounded, Excluded), Unbounded)).next();
        Ok(next.filter(|(until, _)| *until < before).copied())
    }

    fn session(&self, name: &SessionName) -> Looked<Option<Session>> {
        Ok(self.sessions.get(name).cloned())
    }

    fn effect(&self, id: EffectId) -> Looked<Option<PendingEffect>> {
        Ok(self.effects.get(&id).cloned())
    }

    fn conversation(&self, caller: &Caller) -> Looked<Option<Conversation>> {
        Ok(self.conversations.get(caller).cloned())
    }

    fn next_effect(&self, after: Option<EffectId>) -> Looked<Option<PendingEffect>> {
        Ok(self.effects.range((after.map_or(Unbounded, Excluded), Unbounded)).next().map(|(_, effect)| effect.clone()))
    }

    fn config(&self, digest: ConfigDigest) -> Looked<Option<String>> {
        Ok(self.configs.get(&digest).cloned())
    }

    fn has_config(&self, digest: ConfigDigest) -> Looked<bool> {
        Ok(self.configs.contains_key(&digest))
    }
}
