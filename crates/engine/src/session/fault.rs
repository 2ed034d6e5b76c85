//! The ways in which a turn fails, told apart: what a person can do about it differs.
//!
//! Not here: an agent that was asked too often (its iteration is postponed), or is not let in (its session ends).

use serde::{Deserialize, Serialize};

/// What was wrong with a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing that is known better.
    #[default]
    Failed,
    /// The model would not do what it was asked.
    Refused,
    /// The model's context or answer was full.
    OutOfTokens,
    /// It made as many steps as it may in one turn.
    OutOfTurns,
    /// It gave its turn up without having been asked to.
    GaveUp,
    /// Its program ended before its turn did.
    Crashed,
    /// It took longer than it was given.
    TimedOut,
    /// It said nothing for as long as it may be silent.
    Silent,
    /// It said nothing that could be understood.
    Garbage,
    /// It broke the protocol that it speaks.
    Breach,
    /// The model could not be reached, or failed.
    Outage,
    /// It ended its turn without a word and without having done anything.
    Empty,
    /// The prompt could not be written.
    Prompt,
}

impl Fault {
    pub fn is_unknown(&self) -> bool {
        *self == Self::Failed
    }

    /// What a person can do about it, where it is not for the next iteration to do better.
    pub fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::Refused => "say the task in other words, or choose another model",
            Self::OutOfTokens => "make the task smaller, or choose a model with a larger context",
            Self::OutOfTurns => "make the task smaller, or let the agent take more steps in a turn",
            Self::Silent => {
                "see whether it waits for something by running it by hand; `limits.silence` says how long it may be silent"
            }
            Self::TimedOut => "`limits.turn_time` says how long a turn may take",
            Self::Garbage | Self::Breach => {
                "check the agent's version, and that its command is the one for this driver"
            }
            Self::Outage => "see whether the model's service is up and its address right",
            Self::Empty => "run the agent by hand to see what it says",
            Self::Prompt => "check `prompt` in the configuration",
            Self::Failed | Self::GaveUp | Self::Crashed => return None,
        })
    }
}
