//! Times, durations and leases in words.

use jiff::{Unit, Zoned};
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

/// Returns the last calendar days in the person's own time zone, today included, oldest first, and the beginning of the first one.
pub fn list_last_days(now: Timestamp, count: u16) -> (Timestamp, Vec<String>) {
    let moment = jiff::Timestamp::from_millisecond(now.millis()).unwrap_or_default();
    list_days_until(&moment.to_zoned(environment::time_zone()), count)
}

/// Steps by the calendar: a day of a clock change has 23 or 25 hours.
fn list_days_until(moment: &Zoned, count: u16) -> (Timestamp, Vec<String>) {
    let day = |back: u16| moment.date().saturating_sub(jiff::Span::new().days(i64::from(back)));
    let first = day(count.saturating_sub(1)).to_zoned(moment.time_zone().clone());
    let since = first.map_or(moment.timestamp(), |first| first.timestamp()).as_millisecond();
    let days = (0..count).rev().map(|back| day(back).strftime("%Y-%m-%d").to_string()).collect();
    (Timestamp::from_millis(since), days)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn days_around_clock_change_are_listed_once() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (month, last) in [(3, 31), (10, 28)] {
            let moment = date(2024, month, last).at(0, 30, 0, 0).to_zoned(zone.clone()).unwrap();
            let moment = moment.checked_add(jiff::Span::new().days(1)).unwrap();
            let (since, days) = list_days_until(&moment, 3);
            let first = date(2024, month, last - 1).to_zoned(zone.clone()).unwrap();
            assert_eq!(since.millis(), first.timestamp().as_millisecond());
            let mut once = days.clone();
            once.dedup();
            assert_eq!((once.len(), &days), (3, &once));
        }
    }
}
