//! A view with undecided events on top of it.
//!
//! `decide` works on a draft, so that a later event of a commit sees the effects of the earlier ones. A store folds appended
//! events through a draft too, and then carries out the resulting changes. A draft also records which scopes were read: a
//! commit is valid as long as none of them has changed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::apply::{ApplyError, apply};
use crate::bridge::{BridgeCaller, BridgeConversation};
use crate::effects::outbox::PendingEffect;
use crate::log::event::{EventEnvelope, EventSubject};
use crate::log::id::{ConfigDigest, EdgeId, EffectId, Seq, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::Session;
use crate::task::{Task, TaskEdge, TaskPriority};
use crate::view::memory::MemoryView;
use crate::view::{DecisionScope, EdgeDirection, RowChange, StateView, ViewResult};

/// A view, and the changed rows on top of it.
pub struct Draft<'v> {
    base: &'v dyn StateView,
    head: Seq,
    /// The new and changed rows.
    overlay: MemoryView,
    dropped_edges: BTreeSet<EdgeId>,
    dropped_effects: BTreeSet<EffectId>,
    dropped_conversations: BTreeSet<BridgeCaller>,
    /// Rows of the base that were looked up before.
    seen_tasks: RefCell<BTreeMap<TaskId, Option<Task>>>,
    seen_sessions: RefCell<BTreeMap<SessionName, Option<Session>>>,
    scopes: RefCell<BTreeSet<DecisionScope>>,
}

impl<'v> Draft<'v> {
    pub fn new(base: &'v dyn StateView) -> ViewResult<Self> {
        Ok(Self {
            base,
            head: base.head_position()?,
            overlay: MemoryView::default(),
            dropped_edges: BTreeSet::new(),
            dropped_effects: BTreeSet::new(),
            dropped_conversations: BTreeSet::new(),
            seen_tasks: RefCell::default(),
            seen_sessions: RefCell::default(),
            scopes: RefCell::default(),
        })
    }

    /// Folds one event on top. Returns the position of the previous event of the same task.
    pub fn apply_event(&mut self, seq: Seq, envelope: &EventEnvelope) -> Result<Seq, ApplyError> {
        let previous = self.last_task_event(envelope.node)?;
        for change in apply(self, seq, envelope)? {
            match &change {
                RowChange::DropEdge(id) if !self.overlay.has_edge(*id) => drop(self.dropped_edges.insert(*id)),
                RowChange::DropEffect(id) => drop(self.dropped_effects.insert(*id)),
                RowChange::PutEffect(effect) => drop(self.dropped_effects.remove(&effect.id)),
                RowChange::DropConversation(caller) => drop(self.dropped_conversations.insert(caller.clone())),
                RowChange::PutConversation(row) => drop(self.dropped_conversations.remove(&row.caller)),
                _ => {}
            }
            self.overlay.apply_row_change(change);
        }
        self.head = seq;
        Ok(previous)
    }

    /// Changes the budget share of a hook that was added on top.
    pub(crate) fn update_effect_share(&mut self, id: EffectId, change: impl FnOnce(u32) -> u32) {
        self.overlay.update_effect_share(id, change);
    }

    /// Returns the position of the last event of a task.
    fn last_task_event(&self, node: EventSubject) -> ViewResult<Seq> {
        let Some(id) = node.task_id() else { return Ok(Seq::START) };
        match self.overlay.task_row(id) {
            // Rows may be long, so this one is not cloned.
            Some(task) => Ok(task.last_event),
            None => Ok(self.find_task(id)?.map_or(Seq::START, |task| task.last_event)),
        }
    }

    /// Returns the scopes that were read, with their versions at that time.
    pub fn read_versions(&self) -> ViewResult<BTreeMap<DecisionScope, u64>> {
        let scopes = self.scopes.borrow();
        scopes.iter().map(|scope| Ok((scope.clone(), self.base.scope_version(scope)?))).collect()
    }

    /// Returns the changes that lead from the base to this draft, each row once.
    pub fn into_changes(self) -> Vec<RowChange> {
        let edges = self.dropped_edges.into_iter().map(RowChange::DropEdge);
        let effects = self.dropped_effects.into_iter().map(RowChange::DropEffect);
        let conversations = self.dropped_conversations.into_iter().map(RowChange::DropConversation);
        edges.chain(effects).chain(conversations).chain(self.overlay.into_rows()).collect()
    }

    fn record_read(&self, scope: DecisionScope) {
        self.scopes.borrow_mut().insert(scope);
    }

    /// Merges two ordered sources. `base` may return rows that are changed on top; those are skipped.
    fn next_merged_key<K: Ord + Copy>(
        &self,
        after: Option<K>,
        base: impl Fn(Option<K>) -> ViewResult<Option<K>>,
        over: impl Fn(Option<K>) -> ViewResult<Option<K>>,
        hidden: impl Fn(K) -> bool,
    ) -> ViewResult<Option<K>> {
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
fn look_up_once<K: Ord + Clone, R: Clone>(
    seen: &RefCell<BTreeMap<K, Option<R>>>,
    key: &K,
    look: impl FnOnce() -> ViewResult<Option<R>>,
) -> ViewResult<Option<R>> {
    if let Some(row) = seen.borrow().get(key) {
        return Ok(row.clone());
    }
    let row = look()?;
    seen.borrow_mut().insert(key.clone(), row.clone());
    Ok(row)
}

impl StateView for Draft<'_> {
    fn head_position(&self) -> ViewResult<Seq> {
        Ok(self.head)
    }

    fn find_task(&self, id: TaskId) -> ViewResult<Option<Task>> {
        match self.overlay.find_task(id)? {
            Some(task) => Ok(Some(task)),
            None => {
                self.record_read(DecisionScope::Task(id));
                look_up_once(&self.seen_tasks, &id, || self.base.find_task(id))
            }
        }
    }

    fn last_task_id(&self) -> ViewResult<Option<TaskId>> {
        self.record_read(DecisionScope::Ids);
        Ok(self.overlay.last_task_id()?.max(self.base.last_task_id()?))
    }

    fn find_edges(&self, id: TaskId, direction: EdgeDirection) -> ViewResult<Vec<TaskEdge>> {
        self.record_read(DecisionScope::Task(id));
        let mut edges = self.base.find_edges(id, direction)?;
        edges.retain(|edge| !self.dropped_edges.contains(&edge.id));
        edges.extend(self.overlay.find_edges(id, direction)?);
        Ok(edges)
    }

    fn last_edge_id(&self) -> ViewResult<Option<EdgeId>> {
        self.record_read(DecisionScope::Edges);
        Ok(self.overlay.last_edge_id()?.max(self.base.last_edge_id()?))
    }

    fn next_claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(TaskPriority, TaskId)>,
    ) -> ViewResult<Option<(TaskPriority, TaskId)>> {
        let hidden = |(_, id)| self.overlay.task_row(id).is_some();
        let (base, over) = (self.base, &self.overlay);
        let found = self.next_merged_key(
            after,
            |a| base.next_claimable_except(closed, a),
            |a| over.next_claimable_except(closed, a),
            hidden,
        )?;
        found.inspect(|(_, id)| self.record_read(DecisionScope::Task(*id)));
        Ok(found)
    }

    fn next_expired_lease(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, TaskId)>,
    ) -> ViewResult<Option<(Timestamp, TaskId)>> {
        let hidden = |(_, id)| self.overlay.task_row(id).is_some();
        self.next_merged_key(
            after,
            |a| self.base.next_expired_lease(before, a),
            |a| self.overlay.next_expired_lease(before, a),
            hidden,
        )
    }

    fn find_session(&self, name: &SessionName) -> ViewResult<Option<Session>> {
        match self.overlay.find_session(name)? {
            Some(session) => Ok(Some(session)),
            None => {
                self.record_read(DecisionScope::Session(name.clone()));
                look_up_once(&self.seen_sessions, name, || self.base.find_session(name))
            }
        }
    }

    fn find_effect(&self, id: EffectId) -> ViewResult<Option<PendingEffect>> {
        match self.overlay.find_effect(id)? {
            Some(effect) => Ok(Some(effect)),
            None if self.dropped_effects.contains(&id) => Ok(None),
            None => {
                self.record_read(DecisionScope::PendingEffect(id));
                self.base.find_effect(id)
            }
        }
    }

    fn find_conversation(&self, caller: &BridgeCaller) -> ViewResult<Option<BridgeConversation>> {
        match self.overlay.find_conversation(caller)? {
            Some(row) => Ok(Some(row)),
            None if self.dropped_conversations.contains(caller) => Ok(None),
            None => {
                self.record_read(DecisionScope::Conversation(caller.clone()));
                self.base.find_conversation(caller)
            }
        }
    }

    fn next_pending_effect(&self, after: Option<EffectId>) -> ViewResult<Option<PendingEffect>> {
        let id = |effect: Option<PendingEffect>| effect.map(|effect| effect.id);
        let hidden = |id| self.dropped_effects.contains(&id);
        let found = self.next_merged_key(
            after,
            |a| self.base.next_pending_effect(a).map(id),
            |a| self.overlay.next_pending_effect(a).map(id),
            hidden,
        )?;
        found.map_or(Ok(None), |id| self.find_effect(id))
    }

    fn find_config_text(&self, digest: ConfigDigest) -> ViewResult<Option<String>> {
        match self.overlay.find_config_text(digest)? {
            Some(text) => Ok(Some(text)),
            None => self.base.find_config_text(digest),
        }
    }

    fn has_config(&self, digest: ConfigDigest) -> ViewResult<bool> {
        Ok(self.overlay.has_config(digest)? || self.base.has_config(digest)?)
    }
}
