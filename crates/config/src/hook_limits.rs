//! Limits for numbers of hooks and validators: valid values that are almost certainly mistakes.

use std::time::Duration;

use super::duration_setting::DurationSetting;
use super::error::ConfigProblem;
use super::hook_settings::HookSettings;
use super::reader::LocatedValue;

/// A number of seconds without a unit from which on milliseconds are likely.
const BARE_SECONDS_LIMIT: f64 = 1000.0;
const MAX_TIMEOUT: Duration = Duration::from_hours(7 * 24);
const MAX_BACKOFF: Duration = Duration::from_hours(1);
const MAX_RETRIES: u32 = 100;
const MAX_OUTPUT_BYTES: u64 = 256 * 1024;

/// Refuses numbers of a hook that are out of range.
pub fn check_hook_limits(entry: &HookSettings, source: &str) -> Result<(), ConfigProblem> {
    entry.timeout.as_ref().map_or(Ok(()), |timeout| check_timeout(timeout, source))?;
    entry.max_output.as_ref().map_or(Ok(()), check_max_output)?;
    let Some(retry) = &entry.retry else { return Ok(()) };
    if let Some(max) = retry.max.as_ref().filter(|max| max.value > MAX_RETRIES) {
        return Err(ConfigProblem::new(format!("`max`: a hook is tried again at most {RETRIES} times"))
            .with_range(max.at.clone()));
    }
    match retry.backoff.as_ref().filter(|backoff| backoff.duration() > MAX_BACKOFF) {
        Some(backoff) => Err(ConfigProblem::new("`backoff`: must not be longer than an hour")
            .with_suggestion("it doubles with every further try".to_owned())
            .with_range(backoff.at.clone())),
        None => Ok(()),
    }
}

/// Checks the timeout of a program.
pub fn check_timeout(timeout: &LocatedValue<DurationSetting>, source: &str) -> Result<(), ConfigProblem> {
    let written = source.get(timeout.at.clone()).unwrap_or_default().trim();
    if written.parse().is_ok_and(|number: f64| number >= BARE_SECONDS_LIMIT) {
        return Err(ConfigProblem::new(format!("`timeout`: a number as large as {written} needs a unit"))
            .with_suggestion(format!("write `{written}ms` if you mean milliseconds, `{written}s` if you mean seconds"))
            .with_range(timeout.at.clone()));
    }
    match timeout.duration() > MAX_TIMEOUT {
        true => Err(ConfigProblem::new("`timeout`: must not be longer than 7 days")
            .with_suggestion("write `168h` or less".to_owned())
            .with_range(timeout.at.clone())),
        false => Ok(()),
    }
}

fn check_max_output(most: &LocatedValue<u64>) -> Result<(), ConfigProblem> {
    match (1..=MAX_OUTPUT_BYTES).contains(&most.value) {
        true => Ok(()),
        false => {
            Err(ConfigProblem::new(format!("`max_output`: expected 1 to {OUTPUT} bytes")).with_range(most.at.clone()))
        }
    }
}
