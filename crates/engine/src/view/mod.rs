//! What the rules can see, and what they ask to be changed.
//!
//! A view answers small questions about the present state and never hands out the whole graph. Every view carries out
//! the same [`Change`]s, so all the rules are on this side and none in SQL.

pub(crate) mod draft;
mod error;
pub(crate) mod memory;

use std::collections::BTreeSet;

use crate::bridge::{Caller, Conversation};
use crate::effects::outbox::PendingEffect;
use crate::log::id::{ConfigDigest, EdgeId, EffectId, Seq, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::Session;
use crate::task::{Edge, Priority, Task};

pub use error::{Looked, ViewError};

/// Which end of an edge a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Edges that begin at the task.
    From,
    /// Edges that end at the task.
    To,
}

/// What a decision can depend on. Writers that touch different scopes do not disturb each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Task(TaskId),
    Session(SessionName),
    PendingEffect(EffectId),
    Conversation(Caller),
    /// The shape of the graph: moves with every edge that is added and stays. Taking edges away closes no circle.
    Edges,
    /// The counter that task ids come from.
    Ids,
}

/// The present state, as point look-ups.
pub trait View {
    /// The position of the last event.
    fn head(&self) -> Looked<Seq>;
    fn task(&self, id: TaskId) -> Looked<Option<Task>>;
    /// The youngest task, whatever became of it.
    fn last_task(&self) -> Looked<Option<TaskId>>;
    /// The edges at a task, in the order in which they were added.
    fn edges(&self, id: TaskId, direction: Direction) -> Looked<Vec<Edge>>;
    /// The youngest edge that still exists.
    fn last_edge(&self) -> Looked<Option<EdgeId>>;
    /// The first task that may be claimed and is of none of these types, most urgent and oldest first, after the one
    /// given. However many there are of those types, none of them may have to be looked at.
    fn claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(Priority, TaskId)>,
    ) -> Looked<Option<(Priority, TaskId)>>;
    /// The first task whose lease ran out before a moment, in order of that, after the one given.
    fn expired(&self, before: Timestamp, after: Option<(Timestamp, TaskId)>) -> Looked<Option<(Timestamp, TaskId)>>;
    fn session(&self, name: &SessionName) -> Looked<Option<Session>>;
    fn effect(&self, id: EffectId) -> Looked<Option<PendingEffect>>;
    /// What is remembered of a conversation that calls by itself.
    fn conversation(&self, caller: &Caller) -> Looked<Option<Conversation>>;
    /// The first effect after the one given.
    fn next_effect(&self, after: Option<EffectId>) -> Looked<Option<PendingEffect>>;
    /// The text of a configuration that was recorded.
    fn config(&self, digest: ConfigDigest) -> Looked<Option<String>>;

    /// The first task that may be claimed, whatever its type.
    fn claimable(&self, after: Option<(Priority, TaskId)>) -> Looked<Option<(Priority, TaskId)>> {
        self.claimable_except(&BTreeSet::new(), after)
    }

    /// Whether a configuration was recorded. A view that can tell without reading all of it should.
    fn has_config(&self, digest: ConfigDigest) -> Looked<bool> {
        Ok(self.config(digest)?.is_some())
    }

    /// How far a scope has come. Two equal answers mean that what was decided upon the first still holds.
    fn version(&self, scope: &Scope) -> Looked<u64> {
        Ok(match scope {
            Scope::Task(id) => self.task(*id)?.map_or(0, |task| task.version.0),
            Scope::Session(name) => self.session(name)?.map_or(0, |session| session.version.0),
            Scope::PendingEffect(id) => self.effect(*id)?.map_or(0, |effect| effect.version.0),
            Scope::Conversation(caller) => self.conversation(caller)?.map_or(0, |row| row.version.0),
            Scope::Edges => self.last_edge()?.map_or(0, |edge| edge.0),
            Scope::Ids => self.last_task()?.map_or(0, |task| task.0),
        })
    }
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    PutTask(Box<Task>),
    PutEdge(Edge),
    DropEdge(EdgeId),
    PutSession(Box<Session>),
    PutEffect(Box<PendingEffect>),
    DropEffect(EffectId),
    PutConversation(Box<Conversation>),
    DropConversation(Caller),
    PutConfig { digest: ConfigDigest, text: String },
}
