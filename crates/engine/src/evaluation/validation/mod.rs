//! Rules that are looked at when an agent wants its work judged, and what each of them came to.
//!
//! Invariants:
//! - What goes into the log is what was given: a default is never written down, so that it stays a default.
//! - What comes from outside goes through [`ValidationRule::read_all`], which keeps every bound. What comes from the log has
//!   been through it, and is read as it stands, so that a bound can become narrower without an old log becoming unreadable.
//!
//! Not here: how a rule is looked at, which takes files and programs (`tools`).

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;

use regex_lite::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::log::id::TypeName;

mod read;
#[cfg(test)]
mod tests;

pub use read::RuleError;

/// One rule: `{type, name, config}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationRule {
    pub name: String,
    #[serde(flatten)]
    pub kind: RuleKind,
}

/// What a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "config", rename_all = "snake_case")]
pub enum RuleKind {
    Command(CommandRule),
    ContentPattern(PatternRule),
    Coverage(CoverageRule),
    FileExistence(FilesRule),
    Custom(CustomRule),
}

/// A command that has to end well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandRule {
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_exit_code: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success_exit_codes: Vec<u8>,
    /// In milliseconds where it is written.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "milliseconds")]
    pub timeout: Option<Duration>,
    /// Below the project's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

/// A regular expression that has to be found, or must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatternRule {
    pub pattern: String,
    pub target: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_match: Option<bool>,
}

/// Where a pattern is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    AgentOutput,
    TaskNotes,
}

/// How much of the code the tests have to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CoverageRule {
    pub min_coverage: Percent,
    pub format: CoverageFormat,
    /// Below the project's directory.
    pub report_path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageFormat {
    Lcov,
    Json,
    Cobertura,
}

/// Files and directories that have to be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilesRule {
    /// Below the project's directory.
    pub paths: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_must_exist: Option<bool>,
}

/// A validator of the configuration, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomRule {
    pub validator_id: String,
}

/// The validation rules of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredRules {
    pub project: Vec<ValidationRule>,
    /// Types of tasks with a list of their own, perhaps an empty one, instead of the project's.
    pub types: BTreeMap<TypeName, Vec<ValidationRule>>,
}

impl ConfiguredRules {
    /// Returns the rules for tasks of a type.
    pub fn for_type(&self, kind: Option<&TypeName>) -> &[ValidationRule] {
        kind.and_then(|kind| self.types.get(kind)).unwrap_or(&self.project)
    }

    /// Returns every rule, the project's first.
    pub fn all(&self) -> impl Iterator<Item = &ValidationRule> {
        self.project.iter().chain(self.types.values().flatten())
    }
}

/// What a rule came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleResult {
    pub rule_name: String,
    pub passed: bool,
    /// Why, and what to do about it, for the agent.
    pub message: String,
    /// The program that looks at it is missing or could not be started: a person is needed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
}

impl ValidationRule {
    /// How many rules a series of iterations may have.
    pub const MOST: usize = 20;
    pub const NAME: usize = 256;

    /// Whether looking at it starts a program.
    pub fn runs_a_program(&self) -> bool {
        matches!(self.kind, RuleKind::Command(_) | RuleKind::Custom(_))
    }
}

impl RuleKind {
    pub const NAMES: [&str; 5] = ["command", "content_pattern", "coverage", "file_existence", "custom"];
}

impl CommandRule {
    pub const TEXT: usize = 16 * 1024;
    pub const TIMEOUT: Duration = Duration::from_mins(1);
    pub const LONGEST: Duration = Duration::from_mins(10);
    /// How many exit codes may mean success.
    pub const CODES: usize = 256;

    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(Self::TIMEOUT)
    }

    /// The codes that mean success: all that were given, and 0 where none was.
    pub fn successes(&self) -> Vec<u8> {
        let given: Vec<u8> =
            self.expected_exit_code.into_iter().chain(self.success_exit_codes.iter().copied()).collect();
        if given.is_empty() { vec![0] } else { given }
    }
}

impl PatternRule {
    pub const TEXT: usize = 1024;
    /// Bytes of what a pattern is compiled to. The time it takes is at most this times the text that is looked at.
    const COMPILED: usize = 64 * 1024;
    /// Flags that change what matches, and those of JavaScript that change nothing here.
    const FLAGS: &str = "imsxdguv";

    pub fn must_match(&self) -> bool {
        self.must_match.unwrap_or(true)
    }

    /// The pattern with its flags. As in JavaScript, `\w`, `\d`, `\b` and the flag `i` mean the letters and digits of ASCII.
    pub fn regex(&self) -> Result<Regex, regex_lite::Error> {
        let has = |flag| self.flags.as_ref().is_some_and(|flags| flags.contains(flag));
        RegexBuilder::new(&self.pattern)
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .ignore_whitespace(has('x'))
            .size_limit(Self::COMPILED)
            .build()
    }
}

impl FilesRule {
    pub const PATHS: usize = 100;

    pub fn all_must_exist(&self) -> bool {
        self.all_must_exist.unwrap_or(true)
    }
}

/// A share of a hundred. Always a number from 0 to 100, so it equals itself.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Eq for Percent {}

impl Percent {
    pub fn new(percent: f64) -> Option<Self> {
        // Zero has no sign: what is written has to read back the same.
        (0.0..=100.0).contains(&percent).then_some(Self(percent + 0.0))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Percent {
    /// With two digits at most, and never rounded up: 79.999 is not 80.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        let shown = if rounded > self.0 { (self.0 * 100.0).floor() / 100.0 } else { rounded };
        write!(f, "{shown}%")
    }
}

impl Serialize for Percent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a whole number up to 100")]
        match self.0.fract() == 0.0 {
            true => serializer.serialize_u8(self.0 as u8),
            false => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = f64::deserialize(deserializer)?;
        Self::new(percent).ok_or_else(|| serde::de::Error::custom(format!("{percent} is not a number from 0 to 100")))
    }
}

/// A duration as the milliseconds that were given.
mod milliseconds {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde asks for it so")]
    pub fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        time.map(milliseconds).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
