//! The limits of an agent's turn, and its outcome.

use std::time::{Duration, Instant};

use windlass_engine::{AgentUsage, TurnFailure};
use windlass_process::RunControl;

use crate::rate_limit_reset::RateLimitReset;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// The agent answered with this message.
    Answered(String),
    /// This turn failed. Another one may succeed.
    Failed {
        fault: TurnFailure,
        why: String,
    },
    /// The agent cannot be started at all.
    Broken(String),
    /// The agent was started, but no conversation could be opened. A later attempt may succeed.
    NoConversation(String),
    /// The agent is rate limited, with the time of the reset if it is known.
    RateLimited {
        said: String,
        reset: Option<RateLimitReset>,
    },
    /// The agent has no access to its model, with a remedy for the user.
    AccessDenied {
        said: String,
        remedy: String,
    },
    /// The turn exceeded its time limit.
    TimedOut,
    Cancelled,
}

impl TurnEnd {
    pub fn from_failure(fault: TurnFailure, why: impl Into<String>) -> Self {
        Self::Failed { fault, why: why.into() }
    }
}

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOutcome {
    pub end: TurnEnd,
    /// The usage of the turn.
    pub usage: AgentUsage,
    /// Whether the agent left processes behind.
    pub leaky: bool,
    /// The name of the turn's record. The host writes the record and adds its name.
    pub record: Option<String>,
}

impl TurnOutcome {
    /// Returns an outcome without usage and without leftover processes.
    pub fn from_turn_end(end: TurnEnd) -> Self {
        Self { end, usage: AgentUsage::default(), leaky: false, record: None }
    }
}

/// The limits of a turn: time, silence, and cancellation.
#[derive(Clone)]
pub struct TurnBudget {
    /// How long the turn may take.
    pub time: Option<Duration>,
    /// The deadline of the whole turn. A pause moves it.
    pub until: Option<Instant>,
    /// How long the agent may write nothing.
    pub silence: Option<Duration>,
    pub control: RunControl,
}

impl TurnBudget {
    /// Returns the budget of a turn that begins now.
    pub fn new(time: Option<Duration>, silence: Option<Duration>, control: RunControl) -> Self {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Self { time, until, silence, control }
    }

    /// Returns the time that is left.
    pub fn time_left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Runs a step with a time limit within the rest of the turn. A pause moves both deadlines. The agent may be silent during
    /// the step.
    pub(crate) fn run_bounded_step<T>(&mut self, time: Duration, step: impl FnOnce(&mut Self) -> T) -> T {
        let limit = Instant::now() + time;
        let before = self.until.map_or(limit, |until| until.min(limit));
        let mut budget = Self { until: Some(before), silence: None, ..self.clone() };
        let answer = step(&mut budget);
        let paused = budget.until.map_or(Duration::ZERO, |until| until - before);
        self.until = self.until.and_then(|until| until.checked_add(paused));
        answer
    }
}
