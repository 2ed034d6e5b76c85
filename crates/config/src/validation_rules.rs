//! Validation rules of the configuration, for the project and for task types.
//!
//! Not here: the format of a rule (`engine`), its evaluation (`tools`).

use std::path::Path;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use windlass_engine::validation::{ValidationRule, ValidationRuleError, ValidationRuleKind};

use super::error::ConfigProblem;
use super::reader::LocatedValue;
use super::settings::Settings;
use super::validators::ValidatorMap;

/// The rules as YAML: a list of `{type, name, config}`.
pub type RuleList = Vec<LocatedValue<Value>>;

const VALIDATION_KEY: &str = "validation";
/// No absolute path lies below this one, so every path of a rule must be relative.
const NO_PROJECT: &str = "\0";

/// Checks that every rule is valid and refers only to existing validators.
pub fn check_validation_rules(settings: &Settings) -> Result<(), ConfigProblem> {
    rule_lists(settings).try_for_each(|list| {
        let rules = read_rules(list).map_err(|error| locate_rule_error(list, &error))?;
        rules.iter().zip(list).try_for_each(|(rule, written)| {
            check_rule_validator(rule, &settings.validators).map_err(|problem| problem.with_range(written.at.clone()))
        })
    })
}

fn rule_lists(settings: &Settings) -> impl Iterator<Item = &RuleList> {
    let types = settings.task_types.values().filter_map(|task_type| task_type.validation.as_ref());
    settings.validation.iter().chain(types)
}

pub fn read_rules(list: &RuleList) -> Result<Vec<ValidationRule>, ValidationRuleError> {
    let items = Value::Array(list.iter().map(|rule| rule.value.clone()).collect());
    ValidationRule::read_rule_list(VALIDATION_KEY, &items, Path::new(NO_PROJECT))
}

fn locate_rule_error(list: &RuleList, error: &ValidationRuleError) -> ConfigProblem {
    // The path `validation[2].config.timeout` belongs to the third rule.
    let index = error.path.split(['[', ']']).nth(1).and_then(|index| index.parse::<usize>().ok());
    let problem = ConfigProblem::new(error.to_string()).with_suggestion(error.remedy.clone());
    match index.and_then(|index| list.get(index)).or(list.first()) {
        Some(written) => problem.with_range(written.at.clone()),
        None => problem,
    }
}

fn check_rule_validator(rule: &ValidationRule, validators: &ValidatorMap) -> Result<(), ConfigProblem> {
    let ValidationRuleKind::Custom(custom) = &rule.kind else { return Ok(()) };
    match validators.contains_key(&custom.validator_id) {
        true => Ok(()),
        false => {
            let known: Vec<&str> = validators.keys().map(String::as_str).collect();
            let problem = ConfigProblem::unknown_name("validator", &custom.validator_id, &known);
            Err(if known.is_empty() {
                problem.with_suggestion("write it under `validators`".to_owned())
            } else {
                problem
            })
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
                "type": {"enum": ValidationRuleKind::NAMES},
                "name": {"type": "string"},
                "config": {"type": "object"},
            },
            "required": ["type", "name"],
            "additionalProperties": false,
        },
    })
}
