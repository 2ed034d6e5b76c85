//! The rows of sessions: which turn runs now, under which configuration.

use serde::{Deserialize, Serialize};

use crate::id::{ConfigDigest, DebtId, RunId, Seq, SessionName, TaskId};

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Completed,
    /// Iterations, time, cost or another budget ran out.
    Limit,
    Escalated,
    Cancelled,
    Error,
}

/// One run of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub name: SessionName,
    pub config: ConfigDigest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The number of the last iteration that was started.
    pub iteration: u32,
    /// The turn that runs now, and the debt that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<(RunId, DebtId)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ending>,
    /// The last event that changed this row.
    pub version: Seq,
}
