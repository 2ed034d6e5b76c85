//! A series of iterations that an agent runs by itself, and the signal that it gets after each.
//!
//! The order is fixed: the validation rules have run. Hooks decide, if there are any; else the promises do; else the series
//! continues. If a guard has tripped, a person decides instead of another iteration.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::stop_hook::StopRuling;
use crate::command::limits::{EngineLimits, check_text_list, check_text_size};
use crate::command::refusal::Refusal;
use crate::evaluation::decision_rule::RuleAction;
use crate::evaluation::validation::{RuleResult, ValidationRule};
use crate::log::id::{Digest, HookId, SeriesId};
use crate::session::promise::Promise;

/// How many iterations in a row may have the same failures and the same work.
const MAX_ALIKE_ITERATIONS: u32 = 3;

/// A series to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIterationSeries {
    pub max_iterations: u32,
    pub promises: Vec<Promise>,
    pub rules: Vec<ValidationRule>,
    /// After how many failed iterations in a row a person is asked.
    pub breaker: u32,
    /// A failing rule outweighs every promise that the work is complete.
    pub strict: bool,
}

impl NewIterationSeries {
    pub(crate) fn check_limits(&self) -> Result<(), Refusal> {
        let within = |what, number: u32, most: u32| match number {
            number if (1..=most).contains(&number) => Ok(()),
            number => Err(Refusal::invalid_input(what, format!("is {number}; give a whole number from 1 to {most}"))),
        };
        within("maxIterations", self.max_iterations, EngineLimits::SERIES_ITERATIONS)?;
        within("circuitBreakerThreshold", self.breaker, EngineLimits::BREAKER_THRESHOLD)?;
        let twice = |promise: &&Promise| self.promises.iter().filter(|other| other == promise).count() > 1;
        match self.promises.iter().find(twice) {
            _ if self.promises.is_empty() => Err(Refusal::invalid_input(
                "completionPromises",
                "is empty; give at least one of COMPLETE, BLOCKED, ESCALATE",
            )),
            Some(promise) => Err(Refusal::invalid_input("completionPromises", format!("has {} twice", promise.name()))),
            None => Ok(()),
        }
    }
}

/// The series in progress, as the row of its task keeps it. Its rules are in the event that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IterationSeries {
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
    pub before: FailureStreak,
    /// The latest judgement of this iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<IterationJudgement>,
    /// The loop of a session has judged this iteration: its next iteration is the next of the series.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged_by_loop: bool,
}

/// Lengths of the latest runs of failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureStreak {
    pub failed: u32,
    /// With the same failures and the same work.
    pub alike: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Digest>,
}

/// The judgement of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IterationJudgement {
    pub passed: bool,
    pub signal: SeriesSignal,
    /// How often it was judged.
    pub times: u32,
    /// A digest of the failures and of the work, if something failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<Digest>,
}

/// The instruction to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SeriesSignal {
    Continue,
    Complete,
    Blocked,
    Escalate,
}

/// The guard that stops a series without progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesGuard {
    MaxIterations,
    CircuitBreaker,
    Thrashing,
}

/// The purpose of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationPurpose {
    /// The decision of the hooks, and nothing more.
    Hooks,
    /// The state of the iteration.
    Validation,
    /// The state at the gate of a session, where the loop decides what follows.
    Gate,
}

/// The findings about an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationFindings {
    pub asked: EvaluationPurpose,
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
pub(crate) struct SeriesVerdict {
    pub signal: SeriesSignal,
    pub guard: Option<SeriesGuard>,
    pub feedback: Vec<String>,
    pub judged: IterationJudgement,
}

impl EvaluationFindings {
    pub(crate) fn check_limits(&self) -> Result<(), Refusal> {
        check_text_list(
            "a modified file",
            &self.files_modified,
            EngineLimits::MODIFIED_FILES,
            EngineLimits::ARTIFACT_BYTES,
        )?;
        check_text_size(
            "agentOutput",
            self.agent_output.as_deref().unwrap_or_default(),
            EngineLimits::ACCEPTED_OUTPUT_BYTES,
        )
    }

    pub fn has_passed(&self) -> bool {
        self.results.iter().all(|result| result.passed)
    }

    /// Returns a digest of the failures and of the work. It leaves numbers out: times and counts differ each time.
    fn failure_digest(&self) -> Option<Digest> {
        let words = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
        let failed = self.results.iter().filter(|result| !result.passed);
        let failed: Vec<_> = failed.map(|it| (&it.rule_name, words(&it.message))).collect();
        let seen = json!([self.agent_output.as_deref().map(words), self.files_modified, failed]);
        (!self.has_passed()).then(|| Digest::of_bytes(seen.to_string().as_bytes()))
    }
}

impl IterationSeries {
    /// Returns the verdict on an iteration, which may have been judged before.
    pub(crate) fn judge_iteration(&self, judging: &EvaluationFindings) -> SeriesVerdict {
        let passed = judging.has_passed();
        let mut feedback: Vec<String> = judging
            .results
            .iter()
            .filter(|result| !result.passed)
            .map(|result| format!("{}: {}", result.rule_name, result.message))
            .collect();
        let mut signal = match &judging.decision {
            Some(HookDecision { hook: Some(_), ruling }) => SeriesSignal::from(ruling.action),
            _ => SeriesSignal::from_promises(&judging.promises),
        };
        let is_gate = judging.asked == EvaluationPurpose::Gate;
        if (self.strict || is_gate) && signal == SeriesSignal::Complete && !passed {
            signal = SeriesSignal::Continue;
            if self.strict {
                feedback
                    .push("the series is strict: the work is complete when every validation rule passes".to_owned());
            }
        }
        let times = self.judged.map_or(0, |judged| judged.times) + 1;
        let mut judged = IterationJudgement { passed, signal, times, alike: judging.failure_digest() };
        let guard = Some(self.before.with_iteration(judged))
            .filter(|_| signal == SeriesSignal::Continue && !is_gate)
            .and_then(|streak| self.find_tripped_guard(streak, times));
        if let Some(guard) = guard {
            feedback.push(self.explain_guard(guard));
            (signal, judged.signal) = (SeriesSignal::Escalate, SeriesSignal::Escalate);
        }
        SeriesVerdict { signal, guard, feedback, judged }
    }

    /// Returns the guard that has tripped. Many evaluations within one iteration are thrashing, too.
    fn find_tripped_guard(&self, streak: FailureStreak, times: u32) -> Option<SeriesGuard> {
        match self {
            _ if times > EngineLimits::SERIES_ITERATIONS => Some(SeriesGuard::Thrashing),
            _ if self.iteration >= self.max_iterations => Some(SeriesGuard::MaxIterations),
            _ if streak.failed >= self.circuit_breaker_threshold => Some(SeriesGuard::CircuitBreaker),
            _ if streak.alike >= MAX_ALIKE_ITERATIONS => Some(SeriesGuard::Thrashing),
            _ => None,
        }
    }

    /// Returns the guard that keeps the loop from another iteration, if one has tripped.
    pub(crate) fn current_tripped_guard(&self) -> Option<SeriesGuard> {
        let streak = self.judged.map_or(self.before, |judged| self.before.with_iteration(judged));
        self.find_tripped_guard(streak, 0)
    }

    /// Returns the explanation of a guard.
    pub fn explain_guard(&self, guard: SeriesGuard) -> String {
        match guard {
            SeriesGuard::MaxIterations => {
                format!("maximum: this was iteration {} of {}", self.iteration, self.max_iterations)
            }
            SeriesGuard::CircuitBreaker => {
                format!("circuit breaker: validation failed in {} iterations in a row", self.circuit_breaker_threshold)
            }
            SeriesGuard::Thrashing => "thrashing: the same failures, repeatedly".to_owned(),
        }
    }

    /// Returns the series in its next iteration.
    pub(crate) fn into_next_iteration(self) -> Self {
        let before = self.judged.map_or(self.before, |judged| self.before.with_iteration(judged));
        Self { iteration: self.iteration + 1, before, judged: None, judged_by_loop: false, ..self }
    }

    pub fn remaining_iterations(&self) -> u32 {
        self.max_iterations.saturating_sub(self.iteration)
    }
}

impl FailureStreak {
    /// Returns the streak with one more iteration.
    fn with_iteration(self, judged: IterationJudgement) -> Self {
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

impl SeriesSignal {
    pub fn name(self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::Complete => "COMPLETE",
            Self::Blocked => "BLOCKED",
            Self::Escalate => "ESCALATE",
        }
    }

    /// Returns the signal for the promises, the first of their order.
    fn from_promises(promises: &[Promise]) -> Self {
        match Promise::ALL.into_iter().find(|promise| promises.contains(promise)) {
            Some(Promise::Complete) => Self::Complete,
            Some(Promise::Escalate) => Self::Escalate,
            Some(Promise::Blocked) => Self::Blocked,
            None => Self::Continue,
        }
    }
}

impl From<RuleAction> for SeriesSignal {
    fn from(action: RuleAction) -> Self {
        match action {
            RuleAction::Complete => Self::Complete,
            RuleAction::Continue => Self::Continue,
            RuleAction::Escalate => Self::Escalate,
        }
    }
}
