//! Validation rules of the configuration, for the project and for task types.
//!
//! Not here: the format of a rule (`engine`), its evaluation (`tools`).

use std::path::Path;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use windlass_engine::validation::{RuleError, RuleKind, ValidationRule};

use super::error::ConfigProblem;
use super::file::Settings;
use super::reader::Located;
use super::validators::Validators;

/// The rules as YAML: a list of `{type, name, config}`.
pub type RuleList = Vec<Located<Value>>;

const KEY: &str = "validation";
/// No absolute path lies below this one, so every path of a rule must be relative.
const NO_PROJECT: &str = "\0";

/// Checks that every rule is valid and refers only to existing validators.
pub fn check(settings: &Settings) -> Result<(), ConfigProblem> {
    lists(settings).try_for_each(|list| {
        let rules = read(list).map_err(|error| problem(list, &error))?;
        rules.iter().zip(list).try_for_each(|(rule, written)| {
            check_validator(rule, &settings.validators).map_err(|problem| problem.at(written.at.clone()))
        })
    })
}

fn lists(settings: &Settings) -> impl Iterator<Item = &RuleList> {
    let types = settings.task_types.values().filter_map(|task_type| task_type.validation.as_ref());
    settings.validation.iter().chain(types)
}

pub fn read(list: &RuleList) -> Result<Vec<ValidationRule>, RuleError> {
    let items = Value::Array(list.iter().map(|rule| rule.value.clone()).collect());
    ValidationRule::read_all(KEY, &items, Path::new(NO_PROJECT))
}

fn problem(list: &RuleList, error: &RuleError) -> ConfigProblem {
    // The path `validation[2].config.timeout` belongs to the third rule.
    let index = error.path.split(['[', ']']).nth(1).and_then(|index| index.parse::<usize>().ok());
    let problem = ConfigProblem::new(error.to_string()).suggest(error.remedy.clone());
    match index.and_then(|index| list.get(index)).or(list.first()) {
        Some(written) => problem.at(written.at.clone()),
        None => problem,
    }
}

fn check_validator(rule: &ValidationRule, validators: &Validators) -> Result<(), ConfigProblem> {
    let RuleKind::Custom(custom) = &rule.kind else { return Ok(()) };
    match validators.contains_key(&custom.validator_id) {
        true => Ok(()),
        false => {
            let known: Vec<&str> = validators.keys().map(String::as_str).collect();
            let problem = ConfigProblem::unknown("validator", &custom.validator_id, &known);
            Err(if known.is_empty() { problem.suggest("write it under `validators`".to_owned()) } else { problem })
        }
    }
}

/// Describes a list of rules for the schema.
pub fn rule_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {
                "type": {"enum": RuleKind::NAMES},
                "name": {"type": "string"},
                "config": {"type": "object"},
            },
            "required": ["type", "name"],
            "additionalProperties": false,
        },
    })
}
