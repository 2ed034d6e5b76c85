//! What a turn of an agent is allowed, and what came of it, whatever the agent.

use std::time::{Duration, Instant};

use windlass_engine::{Fault, Usage};
use windlass_process::Control;

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
    /// The agent is not logged in, with what a person has to do about it.
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

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOutcome {
    pub end: TurnEnd,
    /// What the turn has used.
    pub usage: Usage,
    /// The agent left processes behind.
    pub leaky: bool,
    /// The name of the record of the turn. The host writes the record, and adds its name.
    pub record: Option<String>,
}

impl TurnOutcome {
    /// Returns the outcome of a turn in which nothing was used and nothing is left.
    pub fn ended(end: TurnEnd) -> Self {
        Self { end, usage: Usage::default(), leaky: false, record: None }
    }
}

/// The limits of a turn: time, silence, and cancellation.
#[derive(Clone)]
pub struct TurnBudget {
    /// How long the turn may take.
    pub time: Option<Duration>,
    /// When its time is up: one deadline for all of it. A pause moves the deadline.
    pub until: Option<Instant>,
    /// How long the agent may write nothing.
    pub silence: Option<Duration>,
    pub control: Control,
}

impl TurnBudget {
    /// Returns the budget of a turn that begins now.
    pub fn new(time: Option<Duration>, silence: Option<Duration>, control: Control) -> Self {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Self { time, until, silence, control }
    }

    /// Returns the time that is left.
    pub fn time_left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Runs a step that has so much time, and no more than the rest of the turn. A pause moves both deadlines. The agent may
    /// be silent during the step.
    pub(crate) fn bounded<T>(&mut self, time: Duration, step: impl FnOnce(&mut Self) -> T) -> T {
        let limit = Instant::now() + time;
        let before = self.until.map_or(limit, |until| until.min(limit));
        let mut budget = Self { until: Some(before), silence: None, ..self.clone() };
        let answer = step(&mut budget);
        let paused = budget.until.map_or(Duration::ZERO, |until| until - before);
        self.until = self.until.and_then(|until| until.checked_add(paused));
        answer
    }
}
