//! Times, durations and leases in words.

use jiff::Unit;
use windlass_engine::{Lease, Timestamp};

use crate::environment;

/// Returns a time in the person's own time zone.
pub fn format_local_time(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
    moment.to_zoned(environment::time_zone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns the time between two time stamps, such as `5 min`.
pub fn format_time_between(from: Timestamp, to: Timestamp) -> String {
    let seconds = jiff::Span::new().milliseconds(to.millis().saturating_sub(from.millis()).max(0)).total(Unit::Second);
    match seconds.unwrap_or_default() {
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 3600.0 => format!("{:.0} min", s / 60.0),
        s if s < 86400.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}

/// Returns the holder of a task, and for how long it holds it.
pub fn describe_lease_holder(lease: &Lease, now: Timestamp) -> String {
    let left = match lease.until {
        None => String::new(),
        Some(until) if until > now => format!(", for {} more", format_time_between(now, until)),
        Some(until) => format!(", ran out {} ago", format_time_between(until, now)),
    };
    format!("{} (epoch {}){left}", lease.holder_name(), lease.epoch)
}

/// Returns a duration, such as `1.5 s`.
pub fn format_millis(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min", millis / 60_000),
        _ => format!("{} h", millis / 3_600_000),
    }
}

/// Returns the beginning of the day of a time, in the person's own time zone.
pub fn start_of_day(at: Timestamp) -> Timestamp {
    let moment = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default().to_zoned(environment::time_zone());
    let start = moment.start_of_day().map_or(at.millis(), |start| start.timestamp().as_millisecond());
    Timestamp::from_millis(start)
}

/// Returns the day of a time in the person's own time zone, such as `2026-03-01`.
pub fn format_local_day(at: Timestamp) -> String {
    format_local_time(at)[..10].to_owned()
}
