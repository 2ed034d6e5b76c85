//! Compiles the expressions of the file, and shows errors at their place in the file.

use std::ops::Range;

use serde_json::Value;
use windlass_engine::{EventType, HookPoint, Rule, RuleAction, RulesText};
use windlass_expr::{Condition, ExpressionError, Matcher, Names, Template, suggest_name};

use super::entry::{self, Action, Brief};
use super::error::ConfigProblem;
use super::reader::Located;

/// The names of the engine's rule templates.
const RULE_TEMPLATES: &[&str] = &["tdd", "security-remediation", "checkpoint-every"];
/// The path of the event's payload.
const EVENT_DATA: &[&str] = &["event", "data"];

/// Compiles the expressions of one text.
#[derive(Clone, Copy)]
pub struct Expressions<'a> {
    pub source: &'a str,
    /// The fields that `event.data` can have; `None` if any name is possible.
    pub data: Option<&'a [&'static str]>,
}

/// Returns the fields that `event.data` can have at some of these points; `None` if any name is possible.
pub fn data_fields(points: &[HookPoint]) -> Option<Vec<&'static str>> {
    let fields = points.iter().flat_map(|point| point.events()).map(EventType::data_fields);
    fields.collect::<Option<Vec<_>>>().map(|fields| fields.concat())
}

impl<'a> Expressions<'a> {
    /// Makes a compiler for expressions that no event triggers.
    pub fn of(source: &'a str) -> Self {
        Self { source, data: None }
    }

    pub fn condition(self, key: &str, written: &Located<String>, names: &Names) -> Result<Condition, ConfigProblem> {
        let condition = Condition::parse(written, names).map_err(|error| self.problem(key, written, error))?;
        self.check_data(key, written, condition.below(EVENT_DATA)).map(|()| condition)
    }

    pub fn template(self, key: &str, written: &Located<String>, names: &Names) -> Result<Template, ConfigProblem> {
        let template = Template::parse(written, names).map_err(|error| self.problem(key, written, error))?;
        self.check_data(key, written, template.below(EVENT_DATA)).map(|()| template)
    }

    /// Checks that the event has every field of `event.data` that an expression uses.
    fn check_data(self, key: &str, written: &Located<String>, used: Vec<&str>) -> Result<(), ConfigProblem> {
        let Some(known) = self.data else { return Ok(()) };
        let Some(name) = used.into_iter().find(|name| !known.contains(name)) else { return Ok(()) };
        let path = format!("event.data.{name}");
        let at = written.find(&path).map(|start| start..start + path.len());
        let suggestion = suggest_name(EVENT_DATA, name, known);
        let message = format!("`{path}` is not known: the event of this point has no such field");
        Err(self.problem(key, written, ExpressionError { message, at, suggestion: Some(suggestion) }))
    }

    pub fn matcher(self, written: &Located<String>) -> Result<Matcher, ConfigProblem> {
        Matcher::parse(written)
            .map_err(|error| ConfigProblem::new(format!("`matcher`: {error}")).at(written.at.clone()))
    }

    pub fn rules(self, rules: &[Located<Brief<entry::Rule>>]) -> Result<Vec<Rule>, ConfigProblem> {
        let rule = |written: &Located<Brief<entry::Rule>>| match &written.value {
            Brief::Word(name) => rule_template(name).map_err(|problem| problem.at(written.at.clone())),
            Brief::Full(rule) => self.rule(rule).map(|rule| vec![rule]),
        };
        Ok(rules.iter().map(rule).collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn rule(self, rule: &entry::Rule) -> Result<Rule, ConfigProblem> {
        let names = Names::rules();
        let condition = |key: &str, written: &Located<String>| self.condition(key, written, &names);
        let template = |key: &str, written: &Option<Located<String>>| {
            written.as_ref().map(|written| self.template(key, written, &names)).transpose()
        };
        Ok(Rule {
            when: rule.when.as_ref().map(|written| condition("when", written)).transpose()?,
            all_of: rule.all_of.iter().map(|written| condition("all_of", written)).collect::<Result<_, _>>()?,
            any_of: rule.any_of.iter().map(|written| condition("any_of", written)).collect::<Result<_, _>>()?,
            action: match rule.action {
                Action::Complete => RuleAction::Complete,
                Action::Continue => RuleAction::Continue,
                Action::Escalate => RuleAction::Escalate,
            },
            reason: template("reason", &rule.reason)?,
            next_prompt: template("nextPrompt", &rule.next_prompt)?,
            checkpoint_data: rule.checkpoint_data.clone(),
        })
    }

    fn problem(self, key: &str, written: &Located<String>, error: ExpressionError) -> ConfigProblem {
        let at = error.at.and_then(|at| self.place(written, &at)).unwrap_or_else(|| written.at.clone());
        ConfigProblem::new(format!("`{key}`: {}", error.message)).suggest(error.suggestion).at(at)
    }

    /// Finds the range of a part of an expression in the file. Escapes are not supported. In a text of several lines, which the file
    /// indents, the function searches for the part itself.
    fn place(self, written: &Located<String>, at: &Range<usize>) -> Option<Range<usize>> {
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
pub fn problem(source: &str, at: Range<usize>, text: &str, error: ExpressionError) -> ConfigProblem {
    let written = Located { value: text.to_owned(), at };
    let at = error.at.and_then(|at| Expressions::of(source).place(&written, &at)).unwrap_or_else(|| written.at.clone());
    ConfigProblem::new(error.message).suggest(error.suggestion).at(at)
}

/// Returns the rules of a template.
fn rule_template(name: &str) -> Result<Vec<Rule>, ConfigProblem> {
    let rules = RulesText::parse(&Value::String(name.to_owned())).and_then(|text| text.read());
    rules.map_err(|_| ConfigProblem::unknown("rules", name, RULE_TEMPLATES))
}
