//! Named rules for common stop hooks.
//!
//! | template | decides |
//! | --- | --- |
//! | `tdd` | complete when the rule `tests_pass` passes |
//! | `security-remediation` | complete when `vulns_fixed` and `sast_clean` pass; a person from iteration 10 on |
//! | `checkpoint-every` | always continue, with a checkpoint at every fifth iteration |

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_expr::read_json;

use super::rules::RuleSource;
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::evaluation::decision_rule::RuleAction;

/// A named template, with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "template", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum RuleTemplate {
    Tdd {
        /// The validation rule that runs the tests.
        #[serde(default = "default_tdd_rule")]
        rule: String,
    },
    SecurityRemediation {
        /// The validation rules that have to pass.
        #[serde(default = "default_security_rules")]
        rules: Vec<String>,
        #[serde(default = "default_max_iterations")]
        max_iterations: u32,
    },
    CheckpointEvery {
        #[serde(default = "default_checkpoint_interval")]
        every: u32,
    },
}

fn default_tdd_rule() -> String {
    "tests_pass".to_owned()
}

fn default_security_rules() -> Vec<String> {
    vec!["vulns_fixed".to_owned(), "sast_clean".to_owned()]
}

fn default_max_iterations() -> u32 {
    10
}

fn default_checkpoint_interval() -> u32 {
    5
}

const TEMPLATE_NAMES: [&str; 3] = ["tdd", "security-remediation", "checkpoint-every"];

impl RuleTemplate {
    pub fn joined_names() -> String {
        TEMPLATE_NAMES.join(", ")
    }

    /// Reads a name, or an object that has it as `template` beside its values.
    pub fn parse_template(value: &Value) -> Result<Self, Refusal> {
        let object = match value {
            Value::String(name) => json!({"template": name}),
            object => object.clone(),
        };
        if object.get("template").is_none() {
            let forms = format!("need an `action` each, in a list, or a `template`: {}", Self::joined_names());
            return Err(Refusal::invalid_input("rules", forms));
        }
        let read: Self = read_json(&object)
            .map_err(|error| Refusal::invalid_input("rules", format!("name no template that can be used: {error}")))?;
        read.check_values().map(|()| read)
    }

    fn check_values(&self) -> Result<(), Refusal> {
        let names = |names: &[String]| {
            let is_plain = |name: &String| {
                !name.is_empty()
                    && name.len() <= EngineLimits::LABEL_BYTES
                    && !name.contains(['\'', '\\'])
                    && !name.contains(char::is_control)
            };
            match (names.len(), names.iter().all(is_plain)) {
                (1..=20, true) => Ok(()),
                (1..=20, false) => Err(Refusal::invalid_input(
                    "rules",
                    "name a validation rule by a short name without quotes and backslashes",
                )),
                _ => Err(Refusal::invalid_input("rules", "need 1 to 20 validation rules")),
            }
        };
        match self {
            Self::Tdd { rule } => names(std::slice::from_ref(rule)),
            Self::SecurityRemediation { max_iterations: 0, .. } => {
                Err(Refusal::invalid_input("rules", "need maxIterations of at least 1"))
            }
            Self::SecurityRemediation { rules, .. } => names(rules),
            Self::CheckpointEvery { every: 0 } => Err(Refusal::invalid_input("rules", "need `every` of at least 1")),
            Self::CheckpointEvery { .. } => Ok(()),
        }
    }

    /// Returns the rules of the template.
    pub fn expand_rules(&self) -> Vec<RuleSource> {
        match self {
            Self::Tdd { rule } => vec![
                RuleSource::new(Some(passed_condition(rule)), RuleAction::Complete, "the tests pass"),
                RuleSource {
                    next_prompt: Some(format!("Give iteration_start a validation rule `{rule}` that runs the tests.")),
                    ..RuleSource::new(
                        Some(missing_condition(rule)),
                        RuleAction::Continue,
                        &format!("there is no rule `{rule}`"),
                    )
                },
                RuleSource {
                    next_prompt: Some("Fix the tests that fail, and run them again.".to_owned()),
                    ..RuleSource::new(None, RuleAction::Continue, "the tests do not pass yet")
                },
            ],
            Self::SecurityRemediation { rules, max_iterations } => vec![
                RuleSource {
                    all_of: rules.iter().map(|rule| passed_condition(rule)).collect(),
                    ..RuleSource::new(None, RuleAction::Complete, "every finding is resolved")
                },
                RuleSource::new(
                    Some(format!("iteration >= {max_iterations}")),
                    RuleAction::Escalate,
                    "findings remain after {{ iteration }} iterations: they need a decision by a person",
                ),
                RuleSource::new(None, RuleAction::Continue, "findings remain"),
            ],
            Self::CheckpointEvery { every } => vec![
                RuleSource {
                    checkpoint_data: Some(json!({"executionPhase": "iterating"})),
                    ..RuleSource::new(
                        Some(format!("iteration % {every} == 0")),
                        RuleAction::Continue,
                        "a checkpoint at iteration {{ iteration }}",
                    )
                },
                RuleSource::new(None, RuleAction::Continue, "the work continues"),
            ],
        }
    }
}

/// Returns the condition that no validation rule has this name.
fn missing_condition(rule: &str) -> String {
    format!("not (validationResults | selectattr('ruleName', 'eq', '{rule}') | list)")
}

/// Returns the condition that a validation rule has passed.
fn passed_condition(rule: &str) -> String {
    format!("validationResults | selectattr('ruleName', 'eq', '{rule}') | selectattr('passed') | list")
}
