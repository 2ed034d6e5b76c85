//! Compiles the expressions of the file, and shows errors at their place in the file.

use std::ops::Range;

use serde_json::Value;
use windlass_engine::{DecisionRule, EventType, HookPoint, RuleAction, RuleListSource};
use windlass_expr::{Condition, ExpressionError, ExpressionNames, TextTemplate, ToolMatcher, suggest_name};

use super::error::ConfigProblem;
use super::hook_settings::{self, RuleActionSetting, WordOrMap};
use super::reader::LocatedValue;

/// The names of the engine's rule templates.
const RULE_TEMPLATES: &[&str] = &["tdd", "security-remediation", "checkpoint-every"];
/// The path of the event's payload.
const EVENT_DATA_PATH: &[&str] = &["event", "data"];

/// Compiles the expressions of one text.
#[derive(Clone, Copy)]
pub struct ExpressionCompiler<'a> {
    pub source: &'a str,
    /// The fields that `event.data` can have; `None` if any name is possible.
    pub data: Option<&'a [&'static str]>,
}

/// Returns the fields that `event.data` can have at some of these points; `None` if any name is possible.
pub fn event_data_fields(points: &[HookPoint]) -> Option<Vec<&'static str>> {
    let fields = points.iter().flat_map(|point| point.event_types()).map(EventType::data_field_names);
    fields.collect::<Option<Vec<_>>>().map(|fields| fields.concat())
}

impl<'a> ExpressionCompiler<'a> {
    /// Makes a compiler for expressions that no event triggers.
    pub fn without_event(source: &'a str) -> Self {
        Self { source, data: None }
    }

    pub fn compile_condition(
        self,
        key: &str,
        written: &LocatedValue<String>,
        names: &ExpressionNames,
    ) -> Result<Condition, ConfigProblem> {
        let condition = Condition::parse(written, names).map_err(|error| self.locate_problem(key, written, error))?;
        self.check_event_fields(key, written, condition.names_below(EVENT_DATA_PATH)).map(|()| condition)
    }

    pub fn compile_template(
        self,
        key: &str,
        written: &LocatedValue<String>,
        names: &ExpressionNames,
    ) -> Result<TextTemplate, ConfigProblem> {
        let template = TextTemplate::parse(written, names).map_err(|error| self.locate_problem(key, written, error))?;
        self.check_event_fields(key, written, template.names_below(EVENT_DATA_PATH)).map(|()| template)
    }

    /// Checks that the event has every field of `event.data` that an expression uses.
    fn check_event_fields(
        self,
        key: &str,
        written: &LocatedValue<String>,
        used: Vec<&str>,
    ) -> Result<(), ConfigProblem> {
        let Some(known) = self.data else { return Ok(()) };
        let Some(name) = used.into_iter().find(|name| !known.contains(name)) else { return Ok(()) };
        let path = format!("event.data.{name}");
        let at = written.find(&path).map(|start| start..start + path.len());
        let suggestion = suggest_name(EVENT_DATA_PATH, name, known);
        let message = format!("`{path}` is not known: the event of this point has no such field");
        Err(self.locate_problem(key, written, ExpressionError { message, at, suggestion: Some(suggestion) }))
    }

    pub fn compile_matcher(self, written: &LocatedValue<String>) -> Result<ToolMatcher, ConfigProblem> {
        ToolMatcher::parse(written)
            .map_err(|error| ConfigProblem::new(format!("`matcher`: {error}")).with_range(written.at.clone()))
    }

    pub fn compile_rules(
        self,
        rules: &[LocatedValue<WordOrMap<hook_settings::RuleSettings>>],
    ) -> Result<Vec<DecisionRule>, ConfigProblem> {
        let rule = |written: &LocatedValue<WordOrMap<hook_settings::RuleSettings>>| match &written.value {
            WordOrMap::Word(name) => {
                parse_rule_template(name).map_err(|problem| problem.with_range(written.at.clone()))
            }
            WordOrMap::Full(rule) => self.compile_rule(rule).map(|rule| vec![rule]),
        };
        Ok(rules.iter().map(rule).collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn compile_rule(self, rule: &hook_settings::RuleSettings) -> Result<DecisionRule, ConfigProblem> {
        let names = ExpressionNames::for_rules();
        let condition = |key: &str, written: &LocatedValue<String>| self.compile_condition(key, written, &names);
        let template = |key: &str, written: &Option<LocatedValue<String>>| {
            written.as_ref().map(|written| self.compile_template(key, written, &names)).transpose()
        };
        Ok(DecisionRule {
            when: rule.when.as_ref().map(|written| condition("when", written)).transpose()?,
            all_of: rule.all_of.iter().map(|written| condition("all_of", written)).collect::<Result<_, _>>()?,
            any_of: rule.any_of.iter().map(|written| condition("any_of", written)).collect::<Result<_, _>>()?,
            action: match rule.action {
                RuleActionSetting::Complete => RuleAction::Complete,
                RuleActionSetting::Continue => RuleAction::Continue,
                RuleActionSetting::Escalate => RuleAction::Escalate,
            },
            reason: template("reason", &rule.reason)?,
            next_prompt: template("nextPrompt", &rule.next_prompt)?,
            checkpoint_data: rule.checkpoint_data.clone(),
        })
    }

    fn locate_problem(self, key: &str, written: &LocatedValue<String>, error: ExpressionError) -> ConfigProblem {
        let at = error.at.and_then(|at| self.find_source_range(written, &at)).unwrap_or_else(|| written.at.clone());
        ConfigProblem::new(format!("`{key}`: {}", error.message)).with_suggestion(error.suggestion).with_range(at)
    }

    /// Finds the range of a part of an expression in the file. Escapes are not supported. In a text of several lines, which the file
    /// indents, the function searches for the part itself.
    fn find_source_range(self, written: &LocatedValue<String>, at: &Range<usize>) -> Option<Range<usize>> {
        let source = self.source.get(written.at.clone())?;
        if let Some(start) = source.find(written.trim_end()) {
            let start = written.at.start + start;
            return Some(start + at.start..start + at.end);
        }
        let part = written.get(at.clone()).filter(|part| !part.is_empty())?;
        let earlier = written.get(..at.start)?.matches(part).count();
        let (start, _) = source.match_indices(part).nth(earlier)?;
        Some(written.at.start + start..written.at.start + start + part.len())
    }
}

/// Locates an error in an expression that is a part of a text.
pub fn locate_expression_problem(source: &str, at: Range<usize>, text: &str, error: ExpressionError) -> ConfigProblem {
    let written = LocatedValue { value: text.to_owned(), at };
    let at = error
        .at
        .and_then(|at| ExpressionCompiler::without_event(source).find_source_range(&written, &at))
        .unwrap_or_else(|| written.at.clone());
    ConfigProblem::new(error.message).with_suggestion(error.suggestion).with_range(at)
}

/// Returns the rules of a template.
fn parse_rule_template(name: &str) -> Result<Vec<DecisionRule>, ConfigProblem> {
    let rules = RuleListSource::parse_rules(&Value::String(name.to_owned())).and_then(|text| text.compile_rules());
    rules.map_err(|_| ConfigProblem::unknown_name("rules", name, RULE_TEMPLATES))
}
