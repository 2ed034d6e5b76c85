//! Durations in settings: a number of seconds, or `500ms`, `30s`, `2m`, `4h`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// The maximum duration. A larger number is a mistake.
const MAX_DURATION: Duration = Duration::from_hours(365 * 24);

/// A duration longer than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationSetting(Duration);

impl DurationSetting {
    pub fn duration(self) -> Duration {
        self.0
    }

    /// Wraps a duration that is known to be valid.
    pub(super) fn from_duration(time: Duration) -> Self {
        Self(time)
    }

    fn new(seconds: f64) -> Result<Self, &'static str> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if duration.is_zero() => Err("must be longer than 0"),
            Ok(duration) if duration > MAX_DURATION => Err("must not be longer than a year"),
            Ok(duration) => Ok(Self(duration)),
            Err(_) if seconds < 0.0 => Err("must be longer than 0"),
            Err(_) => Err("must not be longer than a year"),
        }
    }

    fn parse(text: &str) -> Option<Result<Self, &'static str>> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')?;
        let (number, unit) = text.split_at(digits);
        let seconds = match unit.trim_start() {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        number.parse::<f64>().ok().map(|number| Self::new(number * seconds))
    }
}

impl FromStr for DurationSetting {
    type Err = String;

    /// Parses a command-line argument, where a bare number is a number of seconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let bare = || text.trim().parse().ok().map(Self::new);
        match Self::parse(text).or_else(bare) {
            Some(span) => span.map_err(str::to_owned),
            None => Err("expected a length of time such as `30s`, `2m`, `4h`".to_owned()),
        }
    }
}

impl Serialize for DurationSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.duration().as_secs_f64())
    }
}

impl<'de> Deserialize<'de> for DurationSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = DurationSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`")
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<DurationSetting, E> {
        DurationSetting::new(seconds).map_err(E::custom)
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers that lose precision are refused as too long")]
    fn visit_u64<E: Error>(self, seconds: u64) -> Result<DurationSetting, E> {
        self.visit_f64(seconds as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "negative numbers are refused anyway")]
    fn visit_i64<E: Error>(self, seconds: i64) -> Result<DurationSetting, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DurationSetting, E> {
        match DurationSetting::parse(text) {
            Some(span) => span.map_err(E::custom),
            None => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

impl JsonSchema for DurationSetting {
    fn inline_schema() -> bool {
        false
    }

    fn schema_name() -> Cow<'static, str> {
        "DurationSetting".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: a number of seconds, or a text such as `500ms`, `30s`, `2m`, `4h`.",
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^\s*[0-9.]+\s*(ms|s|m|h)$"}
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> Result<DurationSetting, String> {
        let node = super::super::yaml::parse_yaml(yaml).unwrap();
        super::super::reader::deserialize_node(&node, yaml).map_err(|problem| problem.message)
    }

    #[test]
    fn usual_spellings_are_read() {
        let check =
            |yaml: &str, millis| assert_eq!(read(yaml).unwrap().duration(), Duration::from_millis(millis), "{yaml}");
        check("30", 30_000);
        check("0.5", 500);
        check("500ms", 500);
        check("30s", 30_000);
        check("\"2 m\"", 120_000);
        check("4h", 4 * 3_600_000);
    }

    #[test]
    fn other_spellings_are_refused() {
        let check = |yaml: &str, message: &str| assert!(read(yaml).unwrap_err().contains(message), "{:?}", read(yaml));
        check("0", "longer than 0");
        check("-3", "longer than 0");
        check("0ms", "longer than 0");
        check("-1s", "longer than 0");
        check("1e300", "a year");
        check("9223372036854775807", "a year");
        check("soon", "found the text `soon`");
        check("5 parsecs", "expected a number of seconds");
        check("\"30\"", "expected a number of seconds");
        check("[1]", "found a list");
        check("true", "found boolean `true`");
    }
}
