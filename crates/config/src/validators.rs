//! Named commands that an agent may run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_engine::validation::{CommandRule, ValidationRule};

use super::entry::Brief;
use super::error::{ConfigProblem, quoted};
use super::hook_limits::check_timeout;
use super::reader::Located;
use super::span::DurationSetting;
use super::value_checks::is_inside;

/// A command that validation rules may name.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validator {
    /// A shell command. What is judged comes as JSON on standard input.
    pub command: String,
    /// How long it may run. Default: 1 min.
    #[serde(default)]
    pub timeout: Option<Located<DurationSetting>>,
    /// Where it runs, from the project's directory on. Default: there.
    #[serde(default)]
    pub working_directory: Option<Located<String>>,
    /// Exit codes that mean that all is well. Default: only 0.
    #[serde(default)]
    pub success_exit_codes: Vec<u8>,
}

pub type Validators = BTreeMap<String, Located<Brief<Validator>>>;

/// Checks that a rule can refer to each validator, and that each can run.
pub fn check(validators: &Validators, source: &str) -> Result<(), ConfigProblem> {
    validators.iter().try_for_each(|(name, written)| {
        check_one(name, &written.value, source).map_err(|problem| problem.at(written.at.clone()))
    })
}

fn check_one(name: &str, written: &Brief<Validator>, source: &str) -> Result<(), ConfigProblem> {
    let wrong = |wrong: &str, remedy: &str| {
        Err(ConfigProblem::new(format!("the validator {} {wrong}", quoted(name))).suggest(remedy.to_owned()))
    };
    let validator = full(written);
    if name.trim().is_empty() || name.len() > ValidationRule::NAME || name.contains(char::is_control) {
        return wrong("has a name that no rule can give", "name it in a few plain letters");
    }
    if validator.command.trim().is_empty() {
        return wrong("has no command", "write the shell command to run");
    }
    if validator.command.contains('\0') {
        return wrong("has a NUL byte in its command", "write it without");
    }
    validator.timeout.as_ref().map_or(Ok(()), |timeout| check_timeout(timeout, source))?;
    match validator.working_directory.filter(|path| !is_inside(path)) {
        None => Ok(()),
        Some(path) => {
            let remedy = "write a path from the project's directory on: `packages/web`";
            wrong("would work outside the project", remedy).map_err(|problem| problem.at(path.at))
        }
    }
}

fn full(written: &Brief<Validator>) -> Validator {
    match written {
        Brief::Word(command) => Validator { command: command.clone(), ..Validator::default() },
        Brief::Full(validator) => validator.clone(),
    }
}

pub fn rule(written: &Brief<Validator>) -> CommandRule {
    let validator = full(written);
    CommandRule {
        command: validator.command,
        expected_exit_code: None,
        success_exit_codes: validator.success_exit_codes,
        timeout: validator.timeout.map(|timeout| timeout.duration()),
        working_directory: validator.working_directory.map(|path| path.value),
    }
}
