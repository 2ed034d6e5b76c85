//! How a turn ended, whatever the agent.

use windlass_engine::Fault;

use crate::reset::Reset;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// What it said last.
    Said(String),
    /// This turn failed; another may not.
    Failed {
        fault: Fault,
        why: String,
    },
    /// It cannot be started at all.
    Broken(String),
    /// It was started, and no conversation came of it. Another time one may.
    Unanswered(String),
    /// It was asked too often. It may be asked again, and may have said when.
    Limited {
        said: String,
        reset: Option<Reset>,
    },
    /// Nobody lets it in, and this is what a person has to do about it.
    Locked {
        said: String,
        remedy: String,
    },
    /// It took longer than it was given.
    TimedOut,
    Cancelled,
}

impl TurnEnd {
    pub fn failed(fault: Fault, why: impl Into<String>) -> Self {
        Self::Failed { fault, why: why.into() }
    }
}
