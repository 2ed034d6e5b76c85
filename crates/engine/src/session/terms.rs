//! The terms of a session: its limits, and the conditions of its end.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::log::millis;
use crate::session::usage::UsdCost;

/// The wait after an agent's first failure. It doubles with each failure, up to the maximum.
const FIRST_RETRY_WAIT: Duration = Duration::from_secs(5);
const MAX_RETRY_WAIT: Duration = Duration::from_mins(2);
/// The minimum wait: with a short failure span, an agent that fails at once must not run in a tight loop.
const MIN_RETRY_WAIT: Duration = Duration::from_millis(250);

/// The condition that completes the work, once the gates agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionMode {
    /// The agent claims that it is done.
    #[default]
    Promise,
    /// A turn ends.
    Gate,
}

/// The action when stop hooks have reached their limit of send-backs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryLimitAction {
    #[default]
    Escalate,
    Complete,
    /// Asks a person.
    Ask,
}

/// The terms of a whole session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionTerms {
    pub max_iterations: u32,
    /// The limit of send-backs within an iteration, for a stop hook without a limit of its own.
    pub max_hook_retries: u32,
    /// The limit of failed iterations in a row.
    pub max_failures: u32,
    /// The minimum time between the first and the last of these failures. Sessions of older versions have none.
    #[serde(rename = "failureSpanMs", default, skip_serializing_if = "Duration::is_zero", with = "millis")]
    pub failure_span: Duration,
    pub completion: CompletionMode,
    /// Whether a stop hook that fails by itself keeps the work from being complete.
    pub strict: bool,
    pub on_retry_limit: RetryLimitAction,
    /// The limit of the run time.
    #[serde(rename = "wallTimeMs", default, skip_serializing_if = "Option::is_none", with = "millis::option")]
    pub wall_time: Option<Duration>,
    /// The limit of the cost, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<UsdCost>,
    /// The limit of tokens, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The limit of turns in a row with the same change and the same failures; 0 means no limit.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub thrashing: u32,
    /// The limit of attempts to fix the work before it is submitted.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub max_remediations: u32,
    /// The limit of rejections of a task before a person is asked.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub max_rejections: u32,
}

fn usual_times() -> u32 {
    3
}

fn is_usual_times(times: &u32) -> bool {
    *times == usual_times()
}

impl SessionTerms {
    /// Returns the wait after this many failures in a row. It doubles each time, up to the span that the failures must
    /// cover before the circuit breaker may trip.
    pub(crate) fn retry_wait_after(&self, failures: u32) -> Duration {
        let doubled = FIRST_RETRY_WAIT.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
        doubled.min(MAX_RETRY_WAIT).min(self.failure_span.max(MIN_RETRY_WAIT))
    }

    /// Returns whether this many failures in a row, over this span, trip the circuit breaker. A single failure has no
    /// span.
    pub(crate) fn trips_breaker_after(&self, failures: u32, span: Duration) -> bool {
        failures >= self.max_failures.max(1) && (self.max_failures <= 1 || span >= self.failure_span)
    }
}

impl Default for SessionTerms {
    fn default() -> Self {
        Self {
            max_iterations: 25,
            max_hook_retries: 5,
            max_failures: 3,
            failure_span: Duration::from_mins(5),
            completion: CompletionMode::default(),
            strict: true,
            on_retry_limit: RetryLimitAction::default(),
            wall_time: None,
            cost: None,
            tokens: None,
            thrashing: usual_times(),
            max_remediations: usual_times(),
            max_rejections: usual_times(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_after_failures_double_up_to_two_minutes() {
        let usual = SessionTerms::default();
        let waits: Vec<u64> = (1..=8).map(|failures| usual.retry_wait_after(failures).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 120, 120, 120]);
        assert_eq!(usual.retry_wait_after(u32::MAX), MAX_RETRY_WAIT);
    }

    #[test]
    fn waits_are_no_longer_than_the_span_and_never_nothing() {
        for (span, wait) in [(0, 250), (1, 250), (700, 700), (5_000, 5_000), (60_000, 5_000)] {
            let terms = SessionTerms { failure_span: Duration::from_millis(span), ..SessionTerms::default() };
            assert_eq!(terms.retry_wait_after(1), Duration::from_millis(wait), "{span} ms");
        }
    }

    #[test]
    fn circuit_breaker_needs_a_number_of_failures_and_a_span_of_time() {
        let breaks = |max_failures, failures, seconds| {
            let terms =
                SessionTerms { max_failures, failure_span: Duration::from_secs(300), ..SessionTerms::default() };
            terms.trips_breaker_after(failures, Duration::from_secs(seconds))
        };
        assert!(breaks(3, 3, 300) && breaks(3, 9, 300));
        assert!(!breaks(3, 2, 300) && !breaks(3, 9, 299));
        for max_failures in [0, 1] {
            assert!(breaks(max_failures, 1, 0) && !breaks(max_failures, 0, 300));
        }
    }
}
