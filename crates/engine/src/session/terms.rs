//! What holds for a whole session: how much it may use, and what its end takes.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::usage::Cost;
use crate::watch::millis;

/// The least rest of an agent after its first failure. It doubles with each failure, up to the longest one.
const FIRST_REST: Duration = Duration::from_millis(250);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// What makes the work complete, once the gates agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The agent says that it is done.
    #[default]
    Promise,
    /// The end of a turn.
    Gate,
}

/// What happens when stop hooks have sent the agent back as often as they may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRetryLimit {
    #[default]
    Escalate,
    Complete,
    /// A person is asked what is to happen.
    Ask,
}

/// What holds for a whole session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Terms {
    pub max_iterations: u32,
    /// How often a stop hook that says nothing else may send the agent back within an iteration.
    pub max_hook_retries: u32,
    /// Failed iterations in a row.
    pub max_failures: u32,
    /// The least time between the first and the last of them. Sessions of older versions have none.
    #[serde(rename = "failureSpanMs", default, skip_serializing_if = "Duration::is_zero", with = "millis")]
    pub failure_span: Duration,
    pub completion: Completion,
    /// Whether a stop hook that fails by itself keeps the work from being complete.
    pub strict: bool,
    pub on_retry_limit: OnRetryLimit,
    /// How long it may be run.
    #[serde(rename = "wallTimeMs", default, skip_serializing_if = "Option::is_none", with = "millis::option")]
    pub wall_time: Option<Duration>,
    /// What it may cost, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// How many tokens it may use, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// How often in a row the same change may come with the same failures; with 0 as often as it likes.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub thrashing: u32,
    /// How often the agent may mend its work before it is submitted.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub max_remediations: u32,
    /// How often a rejected task is worked on again before a person is asked.
    #[serde(default = "usual_times", skip_serializing_if = "is_usual_times")]
    pub max_rejections: u32,
}

fn usual_times() -> u32 {
    3
}

fn is_usual_times(times: &u32) -> bool {
    *times == usual_times()
}

impl Terms {
    /// Returns how long the agent is left alone after so many failures in a row.
    ///
    /// Each wait is twice as long as the one before, and the waits between the first failure and the last one that is
    /// allowed add up to `failure_span`. However short that is, the agent gets a moment of rest.
    pub(crate) fn wait_after(&self, failures: u32) -> Duration {
        let failures = failures.max(1);
        let waits = self.max_failures.saturating_sub(1);
        // Among more than 64 waits the early ones have no share that could be measured.
        let counted = waits.min(64);
        let share = match failures.checked_sub(waits - counted) {
            Some(nth @ 1..=64) if counted > 0 => {
                (self.failure_span.as_millis().min(u64::MAX.into()) << (nth - 1)).div_ceil((1 << counted) - 1)
            }
            _ => 0,
        };
        let share = Duration::from_millis(u64::try_from(share).unwrap_or(u64::MAX));
        let rest = FIRST_REST.saturating_mul(2_u32.saturating_pow(failures - 1)).min(LONGEST_REST);
        share.max(rest).min(Limits::LONGEST_WAIT)
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            max_iterations: 25,
            max_hook_retries: 5,
            max_failures: 3,
            failure_span: Duration::from_mins(5),
            completion: Completion::default(),
            strict: true,
            on_retry_limit: OnRetryLimit::default(),
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

    fn waits(max_failures: u32, span: Duration) -> Vec<Duration> {
        let terms = Terms { max_failures, failure_span: span, ..Terms::default() };
        (1..max_failures).map(|failures| terms.wait_after(failures)).collect()
    }

    #[test]
    fn waits_between_allowed_failures_double_and_fill_the_span() {
        let usual = Terms::default();
        assert_eq!(waits(usual.max_failures, usual.failure_span), [100, 200].map(Duration::from_secs));
        assert_eq!(waits(5, Duration::from_mins(5)), [20, 40, 80, 160].map(Duration::from_secs));
        assert_eq!(waits(2, Duration::from_secs(20)), [Duration::from_secs(20)]);
        for failures in [1, 0, u32::MAX] {
            let terms = Terms { max_failures: 0, failure_span: Duration::MAX, ..usual.clone() };
            assert!(terms.wait_after(failures) <= Limits::LONGEST_WAIT);
        }
        for max_failures in 2..200 {
            for span in [0, 1, 7, 299_999, u64::MAX / 1_000_000].map(Duration::from_millis) {
                let waits = waits(max_failures, span);
                assert!(waits.iter().sum::<Duration>() >= span.min(Limits::LONGEST_WAIT), "{max_failures}, {span:?}");
                assert!(waits.is_sorted(), "{max_failures}, {span:?}: {waits:?}");
            }
        }
    }

    #[test]
    fn waits_without_a_span_are_moments_of_rest() {
        let terms = Terms { max_failures: 1000, failure_span: Duration::ZERO, ..Terms::default() };
        let waits: Vec<u128> = [1, 2, 3, 7, 8, 100, 999].map(|failures| terms.wait_after(failures).as_millis()).into();
        assert_eq!(waits, [250, 500, 1000, 16_000, 30_000, 30_000, 30_000]);
    }
}
