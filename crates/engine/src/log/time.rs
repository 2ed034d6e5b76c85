//! Timestamps from outside, and durations in words. Timestamps are shown and compared with leases; they never order
//! events.

use core::time::Duration;
use std::fmt::{self, Display};
use std::str::FromStr;

use crate::log::id::as_text;

/// A point in time, to the millisecond, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last timestamp whose date the calendar can show in every time zone: 9999-12-30T22:00:00Z.
    const MAX_MILLIS: i64 = 253_402_207_200_000;

    /// Returns the timestamp of a number of milliseconds since 1970, clamped to the years 0 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(-62_167_219_200_000, Self::MAX_MILLIS))
    }

    pub fn millis(self) -> i64 {
        self.0
    }

    /// Returns the time since an earlier timestamp, and zero if that one is later.
    pub fn elapsed_since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.millis().saturating_sub(earlier.millis())).unwrap_or(0))
    }

    pub fn add_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }
}

impl Timestamp {
    /// Formats the timestamp: `2026-01-17T10:00:00.007Z`.
    pub fn format_digits(self) -> [u8; 24] {
        let moment = jiff::Timestamp::from_millisecond(self.0).expect("a kept moment is within the calendar");
        let civil = jiff::tz::Offset::UTC.to_datetime(moment);
        let (year, millis) = (civil.year().unsigned_abs(), civil.subsec_nanosecond().unsigned_abs() / 1_000_000);
        let parts = [civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second()].map(i8::unsigned_abs);
        // Every event and every row contains timestamps: writing digits directly takes a quarter of the time of
        // formatting.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |place: usize, width: usize, mut number: u32| {
            for digit in text[place..place + width].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        };
        put(0, 4, u32::from(year));
        for (place, part) in [5, 8, 11, 14, 17].into_iter().zip(parts) {
            put(place, 2, u32::from(part));
        }
        put(20, 3, millis);
        text
    }
}

impl Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.format_digits()).expect("digits"))
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        Ok(Self::from_millis(text.parse::<jiff::Timestamp>()?.as_millisecond()))
    }
}

as_text!(Timestamp);

/// Formats a duration for people: `45 s`, `1.5 s`, `90 min`, `2 h`.
pub fn duration_in_words(time: Duration) -> String {
    let (seconds, rest) = (time.as_secs(), time.subsec_millis());
    match (seconds, rest) {
        (0, millis) => format!("{millis} ms"),
        (_, 1..) => format!("{} s", time.as_millis() as f64 / 1000.0),
        (seconds, 0) if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        (seconds, 0) if seconds % 60 == 0 => format!("{} min", seconds / 60),
        (seconds, 0) => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_round_trips_to_the_millisecond() {
        let moment = Timestamp::from_millis(1_768_644_000_007);
        assert_eq!(moment.to_string(), "2026-01-17T10:00:00.007Z");
        assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
        for edge in [i64::MIN, i64::MAX, 0] {
            let moment = Timestamp::from_millis(edge);
            assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
        }
    }

    #[test]
    fn duration_is_shown_in_its_largest_whole_unit() {
        for (millis, expected) in [
            (1, "1 ms"),
            (500, "500 ms"),
            (1500, "1.5 s"),
            (30_000, "30 s"),
            (90_000, "90 s"),
            (60_000, "1 min"),
            (600_000, "10 min"),
            (7_200_000, "2 h"),
        ] {
            assert_eq!(in_words(Duration::from_millis(millis)), expected);
        }
    }
}
