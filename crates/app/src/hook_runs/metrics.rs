//! Metrics over the runs of a hook.

use serde_json::{Value, json};
use windlass_engine::{HookOutcome, Timestamp};

use super::record::{HookRunOutcome, HookRunRecord};

/// The totals over the runs of a hook.
#[derive(Debug, Default)]
pub struct HookMetrics {
    pub success: usize,
    pub block: usize,
    pub failure: usize,
    pub timed_out: usize,
    /// Runs that were repeated because the base had moved.
    pub again: usize,
    /// Runs that asked for another iteration or a person, or were cancelled or interrupted.
    pub other: usize,
    pub errors: usize,
    /// In milliseconds, in the order of the runs.
    durations: Vec<u64>,
    pub last: Option<Timestamp>,
}

impl HookMetrics {
    /// Counts a run.
    pub fn count_run(&mut self, run: &HookRunRecord) {
        let outcome = match run.outcome {
            HookRunOutcome::Error => {
                self.errors += 1;
                return;
            }
            // A running hook has no outcome, and one that was skipped before its start has not run.
            HookRunOutcome::Ended(outcome) if run.has_run() => outcome,
            HookRunOutcome::Ended(_) | HookRunOutcome::Running | HookRunOutcome::Left => return,
        };
        match outcome {
            HookOutcome::Success | HookOutcome::Skip => self.success += 1,
            HookOutcome::Block => self.block += 1,
            HookOutcome::Failure => self.failure += 1,
            HookOutcome::TimedOut => self.timed_out += 1,
            HookOutcome::Again => self.again += 1,
            HookOutcome::Continue | HookOutcome::Escalate | HookOutcome::Cancelled | HookOutcome::Interrupted => {
                self.other += 1;
            }
        }
        self.durations.extend(run.took);
        self.last = self.last.max(run.start_or_end_time());
    }

    /// Returns the number of runs that have ended.
    pub fn count_ended_runs(&self) -> usize {
        self.success + self.block + self.failure + self.timed_out + self.again + self.other
    }

    /// Returns the duration that this percentage of the runs do not exceed, in milliseconds.
    pub fn duration_percentile(&self, percent: usize) -> Option<u64> {
        let mut durations = self.durations.clone();
        durations.sort_unstable();
        percentile(&durations, percent)
    }

    pub fn to_json(&self) -> Value {
        let rate =
            |count: usize| (self.count_ended_runs() > 0).then(|| rounded_fraction(count, self.count_ended_runs()));
        json!({
            "runs": self.count_ended_runs(),
            "success": self.success,
            "block": self.block,
            "failure": self.failure,
            "timedOut": self.timed_out,
            "again": self.again,
            "other": self.other,
            "errors": self.errors,
            "successRate": rate(self.success),
            "blockRate": rate(self.block),
            "failureRate": rate(self.failure),
            "timeoutRate": rate(self.timed_out),
            "p50Ms": self.duration_percentile(50),
            "p95Ms": self.duration_percentile(95),
            "lastRunAt": self.last,
        })
    }
}

/// Returns the smallest of these sorted numbers that this percentage of them do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent.min(100)).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Returns the ratio of a part to a whole, rounded to four places.
#[expect(clippy::cast_precision_loss, reason = "no log has so many runs that it shows")]
fn rounded_fraction(part: usize, whole: usize) -> f64 {
    (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_that_were_there() {
        let check = |numbers: &[u64], percent, expected| assert_eq!(percentile(numbers, percent), expected);
        check(&[], 50, None);
        check(&[7], 50, Some(7));
        check(&[7], 95, Some(7));
        check(&[1, 2], 50, Some(1));
        check(&[1, 2, 3], 50, Some(2));
        check(&[1, 2, 3, 4], 50, Some(2));
        check(&[15, 20, 35, 40, 50], 30, Some(20));
        check(&[15, 20, 35, 40, 50], 40, Some(20));
        check(&[15, 20, 35, 40, 50], 100, Some(50));
        check(&[15, 20, 35, 40, 50], 0, Some(15));
        let hundred: Vec<u64> = (1..=100).collect();
        check(&hundred, 50, Some(50));
        check(&hundred, 95, Some(95));
        check(&(1..=20).collect::<Vec<_>>(), 95, Some(19));
        check(&(1..=21).collect::<Vec<_>>(), 95, Some(20));
    }

    #[test]
    fn share_is_rounded_to_four_places() {
        assert!((rounded_fraction(1, 3) - 0.3333).abs() < 1e-9);
    }
}
