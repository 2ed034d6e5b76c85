//! Numbers of a hook or of a validator that can be read and cannot be meant.

use std::time::Duration;

use super::entry::Entry;
use super::error::Problem;
use super::reader::Located;
use super::span::Span;

const DAY: f64 = 86_400.0;
const TIMEOUT: Duration = Duration::from_hours(7 * 24);
const BACKOFF: Duration = Duration::from_hours(1);
const RETRIES: u32 = 100;
const OUTPUT: u64 = 256 * 1024;

/// Refuses what is surely a mistake.
pub fn check(entry: &Entry, source: &str) -> Result<(), Problem> {
    entry.timeout.as_ref().map_or(Ok(()), |timeout| check_timeout(timeout, source))?;
    entry.max_output.as_ref().map_or(Ok(()), max_output)?;
    let Some(retry) = &entry.retry else { return Ok(()) };
    if let Some(max) = retry.max.as_ref().filter(|max| max.value > RETRIES) {
        return Err(Problem::new(format!("`max`: a hook is tried again at most {RETRIES} times")).at(max.at.clone()));
    }
    match retry.backoff.as_ref().filter(|backoff| backoff.duration() > BACKOFF) {
        Some(backoff) => Err(Problem::new("`backoff`: must not be longer than an hour")
            .suggest("it doubles with every further try".to_owned())
            .at(backoff.at.clone())),
        None => Ok(()),
    }
}

/// How long a program may run.
pub fn check_timeout(timeout: &Located<Span>, source: &str) -> Result<(), Problem> {
    let written = source.get(timeout.at.clone()).unwrap_or_default().trim();
    if let Some(number) = written.parse().ok().filter(|number| is_milliseconds(*number)) {
        let suggestion = format!("write `{number}ms` if you mean milliseconds, `{number}s` if you mean seconds");
        return Err(Problem::new(format!("`timeout`: {number} seconds look like milliseconds"))
            .suggest(suggestion)
            .at(timeout.at.clone()));
    }
    match timeout.duration() > TIMEOUT {
        true => Err(Problem::new("`timeout`: must not be longer than 7 days")
            .suggest("write `168h` or less".to_owned())
            .at(timeout.at.clone())),
        false => Ok(()),
    }
}

/// A number without a unit that nobody writes for seconds.
fn is_milliseconds(number: f64) -> bool {
    number > DAY || (number >= 1000.0 && number % 1000.0 == 0.0)
}

fn max_output(most: &Located<u64>) -> Result<(), Problem> {
    let problem = match most.value {
        0 => Problem::new("`max_output`: must be more than 0")
            .suggest("without `pipe_output` nothing reaches the agent".to_owned()),
        most if most > OUTPUT => Problem::new(format!("`max_output`: at most {OUTPUT} bytes are kept for the agent")),
        _ => return Ok(()),
    };
    Err(problem.at(most.at.clone()))
}
