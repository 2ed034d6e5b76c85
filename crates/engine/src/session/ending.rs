//! The end of a session.

use serde::{Deserialize, Serialize};

/// The way in which a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEndKind {
    Completed,
    /// Iterations, time, cost or another budget ran out.
    Limit,
    Escalated,
    Cancelled,
    Error,
}

/// The end of a session, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionEnd {
    pub ending: SessionEndKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SessionEnd {
    pub(super) fn with_reason(ending: SessionEndKind, reason: impl Into<String>) -> Self {
        Self { ending, reason: Some(reason.into()) }
    }
}
