//! Rules of a stop hook, as their author writes them.
//!
//! Either a list of rules, or the name of a template, or a template with other values than its defaults.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_expr::{
    Condition, ExpressionError, ExpressionNames, FieldError, TextTemplate, find_list_value, read_json,
};

use super::checkpoint::NewCheckpoint;
use super::templates::RuleTemplate as Named;
use crate::command::limits::{EngineLimits, check_json_value};
use crate::command::refusal::Refusal;
use crate::evaluation::decision_rule::{DecisionRule, RuleAction};

const RULES_FIELD: &str = "rules";

/// Rules as they are written and logged. They were checked before they were logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RuleListSource {
    List(Vec<RuleSource>),
    Template(Named),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// All of them must hold.
    #[serde(default, alias = "all_of", skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<String>,
    /// One of them must hold, if there are any.
    #[serde(default, alias = "any_of", skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<String>,
    pub action: RuleAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, alias = "next_prompt", skip_serializing_if = "Option::is_none")]
    pub next_prompt: Option<String>,
    #[serde(default, alias = "checkpoint_data", skip_serializing_if = "Option::is_none")]
    pub checkpoint_data: Option<Value>,
}

impl RuleListSource {
    /// Reads rules from outside.
    pub fn parse_rules(value: &Value) -> Result<Self, Refusal> {
        check_json_value(RULES_FIELD, value)?;
        // A list inside a string, and a single rule, mean a list.
        let unpacked = match value {
            Value::String(text) if text.trim_start().starts_with(['[', '{']) => serde_json::from_str(text).ok(),
            Value::Object(fields) if fields.contains_key("action") => Some(Value::Array(vec![value.clone()])),
            _ => None,
        };
        if let Some(unpacked) = unpacked {
            return Self::parse_rules(&unpacked);
        }
        let read = match value {
            Value::Array(rules) => {
                if let Some(at) = find_list_value(rules) {
                    return Err(Refusal::invalid_input(
                        RULES_FIELD,
                        format!("[{at}] cannot be read: it is a list, and a rule is an object"),
                    ));
                }
                let why = |error: FieldError| format!("{} cannot be read: {}", error.path, error.cause);
                Self::List(
                    read_json(value).map_err(|error| Refusal::invalid_input(RULES_FIELD, why(error).trim_start()))?,
                )
            }
            Value::String(_) | Value::Object(_) => Self::Template(Named::parse_template(value)?),
            _ => {
                let forms = "a list of rules, or the name of a template";
                return Err(Refusal::invalid_input(
                    RULES_FIELD,
                    format!("has to be {forms} ({})", Named::joined_names()),
                ));
            }
        };
        read.compile_rules().map(|_| read)
    }

    /// Returns the compiled rules.
    pub fn compile_rules(&self) -> Result<Vec<DecisionRule>, Refusal> {
        match self {
            Self::List(rules) if rules.is_empty() => {
                Err(Refusal::invalid_input(RULES_FIELD, "is an empty list; give at least one rule"))
            }
            Self::List(rules) if rules.len() > EngineLimits::RULES_PER_STOP_HOOK => Err(Refusal::invalid_input(
                RULES_FIELD,
                format!("has {} rules; at most {} are allowed", rules.len(), EngineLimits::RULES_PER_STOP_HOOK),
            )),
            Self::List(rules) => rules.iter().enumerate().map(|(at, rule)| rule.compile_rule(at)).collect(),
            Self::Template(named) => {
                named.expand_rules().iter().enumerate().map(|(at, rule)| rule.compile_rule(at)).collect()
            }
        }
    }
}

impl RuleSource {
    pub(super) fn new(when: Option<String>, action: RuleAction, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        Self { when, all_of: vec![], any_of: vec![], action, reason, next_prompt: None, checkpoint_data: None }
    }

    fn compile_rule(&self, at: usize) -> Result<DecisionRule, Refusal> {
        let names = ExpressionNames::for_stop_hook();
        let wrong = |field: &str, error: &ExpressionError| {
            let suggestion = error.suggestion.as_ref().map(|it| format!("; {it}")).unwrap_or_default();
            Refusal::invalid_input(RULES_FIELD, format!("[{at}].{field}: {}{suggestion}", error.message))
        };
        let condition =
            |field: &str, text: &String| Condition::parse(text, &names).map_err(|error| wrong(field, &error));
        let template = |field: &str, text: &Option<String>| {
            text.as_ref()
                .map(|text| TextTemplate::parse(text, &names))
                .transpose()
                .map_err(|error| wrong(field, &error))
        };
        if let Some(data) = &self.checkpoint_data {
            let checked = NewCheckpoint::from_hook_data(data).check_limits();
            checked
                .map_err(|refusal| Refusal::invalid_input(RULES_FIELD, format!("[{at}].checkpointData: {refusal}")))?;
        }
        Ok(DecisionRule {
            when: self.when.as_ref().map(|text| condition("when", text)).transpose()?,
            all_of: self.all_of.iter().map(|text| condition("allOf", text)).collect::<Result<_, _>>()?,
            any_of: self.any_of.iter().map(|text| condition("anyOf", text)).collect::<Result<_, _>>()?,
            action: self.action,
            reason: template("reason", &self.reason)?,
            next_prompt: template("nextPrompt", &self.next_prompt)?,
            checkpoint_data: self.checkpoint_data.clone(),
        })
    }
}
