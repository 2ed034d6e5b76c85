//! The state that the rules read, and the changes that they request.
//!
//! A view answers small questions about the present state and never returns the whole graph. Every view applies the same
//! [`Change`]s, so all rules are in this crate and none in SQL.

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

/// The end of an edge that a task is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Edges that begin at the task.
    From,
    /// Edges that end at the task.
    To,
}

/// A part of the state that a decision can depend on. Writers that touch different scopes do not disturb each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Task(TaskId),
    Session(SessionName),
    PendingEffect(EffectId),
    Conversation(Caller),
    /// The shape of the graph. Its version changes with every added edge that stays; removed edges close no circle.
    Edges,
    /// The counter that task ids come from.
    Ids,
}

/// The present state, as point look-ups.
pub trait View {
    /// Returns the position of the last event.
    fn head(&self) -> Looked<Seq>;
    fn task(&self, id: TaskId) -> Looked<Option<Task>>;
    /// Returns the youngest task, in whatever state it is.
    fn last_task(&self) -> Looked<Option<TaskId>>;
    /// Returns the edges at a task, in the order in which they were added.
    fn edges(&self, id: TaskId, direction: Direction) -> Looked<Vec<Edge>>;
    /// Returns the youngest edge that still exists.
    fn last_edge(&self) -> Looked<Option<EdgeId>>;
    /// Returns the first claimable task of a type that is not in `closed`, most urgent and oldest first, after the
    /// given one. An implementation must not scan the tasks of the closed types.
    fn claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(Priority, TaskId)>,
    ) -> Looked<Option<(Priority, TaskId)>>;
    /// Returns the first task whose lease ran out before a timestamp, in order of expiry, after the given one.
    fn expired(&self, before: Timestamp, after: Option<(Timestamp, TaskId)>) -> Looked<Option<(Timestamp, TaskId)>>;
    fn session(&self, name: &SessionName) -> Looked<Option<Session>>;
    fn effect(&self, id: EffectId) -> Looked<Option<PendingEffect>>;
    /// Returns the row of a conversation whose agent calls Windlass.
    fn conversation(&self, caller: &Caller) -> Looked<Option<Conversation>>;
    /// Returns the first effect after the given one.
    fn next_effect(&self, after: Option<EffectId>) -> Looked<Option<PendingEffect>>;
    /// Returns the text of a recorded configuration.
    fn config(&self, digest: ConfigDigest) -> Looked<Option<String>>;

    /// Returns the first claimable task of any type.
    fn claimable(&self, after: Option<(Priority, TaskId)>) -> Looked<Option<(Priority, TaskId)>> {
        self.claimable_except(&BTreeSet::new(), after)
    }

    /// Returns whether a configuration was recorded. A view that knows this without reading the text should override
    /// it.
    fn has_config(&self, digest: ConfigDigest) -> Looked<bool> {
        Ok(self.config(digest)?.is_some())
    }

    /// Returns the version of a scope. If two calls return the same version, a decision from the first one still holds.
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
