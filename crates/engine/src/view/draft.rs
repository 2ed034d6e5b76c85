//! A view with undecided events on top of it.
//!
//! `decide` works on a draft, so that a later event of a commit sees the effects of the earlier ones. A store folds appended
//! events through a draft too, and then carries out the resulting changes. A draft also records which scopes were read: a
//! commit is valid as long as none of them has changed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::apply::{ApplyError, apply};
use crate::bridge::{Caller, Conversation};
use crate::effects::outbox::PendingEffect;
use crate::log::event::{Envelope, Node};
use crate::log::id::{ConfigDigest, EdgeId, EffectId, Seq, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::Session;
use crate::task::{Edge, Priority, Task};
use crate::view::memory::Memory;
use crate::view::{Change, Direction, Looked, Scope, View};

/// A view, and the changed rows on top of it.
pub struct Draft<'v> {
    base: &'v dyn View,
    head: Seq,
    /// The new and changed rows.
    over: Memory,
    dropped_edges: BTreeSet<EdgeId>,
    dropped_effects: BTreeSet<EffectId>,
    dropped_conversations: BTreeSet<Caller>,
    /// Rows of the base that were looked up before.
    seen_tasks: RefCell<BTreeMap<TaskId, Option<Task>>>,
    seen_sessions: RefCell<BTreeMap<SessionName, Option<Session>>>,
    scopes: RefCell<BTreeSet<Scope>>,
}

impl<'v> Draft<'v> {
    pub fn new(base: &'v dyn View) -> Looked<Self> {
        Ok(Self {
            base,
            head: base.head()?,
            over: Memory::default(),
            dropped_edges: BTreeSet::new(),
            dropped_effects: BTreeSet::new(),
            dropped_conversations: BTreeSet::new(),
            seen_tasks: RefCell::default(),
            seen_sessions: RefCell::default(),
            scopes: RefCell::default(),
        })
    }

    /// Folds one event on top. Returns the position of the previous event of the same task.
    pub fn apply(&mut self, seq: Seq, envelope: &Envelope) -> Result<Seq, ApplyError> {
        let previous = self.last_event(envelope.node)?;
        for change in apply(self, seq, envelope)? {
            match &change {
                Change::DropEdge(id) if !self.over.has_edge(*id) => drop(self.dropped_edges.insert(*id)),
                Change::DropEffect(id) => drop(self.dropped_effects.insert(*id)),
                Change::PutEffect(effect) => drop(self.dropped_effects.remove(&effect.id)),
                Change::DropConversation(caller) => drop(self.dropped_conversations.insert(caller.clone())),
                Change::PutConversation(row) => drop(self.dropped_conversations.remove(&row.caller)),
                _ => {}
            }
            self.over.execute(change);
        }
        self.head = seq;
        Ok(previous)
    }

    /// Changes the budget share of a hook that was added on top.
    pub(crate) fn change_share(&mut self, id: EffectId, change: impl FnOnce(u32) -> u32) {
        self.over.change_share(id, change);
    }

    /// Returns the position of the last event of a task.
    fn last_event(&self, node: Node) -> Looked<Seq> {
        let Some(id) = node.task() else { return Ok(Seq::START) };
        match self.over.row(id) {
            // Rows may be long, so this one is not cloned.
            Some(task) => Ok(task.last_event),
            None => Ok(self.task(id)?.map_or(Seq::START, |task| task.last_event)),
        }
    }

    /// Returns the scopes that were read, with their versions at that time.
    pub fn reads(&self) -> Looked<BTreeMap<Scope, u64>> {
        let scopes = self.scopes.borrow();
        scopes.iter().map(|scope| Ok((scope.clone(), self.base.version(scope)?))).collect()
    }

    /// Returns the changes that lead from the base to this draft, each row once.
    pub fn into_changes(self) -> Vec<Change> {
        let edges = self.dropped_edges.into_iter().map(Change::DropEdge);
        let effects = self.dropped_effects.into_iter().map(Change::DropEffect);
        let conversations = self.dropped_conversations.into_iter().map(Change::DropConversation);
        edges.chain(effects).chain(conversations).chain(self.over.into_rows()).collect()
    }

    fn looked_at(&self, scope: Scope) {
        self.scopes.borrow_mut().insert(scope);
    }

    /// Merges two ordered sources. `base` may return rows that are changed on top; those are skipped.
    fn merged<K: Ord + Copy>(
        &self,
        after: Option<K>,
        base: impl Fn(Option<K>) -> Looked<Option<K>>,
        over: impl Fn(Option<K>) -> Looked<Option<K>>,
        hidden: impl Fn(K) -> bool,
    ) -> Looked<Option<K>> {
        let mut below = base(after)?;
        while let Some(key) = below.filter(|key| hidden(*key)) {
            below = base(Some(key))?;
        }
        Ok(match (below, over(after)?) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        })
    }
}

/// Looks a row up on the first request, and returns the cached row afterwards.
fn once<K: Ord + Clone, R: Clone>(
    seen: &RefCell<BTreeMap<K, Option<R>>>,
    key: &K,
    look: impl FnOnce() -> Looked<Option<R>>,
) -> Looked<Option<R>> {
    if let Some(row) = seen.borrow().get(key) {
        return Ok(row.clone());
    }
    let row = look()?;
    seen.borrow_mut().insert(key.clone(), row.clone());
    Ok(row)
}

impl View for Draft<'_> {
    fn head(&self) -> Looked<Seq> {
        Ok(self.head)
    }

    fn task(&self, id: TaskId) -> Looked<Option<Task>> {
        match self.over.task(id)? {
            Some(task) => Ok(Some(task)),
            None => {
                self.looked_at(Scope::Task(id));
                once(&self.seen_tasks, &id, || self.base.task(id))
            }
        }
    }

    fn last_task(&self) -> Looked<Option<TaskId>> {
        self.looked_at(Scope::Ids);
        Ok(self.over.last_task()?.max(self.base.last_task()?))
    }

    fn edges(&self, id: TaskId, direction: Direction) -> Looked<Vec<Edge>> {
        self.looked_at(Scope::Task(id));
        let mut edges = self.base.edges(id, direction)?;
        edges.retain(|edge| !self.dropped_edges.contains(&edge.id));
        edges.extend(self.over.edges(id, direction)?);
        Ok(edges)
    }

    fn last_edge(&self) -> Looked<Option<EdgeId>> {
        self.looked_at(Scope::Edges);
        Ok(self.over.last_edge()?.max(self.base.last_edge()?))
    }

    fn claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(Priority, TaskId)>,
    ) -> Looked<Option<(Priority, TaskId)>> {
        let hidden = |(_, id)| self.over.row(id).is_some();
        let (base, over) = (self.base, &self.over);
        let found =
            self.merged(after, |a| base.claimable_except(closed, a), |a| over.claimable_except(closed, a), hidden)?;
        found.inspect(|(_, id)| self.looked_at(Scope::Task(*id)));
        Ok(found)
    }

    fn expired(&self, before: Timestamp, after: Option<(Timestamp, TaskId)>) -> Looked<Option<(Timestamp, TaskId)>> {
        let hidden = |(_, id)| self.over.row(id).is_some();
        self.merged(after, |a| self.base.expired(before, a), |a| self.over.expired(before, a), hidden)
    }

    fn session(&self, name: &SessionName) -> Looked<Option<Session>> {
        match self.over.session(name)? {
            Some(session) => Ok(Some(session)),
            None => {
                self.looked_at(Scope::Session(name.clone()));
                once(&self.seen_sessions, name, || self.base.session(name))
            }
        }
    }

    fn effect(&self, id: EffectId) -> Looked<Option<PendingEffect>> {
        match self.over.effect(id)? {
            Some(effect) => Ok(Some(effect)),
            None if self.dropped_effects.contains(&id) => Ok(None),
            None => {
                self.looked_at(Scope::PendingEffect(id));
                self.base.effect(id)
            }
        }
    }

    fn conversation(&self, caller: &Caller) -> Looked<Option<Conversation>> {
        match self.over.conversation(caller)? {
            Some(row) => Ok(Some(row)),
            None if self.dropped_conversations.contains(caller) => Ok(None),
            None => {
                self.looked_at(Scope::Conversation(caller.clone()));
                self.base.conversation(caller)
            }
        }
    }

    fn next_effect(&self, after: Option<EffectId>) -> Looked<Option<PendingEffect>> {
        let id = |effect: Option<PendingEffect>| effect.map(|effect| effect.id);
        let hidden = |id| self.dropped_effects.contains(&id);
        let found =
            self.merged(after, |a| self.base.next_effect(a).map(id), |a| self.over.next_effect(a).map(id), hidden)?;
        found.map_or(Ok(None), |id| self.effect(id))
    }

    fn config(&self, digest: ConfigDigest) -> Looked<Option<String>> {
        match self.over.config(digest)? {
            Some(text) => Ok(Some(text)),
            None => self.base.config(digest),
        }
    }

    fn has_config(&self, digest: ConfigDigest) -> Looked<bool> {
        Ok(self.over.has_config(digest)? || self.base.has_config(digest)?)
    }
}
