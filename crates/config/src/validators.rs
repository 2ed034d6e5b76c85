//! Named commands that an agent may run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_engine::validation::{CommandRule, ValidationRule};

use super::duration_setting::DurationSetting;
use super::error::{ConfigProblem, quote_text};
use super::hook_limits::check_timeout;
use super::hook_settings::WordOrMap;
use super::reader::LocatedValue;
use super::value_checks::is_inside_directory;

/// A command that validation rules may name.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidatorSettings {
    /// A shell command. The agent context comes as JSON on standard input.
    pub command: String,
    /// How long it may run. Default: 1 min.
    #[serde(default)]
    pub timeout: Option<LocatedValue<DurationSetting>>,
    /// Its directory, below the project's. Default: the project's.
    #[serde(default)]
    pub working_directory: Option<LocatedValue<String>>,
    /// Exit codes that pass. Default: only 0.
    #[serde(default)]
    pub success_exit_codes: Vec<u8>,
}

pub type ValidatorMap = BTreeMap<String, LocatedValue<WordOrMap<ValidatorSettings>>>;

/// Checks that a rule can refer to each validator, and that each can run.
pub fn check_validators(validators: &ValidatorMap, source: &str) -> Result<(), ConfigProblem> {
    validators.iter().try_for_each(|(name, written)| {
        check_validator(name, &written.value, source).map_err(|problem| problem.with_range(written.at.clone()))
    })
}

fn check_validator(name: &str, written: &WordOrMap<ValidatorSettings>, source: &str) -> Result<(), ConfigProblem> {
    let wrong = |wrong: &str, remedy: &str| {
        Err(ConfigProblem::new(format!("the validator {} {wrong}", quote_text(name)))
            .with_suggestion(remedy.to_owned()))
    };
    let validator = full_settings(written);
    if name.trim().is_empty() || name.len() > ValidationRule::MAX_NAME_BYTES || name.contains(char::is_control) {
        return wrong("has a name that no rule can give", "name it in a few plain letters");
    }
    if validator.command.trim().is_empty() {
        return wrong("has no command", "write the shell command to run");
    }
    if validator.command.contains('\0') {
        return wrong("has a NUL byte in its command", "write it without");
    }
    validator.timeout.as_ref().map_or(Ok(()), |timeout| check_timeout(timeout, source))?;
    match validator.working_directory.filter(|path| !is_inside_directory(path)) {
        None => Ok(()),
        Some(path) => {
            let remedy = "write a path relative to the project's directory: `packages/web`";
            wrong("would work outside the project", remedy).map_err(|problem| problem.with_range(path.at))
        }
    }
}

fn full_settings(written: &WordOrMap<ValidatorSettings>) -> ValidatorSettings {
    match written {
        WordOrMap::Word(command) => ValidatorSettings { command: command.clone(), ..ValidatorSettings::default() },
        WordOrMap::Full(validator) => validator.clone(),
    }
}

pub fn command_rule(written: &WordOrMap<ValidatorSettings>) -> CommandRule {
    let validator = full_settings(written);
    CommandRule {
        command: validator.command,
        expected_exit_code: None,
        success_exit_codes: validator.success_exit_codes,
        timeout: validator.timeout.map(|timeout| timeout.duration()),
        working_directory: validator.working_directory.map(|path| path.value),
    }
}
