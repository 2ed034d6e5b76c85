//! The number and the delays of further attempts after a failure.
//!
//! Invariants:
//! - Without jitter, a wait is never shorter than the one before it.
//! - No wait is longer than ten minutes.
//!
//! Not here: waiting itself, and whether another attempt makes sense.

use std::time::Duration;

/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySchedule {
    /// The number of attempts after the first one.
    pub max: u32,
    /// The first wait; each wait after it is twice as long.
    pub backoff: Duration,
    /// Whether waits are shortened at random, so that many failed requests do not return together.
    pub jitter: bool,
}

impl RetrySchedule {
    /// Returns the wait after `attempt` failed attempts, or `None` if there are no more. The first attempt has no wait.
    pub fn wait_after_attempts(&self, attempt: u32, random: u64) -> Option<Duration> {
        let Some(doublings) = attempt.checked_sub(1) else { return Some(Duration::ZERO) };
        if attempt > self.max {
            return None;
        }
        let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
        let whole = self.backoff.saturating_mul(factor).min(MAX_WAIT);
        Some(if self.jitter { apply_jitter(whole, random) } else { whole })
    }
}

/// Returns a wait between half and all of `whole`.
fn apply_jitter(whole: Duration, random: u64) -> Duration {
    let half = whole / 2;
    let share = (whole - half).as_nanos() * u128::from(random) / u128::from(u64::MAX);
    half + Duration::from_nanos(u64::try_from(share).expect("half of the longest wait fits"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_double_up_to_last_attempt() {
        let retry = RetrySchedule { max: 4, backoff: Duration::from_secs(100), jitter: false };
        let waits: Vec<_> =
            (0..6).map(|attempt| retry.wait_after_attempts(attempt, 0).map(|wait| wait.as_secs())).collect();
        assert_eq!(waits, [Some(0), Some(100), Some(200), Some(400), Some(600), None]);
    }

    #[test]
    fn jitter_reaches_both_ends() {
        let retry = RetrySchedule { max: 1, backoff: Duration::from_secs(3), jitter: true };
        assert_eq!(retry.wait(1, 0), Some(Duration::from_millis(1500)));
        assert_eq!(retry.wait(1, u64::MAX), Some(Duration::from_secs(3)));
    }

    fn backoffs() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0..5_000_u64).prop_map(Duration::from_millis),
            any::<u64>().prop_map(Duration::from_nanos),
            any::<u64>().prop_map(Duration::from_secs),
        ]
    }

    proptest! {
        #[test]
        fn waits_grow_up_to_the_longest(backoff in backoffs(), attempt in 1..u32::MAX) {
            let retry = RetrySchedule { max: u32::MAX, backoff, jitter: false };
            let (wait, next) = (retry.wait_after_attempts(attempt, 0), retry.wait_after_attempts(attempt + 1, 0));
            prop_assert!(wait <= next && next <= Some(MAX_WAIT));
            prop_assert!(next == Some(MAX_WAIT) || next == wait.map(|wait| wait * 2));
        }

        #[test]
        fn jitter_stays_between_half_and_whole(backoff in backoffs(), attempt in 1..64_u32, random: u64) {
            let plain = RetrySchedule { max: u32::MAX, backoff, jitter: false };
            let whole = plain.wait_after_attempts(attempt, random).expect("there is no end to it");
            let wait = RetrySchedule { jitter: true, ..plain }.wait_after_attempts(attempt, random).expect("there is no end to it");
            prop_assert!(whole / 2 <= wait && wait <= whole);
        }

        #[test]
        fn schedule_allows_exactly_max_retries(max in 0..500_u32, jitter: bool, random: u64) {
            let retry = RetrySchedule { max, backoff: Duration::from_secs(1), jitter };
            let again = (1..).take_while(|attempt| retry.wait_after_attempts(*attempt, random).is_some()).count();
            prop_assert_eq!(again, max as usize);
        }
    }
}
