//! What each event says. Names that a hook or a script may already know are kept as they are.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::debt::HookOutcome;
use crate::id::{ConfigDigest, DebtId, EdgeId, Epoch, OwnerName, RunId, TaskId, TypeName};
use crate::session::Ending;
use crate::task::{Blocked, Claim, EdgeKind, Priority, State};
use crate::time::Timestamp;

/// Declares payload structs with the derives and the naming that all of them share.
macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty,)* })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($(#[$attr])* pub $field: $type,)*
        }
    )+};
}

payloads! {
    TaskCreated {
        goal: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        deliverables: Vec<String>,
        labels: Vec<String>,
        priority: Priority,
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<TypeName>,
    }
    /// Nothing is in its way any more.
    TaskReady {}
    /// A dependency is in its way again.
    TaskWaiting {}
    TaskClaimed {
        owner: OwnerName,
        epoch: Epoch,
        until: Timestamp,
    }
    LeaseExpired {
        owner: OwnerName,
        epoch: Epoch,
    }
    TaskStarted {
        context: Value,
    }
    /// What changed; an empty body or type takes it away.
    TaskUpdated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deliverables: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<Priority>,
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    }
    TaskSubmitted {}
    TaskCompleted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        artifacts: Vec<String>,
    }
    TaskUnblocked {}
    TaskNeedsContinuation {
        reason: String,
    }
    /// Given back by whoever worked on it.
    TaskReleased {
        reason: String,
    }
    TaskFailed {
        reason: String,
    }
    TaskReopened {
        from: State,
        reason: String,
    }
    TaskDeleted {
        edges_removed: Vec<EdgeId>,
    }
    DependencyAdded {
        from_id: TaskId,
        to_id: TaskId,
        edge_type: EdgeKind,
    }
    DependencyRemoved {
        edge_id: EdgeId,
        from_id: TaskId,
        to_id: TaskId,
    }
    DependencySatisfied {
        dependent_task_id: TaskId,
        completed_task_id: TaskId,
    }
    AgentMetrics {
        goal: String,
        labels: Vec<String>,
        priority: Priority,
        /// `null` for a task that was completed without having been started.
        duration_ms: Option<i64>,
        deliverables: Vec<String>,
    }
    AutoLabelSuggestion {
        labels: Vec<String>,
        keywords: Vec<String>,
    }
    /// The text behind a digest, so that the log alone can explain a decision.
    ConfigRecorded {
        digest: ConfigDigest,
        text: String,
    }
    SessionStarted {
        config: ConfigDigest,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<String>,
    }
    SessionEnded {
        ending: Ending,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    IterationStarted {
        run: RunId,
        owner: OwnerName,
    }
    IterationCompleted {
        run: RunId,
    }
    IterationFailed {
        run: RunId,
        error: String,
    }
    IterationInterrupted {
        run: RunId,
    }
    HookStarted {
        debt: DebtId,
        hook: String,
        owner: OwnerName,
        /// Above 1 only where an interrupted run is made good.
        attempt: u32,
    }
    HookFinished {
        debt: DebtId,
        hook: String,
        outcome: HookOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    HookError {
        hook_name: String,
        error: String,
        /// The event whose hook it was, but for its position: that is this event's cause.
        original_event: Value,
    }
    ActionError {
        action_type: String,
        error: String,
        payload: Value,
    }
}

/// The payload is the row itself.
pub type TaskBlocked = Blocked;
pub type CompletionClaimed = Claim;
