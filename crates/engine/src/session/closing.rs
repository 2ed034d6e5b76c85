//! The end of a session.

use serde::{Deserialize, Serialize};

/// The way in which a session ended.
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

/// The end of a session, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Closing {
    pub ending: Ending,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Closing {
    pub(super) fn because(ending: Ending, reason: impl Into<String>) -> Self {
        Self { ending, reason: Some(reason.into()) }
    }
}
