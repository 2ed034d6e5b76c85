//! Feedback that the agent has yet to hear.

use serde::{Deserialize, Serialize};

use crate::log::id::Seq;

/// Feedback that is owed to the agent: the event that queued it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Piece {
    pub at: Seq,
    /// It was in a turn that did not finish.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub possibly_seen: bool,
    /// A person said it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
    /// It is about the present iteration: the next one has its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
}
