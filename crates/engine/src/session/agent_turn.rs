//! A turn of the agent, and what it is for.

use serde::{Deserialize, Serialize};

use crate::log::id::{EffectId, RunId};
use crate::session::closing::Closing;
use crate::session::feedback::Piece;

/// Why the agent is given the word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To do the work.
    Work,
    /// Stop hooks sent it back into the same conversation.
    SendBack,
    /// The iteration failed, and hooks have something to say about it.
    Recovery,
    /// To hear pending feedback before work that has passed is submitted, or before the iteration limit ends the session.
    #[serde(rename = "final_delivery")]
    Delivery,
    /// Older versions delivered feedback after the work had been accepted. Only their logs hold this purpose.
    #[serde(rename = "delivery")]
    UnjudgedDelivery(Closing),
}

impl Purpose {
    /// Whether stop hooks judge the turn. A turn that is not judged completes nothing: another iteration follows it.
    pub fn is_judged(&self) -> bool {
        matches!(self, Self::Work | Self::SendBack | Self::Delivery)
    }
}

/// How the agent came to a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// It is the session's first.
    New,
    /// The one before was taken up again: the agent knows what was said in it.
    Loaded,
    /// The one before could not be taken up: the agent knows nothing of it.
    Anew,
}

/// The agent has the word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub run: RunId,
    #[serde(rename = "debt")]
    pub effect: EffectId,
    pub purpose: Purpose,
    pub feedback: Vec<Piece>,
    /// The agent has said by a command, while it runs, that the session's task is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
}
