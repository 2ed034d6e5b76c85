//! The kinds of turn failures, by the action that a person can take.
//!
//! Not here: an agent that is rate limited (its iteration is postponed) or not authenticated (its session ends).

use serde::{Deserialize, Serialize};

/// The kind of failure of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFailure {
    /// A failure of no known kind.
    #[default]
    Failed,
    /// The model refused the request.
    Refused,
    /// The model's context or answer was full.
    OutOfTokens,
    /// The agent reached its limit of steps in one turn.
    OutOfTurns,
    /// The agent cancelled its turn without a request to do so.
    GaveUp,
    /// The agent's program ended before the turn did.
    Crashed,
    /// The turn took longer than its limit.
    TimedOut,
    /// The agent wrote nothing for the allowed silence.
    Silent,
    /// The agent's output could not be parsed.
    Garbage,
    /// The agent violated its protocol.
    Breach,
    /// The model was unreachable or failed.
    Outage,
    /// The turn ended without text and without actions.
    Empty,
    /// The prompt could not be rendered.
    Prompt,
}

impl TurnFailure {
    pub fn is_unknown(&self) -> bool {
        *self == Self::Failed
    }

    /// Returns an action for a person, unless the next iteration may simply do better.
    pub fn suggested_remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::Refused => "reword the task, or choose another model",
            Self::OutOfTokens => "make the task smaller, or choose a model with a larger context",
            Self::OutOfTurns => "make the task smaller, or let the agent take more steps in a turn",
            Self::Silent => {
                "run the agent by hand to see whether it waits for something; `limits.silence` sets how long it may be silent"
            }
            Self::TimedOut => "`limits.turn_time` sets how long a turn may take",
            Self::Garbage | Self::Breach => {
                "check the agent's version, and that its command is the one for this driver"
            }
            Self::Outage => "check that the model's service is up and its address is right",
            Self::Empty => "run the agent by hand to see what it says",
            Self::Prompt => "check `prompt` in the configuration",
            Self::Failed | Self::GaveUp | Self::Crashed => return None,
        })
    }
}
