//! Reads rules from outside: every error names its place, and what to write instead.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_expr::read_json;

use super::{CommandRule, FilesRule, PatternRule, ValidationRule, ValidationRuleKind};

/// Bytes of a path.
const MAX_PATH_BYTES: usize = 4 * 1024;

/// The error of a rule that is refused: its place, its cause, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is wrong: {cause}")]
pub struct ValidationRuleError {
    /// `validationRules[2].config.timeout`
    pub path: String,
    pub cause: String,
    pub remedy: String,
}

/// A rule whose `config` has not been read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawValidationRule {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    config: Option<Value>,
}

impl ValidationRule {
    /// Reads the rules of a list at `path`. Their paths are taken relative to the project, and kept so.
    pub fn read_rule_list(path: &str, given: &Value, project: &Path) -> Result<Vec<Self>, ValidationRuleError> {
        let list = RuleLocation { path: path.to_owned(), project };
        let items = match given {
            Value::Null => return Ok(Vec::new()),
            Value::Array(items) => items,
            _ => return Err(list.rule_error("", "it is not a list", "give a list of rules, `[{type, name, config}]`")),
        };
        if items.len() > Self::MAX_RULES {
            let cause = format!("it has {} rules; at most {} are allowed", items.len(), Self::MAX_RULES);
            return Err(list.rule_error("", cause, "join some of them in one `command` rule that runs a script"));
        }
        let mut names = BTreeSet::new();
        let mut rules = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = RuleLocation { path: format!("{path}[{index}]"), project };
            let rule = place.read_rule(item)?;
            if !names.insert(rule.name.clone()) {
                return Err(place.rule_error(
                    "name",
                    format!("another rule is called {:?} too", rule.name),
                    "give each rule a name of its own: results go by it",
                ));
            }
            rules.push(rule);
        }
        Ok(rules)
    }
}

/// The place of a rule in the input.
struct RuleLocation<'a> {
    path: String,
    project: &'a Path,
}

impl RuleLocation<'_> {
    fn rule_error(&self, below: &str, cause: impl Into<String>, remedy: impl Into<String>) -> ValidationRuleError {
        let dot = if below.is_empty() { "" } else { "." };
        ValidationRuleError { path: format!("{}{dot}{below}", self.path), cause: cause.into(), remedy: remedy.into() }
    }

    fn read_object<T: DeserializeOwned>(
        &self,
        below: &str,
        given: &Value,
        remedy: &str,
    ) -> Result<T, ValidationRuleError> {
        let given = match given {
            Value::Object(fields) => fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            Value::Array(_) => return Err(self.rule_error(below, "it is a list, and has to be an object", remedy)),
            other => other.clone(),
        };
        read_json(given).map_err(|error| {
            let parts: Vec<&str> = [below, &error.path].into_iter().filter(|part| !part.is_empty()).collect();
            self.rule_error(&parts.join("."), error.cause, remedy)
        })
    }

    fn read_rule(&self, given: &Value) -> Result<ValidationRule, ValidationRuleError> {
        let given: RawValidationRule = self.read_object("", given, "give `{type, name, config}`")?;
        self.check_text_field("name", &given.name, ValidationRule::MAX_NAME_BYTES)?;
        if given.name.contains(char::is_control) {
            return Err(self.rule_error("name", "it has a control character in it", "give the name in one plain line"));
        }
        let mut kind = self.read_rule_kind(&given.kind, &given.config.unwrap_or_else(|| json!({})))?;
        self.check_rule(&mut kind)?;
        Ok(ValidationRule { name: given.name, kind })
    }

    fn read_rule_kind(&self, name: &str, config: &Value) -> Result<ValidationRuleKind, ValidationRuleError> {
        const CONFIG_FIELD: &str = "config";
        Ok(match name {
            "command" => ValidationRuleKind::Command(self.read_object(
                CONFIG_FIELD,
                config,
                "give `{command, expectedExitCode, successExitCodes, timeout, workingDirectory}`: codes from 0 to 255, the \
                 timeout in milliseconds",
            )?),
            "content_pattern" => {
                let remedy = "give `{pattern, target, flags, mustMatch}`, with the target `agent_output` or `task_notes`";
                ValidationRuleKind::ContentPattern(self.read_object(CONFIG_FIELD, config, remedy)?)
            }
            "coverage" => {
                let remedy = "give `{minCoverage, format, reportPath}`: a percentage, `lcov`, `json` or `cobertura`, and a file";
                ValidationRuleKind::Coverage(self.read_object(CONFIG_FIELD, config, remedy)?)
            }
            "file_existence" => ValidationRuleKind::FileExistence(self.read_object(CONFIG_FIELD, config, "give `{paths, allMustExist}`")?),
            "custom" => ValidationRuleKind::Custom(self.read_object(
                CONFIG_FIELD,
                config,
                "give `{validatorId}`: a name under `validators:` in the project's configuration",
            )?),
            _ => {
                let remedy = format!("it is one of {}", ValidationRuleKind::NAMES.join(", "));
                return Err(self.rule_error("type", format!("no rule has the type `{name}`"), remedy));
            }
        })
    }

    /// Checks the limits of a rule, and makes its paths relative to the project.
    fn check_rule(&self, kind: &mut ValidationRuleKind) -> Result<(), ValidationRuleError> {
        match kind {
            ValidationRuleKind::Command(rule) => {
                self.check_text_field("config.command", &rule.command, CommandRule::MAX_COMMAND_BYTES)?;
                if rule.timeout.is_some_and(|time| time.is_zero() || time > CommandRule::MAX_TIMEOUT) {
                    let most = CommandRule::MAX_TIMEOUT.as_millis();
                    let remedy = format!("give milliseconds from 1 to {most}; 60000 is the default");
                    return Err(self.rule_error("config.timeout", "it is out of bounds", remedy));
                }
                self.check_entry_count(
                    "config.successExitCodes",
                    rule.success_exit_codes.len(),
                    0,
                    CommandRule::MAX_EXIT_CODES,
                )?;
                if let Some(directory) = &mut rule.working_directory {
                    *directory = self.check_project_path("config.workingDirectory", directory)?;
                }
            }
            ValidationRuleKind::ContentPattern(rule) => {
                self.check_text_field("config.pattern", &rule.pattern, PatternRule::MAX_PATTERN_BYTES)?;
                let flags = rule.flags.as_deref().unwrap_or_default();
                if flags.len() > 8 || !flags.chars().all(|flag| PatternRule::KNOWN_FLAGS.contains(flag)) {
                    let remedy = "give some of `i` (any case), `m` (`^` and `$` at every line), `s` (`.` is any character), \
                                  `x` (spaces and `#` comments do not count); `d`, `g`, `u` and `v` change nothing";
                    return Err(self.rule_error(
                        "config.flags",
                        "it names a flag that is not known, or one twice",
                        remedy,
                    ));
                }
                rule.build_regex().map_err(|error| {
                    let remedy = "write it without look-around and back references, with few repetitions, and escape \
                                  literal characters, such as `\\(`; in JSON a backslash is written twice";
                    self.rule_error(
                        "config.pattern",
                        format!("this regular expression cannot be used: {error}"),
                        remedy,
                    )
                })?;
            }
            ValidationRuleKind::Coverage(rule) => {
                rule.report_path = self.check_project_path("config.reportPath", &rule.report_path)?
            }
            ValidationRuleKind::FileExistence(rule) => {
                self.check_entry_count("config.paths", rule.paths.len(), 1, FilesRule::MAX_PATHS)?;
                for (at, path) in rule.paths.iter_mut().enumerate() {
                    *path = self.check_project_path(&format!("config.paths[{at}]"), path)?;
                }
            }
            ValidationRuleKind::Custom(rule) => {
                self.check_text_field("config.validatorId", &rule.validator_id, ValidationRule::MAX_NAME_BYTES)?
            }
        }
        Ok(())
    }

    fn check_entry_count(
        &self,
        below: &str,
        found: usize,
        least: usize,
        most: usize,
    ) -> Result<(), ValidationRuleError> {
        match (least..=most).contains(&found) {
            true => Ok(()),
            false => Err(self.rule_error(below, format!("it has {found} entries"), format!("give {least} to {most}"))),
        }
    }

    /// Checks that a text is not blank, not too long, and fit to be passed to a program.
    fn check_text_field(&self, below: &str, text: &str, most: usize) -> Result<(), ValidationRuleError> {
        match text {
            _ if text.trim().is_empty() => {
                Err(self.rule_error(below, "it is empty", "give a text, or leave the rule out"))
            }
            _ if text.len() > most => {
                Err(self.rule_error(below, format!("it has {} bytes", text.len()), format!("give at most {most}")))
            }
            _ if text.contains('\0') => Err(self.rule_error(below, "it has a NUL byte in it", "write it without")),
            _ => Ok(()),
        }
    }

    /// Returns a path below the project, relative to it.
    fn check_project_path(&self, below: &str, given: &str) -> Result<String, ValidationRuleError> {
        self.check_text_field(below, given, MAX_PATH_BYTES)?;
        let path = Path::new(given);
        let inside = if path.is_absolute() { path.strip_prefix(self.project).ok() } else { Some(path) };
        let has_parent = path.components().any(|part| part == Component::ParentDir);
        match inside.filter(|_| !has_parent).and_then(Path::to_str) {
            None => Err(self.rule_error(
                below,
                "it leads out of the project",
                "give a path inside the project, relative to its directory and without `..`",
            )),
            Some("") => Ok(".".to_owned()),
            Some(inside) => Ok(inside.to_owned()),
        }
    }
}
