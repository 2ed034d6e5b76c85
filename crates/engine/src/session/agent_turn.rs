//! A turn of the agent, and its purpose.

use serde::{Deserialize, Serialize};

use crate::log::id::{EffectId, RunId};
use crate::session::ending::SessionEnd;
use crate::session::feedback::FeedbackRef;

/// The purpose of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnPurpose {
    /// The agent does the work.
    Work,
    /// The agent continues the conversation because stop hooks sent it back.
    SendBack,
    /// The agent gets the reports of hooks about the failed iteration.
    Recovery,
    /// The agent gets pending feedback, before passed work is submitted or before the iteration limit ends the session.
    #[serde(rename = "final_delivery")]
    Delivery,
    /// Older versions delivered feedback after the work had been accepted. Only their logs hold this purpose.
    #[serde(rename = "delivery")]
    UnjudgedDelivery(SessionEnd),
}

impl TurnPurpose {
    /// Returns whether stop hooks judge the turn. A turn without judgement completes nothing: another iteration follows
    /// it.
    pub fn is_judged_by_hooks(&self) -> bool {
        matches!(self, Self::Work | Self::SendBack | Self::Delivery)
    }
}

/// The origin of the conversation that the agent works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationStart {
    /// The first conversation of the session.
    New,
    /// The previous conversation, resumed: the agent remembers it.
    Loaded,
    /// A new conversation, because the previous one could not be resumed: the agent remembers nothing.
    Anew,
}

/// A turn of the agent in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTurn {
    pub run: RunId,
    #[serde(rename = "debt")]
    pub effect: EffectId,
    pub purpose: TurnPurpose,
    pub feedback: Vec<FeedbackRef>,
    /// Whether the agent has claimed by a command, during this turn, that the session's task is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
}
