//! When a rate limit resets, as agents report it: a delay, a moment, or a time of day.
//!
//! Invariant: no moment lies before now, or more than [`MAX_RESET_WAIT`] after it.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use regex_lite::Regex;

/// The longest wait. A longer one is misread, or concerns the user.
pub const MAX_RESET_WAIT: Duration = Duration::from_hours(7 * 24);

/// A reset time, as it was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateLimitReset {
    After(Duration),
    At(Timestamp),
    /// The next time that a clock shows this time, on this day and in this zone if they are given.
    Clock {
        time: Time,
        /// Month and day.
        day: Option<(i8, i8)>,
        zone: Option<String>,
    },
}

struct ResetPatterns {
    epoch: Regex,
    span: Regex,
    part: Regex,
    header: Regex,
    moment: Regex,
    clock: Regex,
}

static PATTERNS: LazyLock<ResetPatterns> = LazyLock::new(|| {
    let pattern = |text: &str| Regex::new(&format!("(?i){text}")).expect("a pattern");
    const UNIT: &str = r"(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|d|h|m|s)";
    ResetPatterns {
        epoch: pattern(r"\|(\d{10})\b"),
        span: pattern(&format!(
            r"\b(?:again|retry|retrying|resets?|wait)(?: after| in)?:? +((?:\d+(?:\.\d+)? *{UNIT}[ ,]*(?:and +)?)+)"
        )),
        part: pattern(&format!(r"(\d+(?:\.\d+)?) *({UNIT})")),
        header: pattern(r#"\bretry[-_ ]?after["']?\s*[:=]\s*["']?(\d+(?:\.\d+)?)\s*(s\b|["',}\s]|$)"#),
        moment: pattern(
            r"\b(?:again|resets?|until|reset[-_a-z]*)\b\D{0,20}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d))",
        ),
        clock: pattern(
            r"\b(?:again|resets?)(?: at| on)? +(?:(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (\d{1,2})(?:st|nd|rd|th)?,?(?: \d{4})?,?(?: at)? +)?(\d{1,2})(?::(\d\d))? *(am|pm)?\b(?: *\(?([a-z_]+/[a-z_/]+|utc)\)?)?",
        ),
    }
});

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

impl RateLimitReset {
    /// Returns the moment of the reset in milliseconds since 1970.
    pub fn to_epoch_millis(&self, now: i64) -> i64 {
        Timestamp::from_millisecond(now).map_or(now, |now| self.resolve_moment(now).as_millisecond())
    }

    /// Returns the reset time that a text reports.
    pub fn parse_reset_time(text: &str) -> Option<Self> {
        let found = |pattern: &Regex| pattern.captures(text);
        if let Some(found) = found(&PATTERNS.epoch) {
            return Timestamp::from_second(found[1].parse().ok()?).ok().map(Self::At);
        }
        if let Some(found) = found(&PATTERNS.moment) {
            let moment = found[1].replace(' ', "T");
            return moment.parse().ok().map(Self::At);
        }
        if let Some(found) = found(&PATTERNS.header) {
            return duration_from_seconds(found[1].parse().ok()?).map(Self::After);
        }
        if let Some(found) = found(&PATTERNS.span) {
            return parse_time_span(&found[1]).map(Self::After);
        }
        parse_clock_time(&found(&PATTERNS.clock)?)
    }

    /// Returns the moment of the reset, at or after now.
    pub fn resolve_moment(&self, now: Timestamp) -> Timestamp {
        let last =
            now.saturating_add(SignedDuration::try_from(MAX_RESET_WAIT).unwrap_or_default()).unwrap_or(Timestamp::MAX);
        let said = match self {
            Self::After(wait) => {
                let wait = SignedDuration::try_from((*wait).min(MAX_RESET_WAIT)).unwrap_or_default();
                now.checked_add(wait).ok()
            }
            Self::At(moment) => Some(*moment),
            Self::Clock { time, day, zone } => find_next_clock_moment(*time, *day, zone.as_deref(), now),
        };
        said.unwrap_or(now).clamp(now, last)
    }
}

fn duration_from_seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// Parses a time span such as `3 hours 12 minutes`, `18h31m10s`, `34.07s`.
fn parse_time_span(text: &str) -> Option<Duration> {
    PATTERNS.part.captures_iter(text).try_fold(Duration::ZERO, |sum, part| {
        let unit = part[2].to_lowercase();
        let length = match unit.as_str() {
            "ms" => 0.001,
            unit if unit.starts_with('d') => 86_400.0,
            unit if unit.starts_with('h') => 3600.0,
            unit if unit.starts_with('m') => 60.0,
            _ => 1.0,
        };
        sum.checked_add(duration_from_seconds(part[1].parse::<f64>().ok()? * length)?)
    })
}

fn parse_clock_time(found: &regex_lite::Captures<'_>) -> Option<RateLimitReset> {
    let text = |group: usize| found.get(group).map(|part| part.as_str().to_lowercase());
    let (hour, minute) = (text(3)?.parse::<i8>().ok()?, text(4).map_or(Some(0), |minute| minute.parse().ok())?);
    let half = text(5);
    // A bare number is no time of day.
    if half.is_none() && found.get(4).is_none() {
        return None;
    }
    let hour = match (half.as_deref(), hour) {
        (Some("am"), 12) => 0,
        (Some("pm"), 1..=11) => hour + 12,
        (Some(_), 0 | 13..) => return None,
        (_, hour) => hour,
    };
    let month = text(1).and_then(|name| MONTHS.iter().position(|month| *month == name));
    let day = month.zip(text(2)).and_then(|(month, day)| Some((i8::try_from(month).ok()? + 1, day.parse().ok()?)));
    let zone = found.get(6).map(|zone| zone.as_str().to_owned());
    Some(RateLimitReset::Clock { time: Time::new(hour, minute, 0, 0).ok()?, day, zone })
}

/// Returns the next moment at which a clock shows this time.
fn find_next_clock_moment(time: Time, day: Option<(i8, i8)>, zone: Option<&str>, now: Timestamp) -> Option<Timestamp> {
    let zone = zone.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(TimeZone::system);
    let today = zone.to_datetime(now).date();
    let moment = |date: Date| zone.to_timestamp(date.to_datetime(time)).ok().filter(|moment| *moment > now);
    match day {
        None => moment(today).or_else(|| moment(today.tomorrow().ok()?)),
        Some((month, day)) => {
            let of_year = |year: i16| Date::new(year, month, day).ok().and_then(moment);
            of_year(today.year()).or_else(|| of_year(today.year().checked_add(1)?))
        }
    }
}
