//! A series of iterations that an agent runs by itself, and the signal that it gets after each.
//!
//! The order is fixed: the validation rules have run. Hooks decide, if there are any; else the promises do; else the series
//! continues. If a guard has tripped, a person decides instead of another iteration.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::stop_hook::StopRuling;
use crate::command::limits::{Limits, check_bytes, check_list};
use crate::command::refusal::Refusal;
use crate::evaluation::ruling::RuleAction;
use crate::evaluation::validation::{RuleResult, ValidationRule};
use crate::log::id::{Digest, HookId, SeriesId};
use crate::session::promise::Promise;

/// How many iterations in a row may have the same failures and the same work.
const ALIKE: u32 = 3;

/// A series to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSeries {
    pub max_iterations: u32,
    pub promises: Vec<Promise>,
    pub rules: Vec<ValidationRule>,
    /// After how many failed iterations in a row a person is asked.
    pub breaker: u32,
    /// A failing rule outweighs every promise that the work is complete.
    pub strict: bool,
}

impl NewSeries {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let within = |what, number: u32, most: u32| match number {
            number if (1..=most).contains(&number) => Ok(()),
            number => Err(Refusal::invalid(what, format!("is {number}; give a whole number from 1 to {most}"))),
        };
        within("maxIterations", self.max_iterations, Limits::SERIES)?;
        within("circuitBreakerThreshold", self.breaker, Limits::BREAKER)?;
        let twice = |promise: &&Promise| self.promises.iter().filter(|other| other == promise).count() > 1;
        match self.promises.iter().find(twice) {
            _ if self.promises.is_empty() => Err(Refusal::invalid(
                "completionPromises",
                "is empty; give at least one of COMPLETE, BLOCKED, ESCALATE",
            )),
            Some(promise) => Err(Refusal::invalid("completionPromises", format!("has {} twice", promise.name()))),
            None => Ok(()),
        }
    }
}

/// The series in progress, as the row of its task keeps it. Its rules are in the event that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    pub id: SeriesId,
    /// Counts from 1.
    pub iteration: u32,
    pub max_iterations: u32,
    pub completion_promises: Vec<Promise>,
    pub circuit_breaker_threshold: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// How many validation rules it has.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub rules: u32,
    /// It was started from inside a session, by the agent that it judges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// The results of the iterations before this one.
    #[serde(default)]
    pub before: Streak,
    /// The latest judgement of this iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// The loop of a session has judged this iteration: its next iteration is the next of the series.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged_by_loop: bool,
}

/// Lengths of the latest runs of failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Streak {
    pub failed: u32,
    /// With the same failures and the same work.
    pub alike: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Digest>,
}

/// The judgement of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    pub passed: bool,
    pub signal: Signal,
    /// How often it was judged.
    pub times: u32,
    /// A digest of the failures and of the work, if something failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<Digest>,
}

/// The instruction to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Signal {
    Continue,
    Complete,
    Blocked,
    Escalate,
}

/// The guard that stops a series without progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    MaxIterations,
    CircuitBreaker,
    Thrashing,
}

/// The purpose of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The decision of the hooks, and nothing more.
    Hooks,
    /// The state of the iteration.
    Validation,
    /// The state at the gate of a session, where the loop decides what follows.
    Gate,
}

/// The findings about an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judging {
    pub asked: Asked,
    /// The iteration that it is about.
    pub iteration: u32,
    /// The hooks that were registered then.
    pub hooks: Vec<HookId>,
    pub results: Vec<RuleResult>,
    /// The promises of this series that the agent has made.
    pub promises: Vec<Promise>,
    /// The decision of the hooks; `None` without hooks.
    pub decision: Option<HookDecision>,
    pub agent_output: Option<String>,
    pub files_modified: Vec<String>,
}

/// The decision of hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDecision {
    /// The hook that decided; `None` if no hook is enabled.
    pub hook: Option<HookId>,
    pub ruling: StopRuling,
}

/// The result of an evaluation.
pub(crate) struct Verdict {
    pub signal: Signal,
    pub guard: Option<Guard>,
    pub feedback: Vec<String>,
    pub judged: Judged,
}

impl Judging {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_list("a modified file", &self.files_modified, Limits::FILES, Limits::ARTIFACT)?;
        check_bytes("agentOutput", self.agent_output.as_deref().unwrap_or_default(), Limits::OUTPUT_TAKEN)
    }

    pub fn passed(&self) -> bool {
        self.results.iter().all(|result| result.passed)
    }

    /// Returns a digest of the failures and of the work. It leaves numbers out: times and counts differ each time.
    fn alike(&self) -> Option<Digest> {
        let words = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
        let failed = self.results.iter().filter(|result| !result.passed);
        let failed: Vec<_> = failed.map(|it| (&it.rule_name, words(&it.message))).collect();
        let seen = json!([self.agent_output.as_deref().map(words), self.files_modified, failed]);
        (!self.passed()).then(|| Digest::of(seen.to_string().as_bytes()))
    }
}

impl Series {
    /// Returns the verdict on an iteration, which may have been judged before.
    pub(crate) fn verdict(&self, judging: &Judging) -> Verdict {
        let passed = judging.passed();
        let mut feedback: Vec<String> = judging
            .results
            .iter()
            .filter(|result| !result.passed)
            .map(|result| format!("{}: {}", result.rule_name, result.message))
            .collect();
        let mut signal = match &judging.decision {
            Some(HookDecision { hook: Some(_), ruling }) => Signal::from(ruling.action),
            _ => Signal::of(&judging.promises),
        };
        let is_gate = judging.asked == Asked::Gate;
        if (self.strict || is_gate) && signal == Signal::Complete && !passed {
            signal = Signal::Continue;
            if self.strict {
                feedback
                    .push("the series is strict: the work is complete when every validation rule passes".to_owned());
            }
        }
        let times = self.judged.map_or(0, |judged| judged.times) + 1;
        let mut judged = Judged { passed, signal, times, alike: judging.alike() };
        let guard = Some(self.before.and(judged))
            .filter(|_| signal == Signal::Continue && !is_gate)
            .and_then(|streak| self.tripped(streak, times));
        if let Some(guard) = guard {
            feedback.push(self.explained(guard));
            (signal, judged.signal) = (Signal::Escalate, Signal::Escalate);
        }
        Verdict { signal, guard, feedback, judged }
    }

    /// Returns the guard that has tripped. Many evaluations within one iteration are thrashing, too.
    fn tripped(&self, streak: Streak, times: u32) -> Option<Guard> {
        match self {
            _ if times > Limits::SERIES => Some(Guard::Thrashing),
            _ if self.iteration >= self.max_iterations => Some(Guard::MaxIterations),
            _ if streak.failed >= self.circuit_breaker_threshold => Some(Guard::CircuitBreaker),
            _ if streak.alike >= ALIKE => Some(Guard::Thrashing),
            _ => None,
        }
    }

    /// Returns the guard that keeps the loop from another iteration, if one has tripped.
    pub(crate) fn tripped_guard(&self) -> Option<Guard> {
        let streak = self.judged.map_or(self.before, |judged| self.before.and(judged));
        self.tripped(streak, 0)
    }

    /// Returns the explanation of a guard.
    pub fn explained(&self, guard: Guard) -> String {
        match guard {
            Guard::MaxIterations => {
                format!("maximum: this was iteration {} of {}", self.iteration, self.max_iterations)
            }
            Guard::CircuitBreaker => {
                format!("circuit breaker: validation failed in {} iterations in a row", self.circuit_breaker_threshold)
            }
            Guard::Thrashing => "thrashing: the same again and again, with the same failures".to_owned(),
        }
    }

    /// Returns the series in its next iteration.
    pub(crate) fn advanced(self) -> Self {
        let before = self.judged.map_or(self.before, |judged| self.before.and(judged));
        Self { iteration: self.iteration + 1, before, judged: None, judged_by_loop: false, ..self }
    }

    pub fn remaining(&self) -> u32 {
        self.max_iterations.saturating_sub(self.iteration)
    }
}

impl Streak {
    /// Returns the streak with one more iteration.
    fn and(self, judged: Judged) -> Self {
        match (judged.passed, judged.alike) {
            (true, _) => Self::default(),
            (false, alike) => Self {
                failed: self.failed + 1,
                alike: if alike.is_some() && alike == self.last { self.alike + 1 } else { 1 },
                last: alike,
            },
        }
    }
}

impl Signal {
    pub fn name(self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::Complete => "COMPLETE",
            Self::Blocked => "BLOCKED",
            Self::Escalate => "ESCALATE",
        }
    }

    /// Returns the signal for the promises, the first of their order.
    fn of(promises: &[Promise]) -> Self {
        match Promise::ALL.into_iter().find(|promise| promises.contains(promise)) {
            Some(Promise::Complete) => Self::Complete,
            Some(Promise::Escalate) => Self::Escalate,
            Some(Promise::Blocked) => Self::Blocked,
            None => Self::Continue,
        }
    }
}

impl From<RuleAction> for Signal {
    fn from(action: RuleAction) -> Self {
        match action {
            RuleAction::Complete => Self::Complete,
            RuleAction::Continue => Self::Continue,
            RuleAction::Escalate => Self::Escalate,
        }
    }
}
