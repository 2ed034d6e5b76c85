//! Moments, as the outside tells them. They are shown and compared with leases; they never order events.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::id::as_text;

/// A moment, to the millisecond, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last moment of which the calendar can say what day it is in every time zone: 9999-12-30T22:00:00Z.
    const LAST: i64 = 253_402_207_200_000;

    /// A moment given in milliseconds since 1970, kept within the years 0 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(-62_167_219_200_000, Self::LAST))
    }

    pub fn millis(self) -> i64 {
        self.0
    }

    pub fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }
}

impl Timestamp {
    /// The moment as it is written: `2026-01-17T10:00:00.007Z`.
    pub fn digits(self) -> [u8; 24] {
        let moment = jiff::Timestamp::from_millisecond(self.0).expect("a kept moment is within the calendar");
        let civil = jiff::tz::Offset::UTC.to_datetime(moment);
        let (year, millis) = (civil.year().unsigned_abs(), civil.subsec_nanosecond().unsigned_abs() / 1_000_000);
        let parts = [civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second()].map(i8::unsigned_abs);
        // Every event and every row is written with its moments: digits put in place cost a quarter of formatting them.
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
        f.write_str(str::from_utf8(&self.digits()).expect("digits"))
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        Ok(Self::from_millis(text.parse::<jiff::Timestamp>()?.as_millisecond()))
    }
}

as_text!(Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_to_the_millisecond() {
        let moment = Timestamp::from_millis(1_768_644_000_007);
        assert_eq!(moment.to_string(), "2026-01-17T10:00:00.007Z");
        assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
        for edge in [i64::MIN, i64::MAX, 0] {
            let moment = Timestamp::from_millis(edge);
            assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
        }
    }
}
