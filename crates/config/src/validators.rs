//! Commands that an agent may have run by their names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_engine::validation::{CommandRule, ValidationRule};

use super::check::is_inside;
use super::entry::Brief;
use super::error::{ConfigProblem, quoted};
use super::hook_limits::check_timeout;
use super::reader::Located;
use super::span::DurationSetting;
use super::{AgentCommands, Config, ConfiguredEffect};

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

/// Each can be named by a rule, and be run.
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

fn rule(written: &Brief<Validator>) -> CommandRule {
    let validator = full(written);
    CommandRule {
        command: validator.command,
        expected_exit_code: None,
        success_exit_codes: validator.success_exit_codes,
        timeout: validator.timeout.map(|timeout| timeout.duration()),
        working_directory: validator.working_directory.map(|path| path.value),
    }
}

impl Config {
    /// Returns which commands an agent may have run. Without a word about it, those under `validators`, or any if there are none.
    pub fn agent_commands(&self) -> AgentCommands {
        let usual = if self.settings.validators.is_empty() { AgentCommands::Allow } else { AgentCommands::Named };
        self.settings.agent_commands.unwrap_or(usual)
    }

    /// Returns the commands that validation rules may name.
    pub fn validators(&self) -> BTreeMap<String, CommandRule> {
        self.settings.validators.iter().map(|(name, written)| (name.clone(), rule(&written.value))).collect()
    }

    /// Whether an agent may have validators run.
    pub fn runs_validators(&self) -> bool {
        self.settings.agent_commands != Some(AgentCommands::Deny)
    }

    /// What validators would run, for whoever is asked to trust them. Those of a project that runs none are left out.
    pub(super) fn validator_effects(&self) -> impl Iterator<Item = ConfiguredEffect> {
        self.settings.validators.iter().filter(|_| self.runs_validators()).map(|(name, written)| {
            let rule = rule(&written.value);
            let place = rule.working_directory.map(|path| format!(" (in {path})")).unwrap_or_default();
            let line = self.text()[..written.at.start].matches('\n').count() + 1;
            let (what, line) = (format!("{}{place}", rule.command), Some(line));
            ConfiguredEffect { place: "validators".to_owned(), name: name.clone(), what, line }
        })
    }

    /// Whether an agent may have any command run, which whoever is asked for trust has to know.
    pub(super) fn command_effect(&self) -> Option<ConfiguredEffect> {
        let allowed = self.settings.agent_commands == Some(AgentCommands::Allow);
        allowed.then(|| ConfiguredEffect {
            place: "agent_commands".to_owned(),
            name: "allow".to_owned(),
            what: "any command that an agent supplies".to_owned(),
            line: None,
        })
    }
}
