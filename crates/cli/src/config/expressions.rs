//! Expressions of the file, compiled. What is wrong in one is shown where it stands in the file.

use std::ops::Range;

use windlass_engine::{Condition, ExpressionError, Matcher, Names, Rule, RuleAction, Template};

use super::entry::{self, Action, Brief};
use super::error::{Problem, quoted};
use super::reader::Located;

/// Rules that will have a name instead of being written out.
const RULE_TEMPLATES: &[&str] = &["tdd", "security-remediation", "checkpoint-every"];

/// Compiles what is written in this text.
#[derive(Clone, Copy)]
pub struct Expressions<'a>(pub &'a str);

impl Expressions<'_> {
    pub fn condition(self, key: &str, written: &Located<String>, names: &Names) -> Result<Condition, Problem> {
        Condition::parse(written, names).map_err(|error| self.problem(key, written, error))
    }

    pub fn template(self, key: &str, written: &Located<String>, names: &Names) -> Result<Template, Problem> {
        Template::parse(written, names).map_err(|error| self.problem(key, written, error))
    }

    pub fn matcher(self, written: &Located<String>) -> Result<Matcher, Problem> {
        Matcher::parse(written).map_err(|error| Problem::new(format!("`matcher`: {error}")).at(written.at.clone()))
    }

    pub fn rules(self, rules: &[Located<Brief<entry::Rule>>]) -> Result<Vec<Rule>, Problem> {
        let rule = |written: &Located<Brief<entry::Rule>>| match &written.value {
            Brief::Word(name) => Err(rule_template(name).at(written.at.clone())),
            Brief::Full(rule) => self.rule(rule),
        };
        rules.iter().map(rule).collect()
    }

    fn rule(self, rule: &entry::Rule) -> Result<Rule, Problem> {
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

    fn problem(self, key: &str, written: &Located<String>, error: ExpressionError) -> Problem {
        let at = error.at.and_then(|at| self.place(written, &at)).unwrap_or_else(|| written.at.clone());
        Problem::new(format!("`{key}`: {}", error.message)).suggest(error.suggestion).at(at)
    }

    /// Where a part of an expression stands in the file, if it stands there as it is: without escapes. In a text of several
    /// lines, which the file indents, the part itself is looked for.
    fn place(self, written: &Located<String>, at: &Range<usize>) -> Option<Range<usize>> {
        let source = self.0.get(written.at.clone())?;
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

/// What is wrong in an expression that is a part of a text, shown where that stands in the file.
pub fn problem(source: &str, at: Range<usize>, text: &str, error: ExpressionError) -> Problem {
    let written = Located { value: text.to_owned(), at };
    let at = error.at.and_then(|at| Expressions(source).place(&written, &at)).unwrap_or_else(|| written.at.clone());
    Problem::new(error.message).suggest(error.suggestion).at(at)
}

fn rule_template(name: &str) -> Problem {
    match RULE_TEMPLATES.contains(&name) {
        true => Problem::new(format!("the rules {} are not known to this version yet", quoted(name)))
            .suggest("write them out: `- when: …` with an `action`".to_owned()),
        false => Problem::unknown("rules", name, RULE_TEMPLATES),
    }
}
