//! Rules of a stop hook, as their author writes them.
//!
//! Either a list of rules, or the name of a template, or a template with other values than its defaults.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_expr::{Condition, ExpressionError, FieldError, Names, Template, find_list, read_json};

use super::checkpoint::NewCheckpoint;
use super::templates::Template as Named;
use crate::command::limits::{Limits, check_value};
use crate::command::refusal::Refusal;
use crate::evaluation::ruling::{Rule, RuleAction};

const RULES: &str = "rules";

/// Rules as they are written and logged. They were checked before they were logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RulesText {
    List(Vec<RuleText>),
    Template(Named),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleText {
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

impl RulesText {
    /// Reads rules from outside.
    pub fn parse(value: &Value) -> Result<Self, Refusal> {
        check_value(RULES, value)?;
        // A list inside a string, and a single rule, mean a list.
        let unpacked = match value {
            Value::String(text) if text.trim_start().starts_with(['[', '{']) => serde_json::from_str(text).ok(),
            Value::Object(fields) if fields.contains_key("action") => Some(Value::Array(vec![value.clone()])),
            _ => None,
        };
        if let Some(unpacked) = unpacked {
            return Self::parse(&unpacked);
        }
        let read = match value {
            Value::Array(rules) => {
                if let Some(at) = find_list(rules) {
                    return Err(Refusal::invalid(
                        RULES,
                        format!("[{at}] cannot be read: it is a list, and a rule is an object"),
                    ));
                }
                let why = |error: FieldError| format!("{} cannot be read: {}", error.path, error.cause);
                Self::List(read_json(value).map_err(|error| Refusal::invalid(RULES, why(error).trim_start()))?)
            }
            Value::String(_) | Value::Object(_) => Self::Template(Named::parse(value)?),
            _ => {
                let forms = "a list of rules, or the name of a template";
                return Err(Refusal::invalid(RULES, format!("has to be {forms} ({})", Named::names())));
            }
        };
        read.read().map(|_| read)
    }

    /// Returns the compiled rules.
    pub fn read(&self) -> Result<Vec<Rule>, Refusal> {
        match self {
            Self::List(rules) if rules.is_empty() => {
                Err(Refusal::invalid(RULES, "is an empty list; give at least one rule"))
            }
            Self::List(rules) if rules.len() > Limits::RULES => {
                Err(Refusal::invalid(RULES, format!("has {} rules; at most {} are taken", rules.len(), Limits::RULES)))
            }
            Self::List(rules) => rules.iter().enumerate().map(|(at, rule)| rule.read(at)).collect(),
            Self::Template(named) => named.rules().iter().enumerate().map(|(at, rule)| rule.read(at)).collect(),
        }
    }
}

impl RuleText {
    pub(super) fn new(when: Option<String>, action: RuleAction, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        Self { when, all_of: vec![], any_of: vec![], action, reason, next_prompt: None, checkpoint_data: None }
    }

    fn read(&self, at: usize) -> Result<Rule, Refusal> {
        let names = Names::stop_hook();
        let wrong = |field: &str, error: &ExpressionError| {
            let suggestion = error.suggestion.as_ref().map(|it| format!("; {it}")).unwrap_or_default();
            Refusal::invalid(RULES, format!("[{at}].{field}: {}{suggestion}", error.message))
        };
        let condition =
            |field: &str, text: &String| Condition::parse(text, &names).map_err(|error| wrong(field, &error));
        let template = |field: &str, text: &Option<String>| {
            text.as_ref().map(|text| Template::parse(text, &names)).transpose().map_err(|error| wrong(field, &error))
        };
        if let Some(data) = &self.checkpoint_data {
            let checked = NewCheckpoint::of_hook(data).check();
            checked.map_err(|refusal| Refusal::invalid(RULES, format!("[{at}].checkpointData: {refusal}")))?;
        }
        Ok(Rule {
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
