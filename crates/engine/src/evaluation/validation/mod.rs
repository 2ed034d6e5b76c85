//! Rules that an evaluation of an agent's work checks, and their results.
//!
//! Invariants:
//! - The log gets what was given: a default is never written down, so that it stays a default.
//! - Input from outside goes through [`ValidationRule::read_rule_list`], which checks every limit. Rules from the log have passed it
//!   before and are read as they are, so that a limit can become narrower without making an old log unreadable.
//!
//! Not here: checking a rule, which needs files and programs (`tools`).

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;

use regex_lite::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::log::id::TypeName;

mod rule_reader;
#[cfg(test)]
mod tests;

pub use rule_reader::ValidationRuleError;

/// One rule: `{type, name, config}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationRule {
    pub name: String,
    #[serde(flatten)]
    pub kind: ValidationRuleKind,
}

/// The kind of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "config", rename_all = "snake_case")]
pub enum ValidationRuleKind {
    Command(CommandRule),
    ContentPattern(PatternRule),
    Coverage(CoverageRule),
    FileExistence(FilesRule),
    Custom(CustomRule),
}

/// A command that has to succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandRule {
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_exit_code: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success_exit_codes: Vec<u8>,
    /// Written in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "milliseconds")]
    pub timeout: Option<Duration>,
    /// Relative to the project's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

/// A regular expression that has to match, or must not match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatternRule {
    pub pattern: String,
    pub target: PatternTarget,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_match: Option<bool>,
}

/// The text that a pattern is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternTarget {
    AgentOutput,
    TaskNotes,
}

/// The required test coverage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CoverageRule {
    pub min_coverage: CoveragePercent,
    pub format: CoverageFormat,
    /// Relative to the project's directory.
    pub report_path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageFormat {
    Lcov,
    Json,
    Cobertura,
}

/// Files and directories that have to exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilesRule {
    /// Relative to the project's directory.
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
    /// Types of tasks with a list of their own, possibly an empty one, instead of the project's.
    pub types: BTreeMap<TypeName, Vec<ValidationRule>>,
}

impl ConfiguredRules {
    /// Returns the rules for tasks of a type.
    pub fn rules_for_type(&self, kind: Option<&TypeName>) -> &[ValidationRule] {
        kind.and_then(|kind| self.types.get(kind)).unwrap_or(&self.project)
    }

    /// Returns every rule, the project's first.
    pub fn all_rules(&self) -> impl Iterator<Item = &ValidationRule> {
        self.project.iter().chain(self.types.values().flatten())
    }
}

/// The result of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleResult {
    pub rule_name: String,
    pub passed: bool,
    /// For the agent: why, and what to do about it.
    pub message: String,
    /// The program that checks the rule is missing or could not be started: a person is needed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
}

impl ValidationRule {
    /// How many rules a series of iterations may have.
    pub const MAX_RULES: usize = 20;
    pub const MAX_NAME_BYTES: usize = 256;

    /// Returns whether checking the rule starts a program.
    pub fn runs_program(&self) -> bool {
        matches!(self.kind, ValidationRuleKind::Command(_) | ValidationRuleKind::Custom(_))
    }
}

impl ValidationRuleKind {
    pub const NAMES: [&str; 5] = ["command", "content_pattern", "coverage", "file_existence", "custom"];
}

impl CommandRule {
    pub const MAX_COMMAND_BYTES: usize = 16 * 1024;
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);
    pub const MAX_TIMEOUT: Duration = Duration::from_mins(10);
    /// How many exit codes may mean success.
    pub const MAX_EXIT_CODES: usize = 256;

    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(Self::DEFAULT_TIMEOUT)
    }

    /// Returns the codes that mean success: all that were given, and 0 by default.
    pub fn success_codes(&self) -> Vec<u8> {
        let given: Vec<u8> =
            self.expected_exit_code.into_iter().chain(self.success_exit_codes.iter().copied()).collect();
        if given.is_empty() { vec![0] } else { given }
    }
}

impl PatternRule {
    pub const MAX_PATTERN_BYTES: usize = 1024;
    /// Bytes of the compiled pattern. The time of a match is at most proportional to this times the length of the text.
    const MAX_COMPILED_BYTES: usize = 64 * 1024;
    /// Flags that change what matches, and those of JavaScript that change nothing here.
    const KNOWN_FLAGS: &str = "imsxdguv";

    pub fn must_match(&self) -> bool {
        self.must_match.unwrap_or(true)
    }

    /// Returns the pattern with its flags. As in JavaScript, `\w`, `\d`, `\b` and the flag `i` mean the letters and digits
    /// of ASCII.
    pub fn build_regex(&self) -> Result<Regex, regex_lite::Error> {
        let has = |flag| self.flags.as_ref().is_some_and(|flags| flags.contains(flag));
        RegexBuilder::new(&self.pattern)
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .ignore_whitespace(has('x'))
            .size_limit(Self::MAX_COMPILED_BYTES)
            .build()
    }
}

impl FilesRule {
    pub const MAX_PATHS: usize = 100;

    pub fn all_must_exist(&self) -> bool {
        self.all_must_exist.unwrap_or(true)
    }
}

/// A percentage. It is always a number from 0 to 100, so it equals itself.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct CoveragePercent(f64);

impl Eq for CoveragePercent {}

impl CoveragePercent {
    pub fn new(percent: f64) -> Option<Self> {
        // Zero has no sign, so that a written value reads back the same.
        (0.0..=100.0).contains(&percent).then_some(Self(percent + 0.0))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for CoveragePercent {
    /// Writes two digits at most, and never rounds up: 79.999 is not 80.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        let shown = if rounded > self.0 { (self.0 * 100.0).floor() / 100.0 } else { rounded };
        write!(f, "{shown}%")
    }
}

impl Serialize for CoveragePercent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a whole number up to 100")]
        match self.0.fract() == 0.0 {
            true => serializer.serialize_u8(self.0 as u8),
            false => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for CoveragePercent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = f64::deserialize(deserializer)?;
        Self::new(percent).ok_or_else(|| serde::de::Error::custom(format!("{percent} is not a number from 0 to 100")))
    }
}

/// Writes a duration in milliseconds.
mod milliseconds {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde's `skip_serializing_if` passes a reference")]
    pub fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        time.map(milliseconds).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
