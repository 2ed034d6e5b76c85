//! References to feedback that the agent has yet to get.

use serde::{Deserialize, Serialize};

use crate::log::id::Seq;

/// A reference to pending feedback: the event that queued it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FeedbackRef {
    pub at: Seq,
    /// Whether a turn that did not finish has carried it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub possibly_seen: bool,
    /// Whether it comes from a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
    /// Whether it is about this iteration only: the next one gets its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
}
