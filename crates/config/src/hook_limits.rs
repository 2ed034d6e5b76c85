//! Limits for numbers of hooks and validators: valid values that are almost certainly mistakes.

use std::time::Duration;

use super::entry::Entry;
use super::error::ConfigProblem;
use super::reader::Located;
use super::span::DurationSetting;

/// A number of seconds without a unit from which on milliseconds are likely.
const BARE_SECONDS_LIMIT: f64 = 1000.0;
const TIMEOUT: Duration = Duration::from_hours(7 * 24);
const BACKOFF: Duration = Duration::from_hours(1);
const RETRIES: u32 = 100;
const OUTPUT: u64 = 256 * 1024;

/// Refuses numbers of a hook that are out of range.
pub fn check(entry: &Entry, source: &str) -> Result<(), ConfigProblem> {
    entry.timeout.as_ref().map_or(Ok(()), |timeout| check_timeout(timeout, source))?;
    entry.max_output.as_ref().map_or(Ok(()), max_output)?;
    let Some(retry) = &entry.retry else { return Ok(()) };
    if let Some(max) = retry.max.as_ref().filter(|max| max.value > RETRIES) {
        return Err(
            ConfigProblem::new(format!("`max`: a hook is tried again at most {RETRIES} times")).at(max.at.clone())
        );
    }
    match retry.backoff.as_ref().filter(|backoff| backoff.duration() > BACKOFF) {
        Some(backoff) => Err(ConfigProblem::new("`backoff`: must not be longer than an hour")
            .suggest("it doubles with every further try".to_owned())
            .at(backoff.at.clone())),
        None => Ok(()),
    }
}

/// Checks the timeout of a program.
pub fn check_timeout(timeout: &Located<DurationSetting>, source: &str) -> Result<(), ConfigProblem> {
    let written = source.get(timeout.at.clone()).unwrap_or_default().trim();
    if written.parse().is_ok_and(|number: f64| number >= BARE_SECONDS_LIMIT) {
        return Err(ConfigProblem::new(format!("`timeout`: a number as large as {written} needs a unit"))
            .suggest(format!("write `{written}ms` if you mean milliseconds, `{written}s` if you mean seconds"))
            .at(timeout.at.clone()));
    }
    match timeout.duration() > TIMEOUT {
        true => Err(ConfigProblem::new("`timeout`: must not be longer than 7 days")
            .suggest("write `168h` or less".to_owned())
            .at(timeout.at.clone())),
        false => Ok(()),
    }
}

fn max_output(most: &Located<u64>) -> Result<(), ConfigProblem> {
    match (1..=OUTPUT).contains(&most.value) {
        true => Ok(()),
        false => Err(ConfigProblem::new(format!("`max_output`: expected 1 to {OUTPUT} bytes")).at(most.at.clone())),
    }
}
