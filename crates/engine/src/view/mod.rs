//! The state that the rules read, and the changes that they request.
//!
//! A view answers small questions about the present state and never returns the whole graph. Every view applies the same
//! [`RowChange`]s, so all rules are in this crate and none in SQL.

pub(crate) mod draft;
mod error;
pub(crate) mod memory;

use std::collections::BTreeSet;
use std::fmt;

use crate::bridge::{BridgeCaller, BridgeConversation};
use crate::effects::outbox::PendingEffect;
use crate::log::id::{ConfigDigest, EdgeId, EffectId, Seq, SessionName, TaskId, TypeName};
use crate::log::time::Timestamp;
use crate::session::Session;
use crate::task::{Task, TaskEdge, TaskPriority};

pub use error::{ViewError, ViewResult};

/// The end of an edge that a task is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeDirection {
    /// Edges that begin at the task.
    From,
    /// Edges that end at the task.
    To,
}

/// A part of the state that a decision can depend on. Writers that touch different scopes do not disturb each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecisionScope {
    Task(TaskId),
    Session(SessionName),
    PendingEffect(EffectId),
    Conversation(BridgeCaller),
    /// The shape of the graph. Its version changes with every added edge that stays; removed edges close no circle.
    Edges,
    /// The counter that task ids come from.
    Ids,
}

impl fmt::Display for DecisionScope {
    /// Writes the scope as the log of a fleet names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => write!(f, "task/{}", id.0),
            Self::Session(name) => write!(f, "session/{name}"),
            Self::PendingEffect(id) => write!(f, "effect/{id}"),
            Self::Conversation(caller) => write!(f, "conversation/{}/{}", caller.agent, caller.conversation),
            Self::Edges => f.write_str("edges"),
            Self::Ids => f.write_str("ids"),
        }
    }
}

/// The present state, as point look-ups.
pub trait StateView {
    /// Returns the position of the last event.
    fn head_position(&self) -> ViewResult<Seq>;
    fn find_task(&self, id: TaskId) -> ViewResult<Option<Task>>;
    /// Returns the youngest task, in whatever state it is.
    fn last_task_id(&self) -> ViewResult<Option<TaskId>>;
    /// Returns the edges at a task, in the order in which they were added.
    fn find_edges(&self, id: TaskId, direction: EdgeDirection) -> ViewResult<Vec<TaskEdge>>;
    /// Returns the youngest edge that still exists.
    fn last_edge_id(&self) -> ViewResult<Option<EdgeId>>;
    /// Returns the first claimable task of a type that is not in `closed`, most urgent and oldest first, after the
    /// given one. An implementation must not scan the tasks of the closed types.
    fn next_claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(TaskPriority, TaskId)>,
    ) -> ViewResult<Option<(TaskPriority, TaskId)>>;
    /// Returns the first task whose lease ran out before a timestamp, in order of expiry, after the given one.
    fn next_expired_lease(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, TaskId)>,
    ) -> ViewResult<Option<(Timestamp, TaskId)>>;
    fn find_session(&self, name: &SessionName) -> ViewResult<Option<Session>>;
    fn find_effect(&self, id: EffectId) -> ViewResult<Option<PendingEffect>>;
    /// Returns the row of a conversation whose agent calls Windlass.
    fn find_conversation(&self, caller: &BridgeCaller) -> ViewResult<Option<BridgeConversation>>;
    /// Returns the first effect after the given one.
    fn next_pending_effect(&self, after: Option<EffectId>) -> ViewResult<Option<PendingEffect>>;
    /// Returns the text of a recorded configuration.
    fn find_config_text(&self, digest: ConfigDigest) -> ViewResult<Option<String>>;

    /// Returns the first claimable task of any type.
    fn next_claimable(&self, after: Option<(TaskPriority, TaskId)>) -> ViewResult<Option<(TaskPriority, TaskId)>> {
        self.next_claimable_except(&BTreeSet::new(), after)
    }

    /// Returns whether a configuration was recorded. A view that knows this without reading the text should override
    /// it.
    fn has_config(&self, digest: ConfigDigest) -> ViewResult<bool> {
        Ok(self.find_config_text(digest)?.is_some())
    }

    /// Returns the version of a scope. If two calls return the same version, a decision from the first one still holds.
    fn scope_version(&self, scope: &DecisionScope) -> ViewResult<u64> {
        Ok(match scope {
            DecisionScope::Task(id) => self.find_task(*id)?.map_or(0, |task| task.version.0),
            DecisionScope::Session(name) => self.find_session(name)?.map_or(0, |session| session.version.0),
            DecisionScope::PendingEffect(id) => self.find_effect(*id)?.map_or(0, |effect| effect.version.0),
            DecisionScope::Conversation(caller) => self.find_conversation(caller)?.map_or(0, |row| row.version.0),
            DecisionScope::Edges => self.last_edge_id()?.map_or(0, |edge| edge.0),
            DecisionScope::Ids => self.last_task_id()?.map_or(0, |task| task.0),
        })
    }
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    PutTask(Box<Task>),
    PutEdge(TaskEdge),
    DropEdge(EdgeId),
    PutSession(Box<Session>),
    PutEffect(Box<PendingEffect>),
    DropEffect(EffectId),
    PutConversation(Box<BridgeConversation>),
    DropConversation(BridgeCaller),
    PutConfig { digest: ConfigDigest, text: String },
}
