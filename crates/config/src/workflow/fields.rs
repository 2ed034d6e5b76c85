//! Typed access to the fields of a map, with errors at their place.

use std::ops::Range;

use serde_json::{Map, Number, Value as Json};
use windlass_expr::{ExpressionError, ValuePattern, to_snake_case};

use crate::{ConfigNode, ConfigProblem, NodeValue, expression_problem};

/// The fields of a map, by name.
pub struct MapFields<'n> {
    at: Range<usize>,
    source: &'n str,
    found: Vec<(&'n str, &'n ConfigNode, &'n ConfigNode)>,
}

/// How much of a value is known before expressions are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// The whole value.
    Literal,
    /// Only that it is a text.
    Text,
    /// Nothing: the value is one expression, or a path.
    Expression,
}

pub fn value_form(node: &ConfigNode, source: &str) -> Result<ValueForm, ConfigProblem> {
    Ok(match parse_value_pattern(node, source)? {
        ValuePattern::Expression(_) => ValueForm::Expression,
        ValuePattern::Text(_) => ValueForm::Text,
        ValuePattern::Plain(_) | ValuePattern::List(_) | ValuePattern::Fields(_) => ValueForm::Literal,
    })
}

/// Parses a value with expressions.
pub fn parse_value_pattern(node: &ConfigNode, source: &str) -> Result<ValuePattern, ConfigProblem> {
    check_context_paths(node)?;
    ValuePattern::parse(&node_to_json(node)).map_err(|error| {
        let place = find_text_node(node, |text| text == error.text).unwrap_or(node);
        locate_problem(place, source, &error.text, error.error)
    })
}

/// Checks that every `fromContext` is a path without other keys beside it.
fn check_context_paths(node: &ConfigNode) -> Result<(), ConfigProblem> {
    match &node.value {
        NodeValue::List(items) => items.iter().try_for_each(check_context_paths),
        NodeValue::Map(entries) => {
            let is_it = |(key, _): &&(ConfigNode, ConfigNode)| matches!(&key.value, NodeValue::Text(name) if to_snake_case(name) == "from_context");
            let Some((key, path)) = entries.iter().find(is_it) else {
                return entries.iter().try_for_each(|(_, value)| check_context_paths(value));
            };
            let problem = match (&path.value, entries.len()) {
                (NodeValue::Text(_), 1) => return Ok(()),
                (NodeValue::Text(_), _) => ConfigProblem::new("`fromContext` stands alone").with_range(key.at.clone()),
                _ => ConfigProblem::new("`fromContext` is a path: names with dots between them")
                    .with_range(path.at.clone()),
            };
            Err(problem.with_suggestion("write `{fromContext: steps.make.data.taskId}`".to_owned()))
        }
        _ => Ok(()),
    }
}

fn not_text_problem(name: &str, node: &ConfigNode) -> ConfigProblem {
    ConfigProblem::new(format!("`{name}` is text"))
        .with_suggestion(format!("write it as in `{name}: '…'`"))
        .with_range(node.at.clone())
}

pub fn locate_problem(node: &ConfigNode, source: &str, text: &str, error: ExpressionError) -> ConfigProblem {
    expression_problem(source, node.at.clone(), text, error)
}

/// Returns the first text node that matches.
pub fn find_text_node(node: &ConfigNode, is_it: impl Fn(&str) -> bool + Copy) -> Option<&ConfigNode> {
    match &node.value {
        NodeValue::Text(own) if is_it(own) => Some(node),
        NodeValue::List(items) => items.iter().find_map(|item| find_text_node(item, is_it)),
        NodeValue::Map(entries) => entries.iter().find_map(|(_, value)| find_text_node(value, is_it)),
        _ => None,
    }
}

/// Finds the range of an expression: inside `${…}`, or a whole text.
pub fn find_expression_range(source: &str, node: &ConfigNode, expression: &str) -> Option<Range<usize>> {
    let filled = find_text_node(node, |text| find_placeholder(text, expression).is_some());
    let node = filled.or_else(|| find_text_node(node, |text| text.trim() == expression))?;
    // The source may differ from the value, for example with escaped quotes.
    let start = source
        .get(node.at.clone())
        .and_then(|text| find_placeholder(text, expression))
        .map(|start| node.at.start + start);
    Some(start.map_or(node.at.clone(), |start| start..start + expression.len()))
}

/// Returns the offset of this expression inside `${…}` in a text.
fn find_placeholder(text: &str, expression: &str) -> Option<usize> {
    let opens = |before: &str| before.trim_end().ends_with("${") && !before.trim_end().ends_with("$${");
    let is_it = |at: &usize| opens(&text[..*at]) && text[at + expression.len()..].trim_start().starts_with('}');
    text.match_indices(expression).map(|(at, _)| at).find(is_it)
}

pub fn node_to_json(node: &ConfigNode) -> Json {
    match &node.value {
        NodeValue::Null => Json::Null,
        NodeValue::Bool(truth) => Json::Bool(*truth),
        NodeValue::Integer(number) => Json::from(*number),
        NodeValue::Unsigned(number) => Json::from(*number),
        NodeValue::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        NodeValue::Text(text) => Json::String(text.clone()),
        NodeValue::List(items) => Json::Array(items.iter().map(node_to_json).collect()),
        NodeValue::Map(entries) => {
            let named = |(key, value): &(ConfigNode, ConfigNode)| match &key.value {
                NodeValue::Text(name) => Some((name.clone(), node_to_json(value))),
                _ => None,
            };
            Json::Object(entries.iter().filter_map(named).collect::<Map<_, _>>())
        }
    }
}

impl<'n> MapFields<'n> {
    /// Reads a map and refuses unknown keys.
    pub fn with_known_keys(
        node: &'n ConfigNode,
        source: &'n str,
        what: &str,
        known: &[&'static str],
    ) -> Result<Self, ConfigProblem> {
        let listed = || match known {
            [] => format!("{what} has no configuration: leave it out"),
            known => format!("known here: `{}`", known.join("`, `")),
        };
        let NodeValue::Map(entries) = &node.value else {
            let instead = match known.first() {
                Some(first) => format!("write `{first}: …`, each of its fields on a line of its own"),
                None => listed(),
            };
            return Err(ConfigProblem::new(format!("{what} is a map of keys and values"))
                .with_suggestion(instead)
                .with_range(node.at.clone()));
        };
        if let Some((key, _)) = entries.iter().find(|(key, _)| !matches!(key.value, NodeValue::Text(_))) {
            return Err(ConfigProblem::new("a key is text").with_suggestion(listed()).with_range(key.at.clone()));
        }
        let fields = Self::with_any_keys(node, source);
        for (place, (name, key, _)) in fields.found.iter().enumerate() {
            let is_same = |other: &str| to_snake_case(other) == to_snake_case(name);
            if !known.iter().any(|known| is_same(known)) {
                let problem = ConfigProblem::unknown_name("key", name, known);
                let instead = problem.suggestion.clone().unwrap_or_else(listed);
                return Err(problem.with_suggestion(instead).with_range(key.at.clone()));
            }
            if fields.found[..place].iter().any(|(other, _, _)| is_same(other)) {
                let problem = ConfigProblem::new(format!("the key `{name}` is given twice, in two spellings"));
                return Err(problem.with_suggestion("leave one of the two out".to_owned()).with_range(key.at.clone()));
            }
        }
        Ok(fields)
    }

    /// Reads a map with any keys.
    pub fn with_any_keys(node: &'n ConfigNode, source: &'n str) -> Self {
        let entries: &[(ConfigNode, ConfigNode)] =
            if let NodeValue::Map(entries) = &node.value { entries } else { &[] };
        let named = |(key, value): &'n (ConfigNode, ConfigNode)| match &key.value {
            NodeValue::Text(name) => Some((name.as_str(), key, value)),
            _ => None,
        };
        Self { at: node.at.clone(), source, found: entries.iter().filter_map(named).collect() }
    }

    pub fn get(&self, name: &str) -> Option<&'n ConfigNode> {
        let found = self.found.iter().find(|(key, _, _)| to_snake_case(key) == to_snake_case(name));
        found.map(|(_, _, value)| *value).filter(|node| !matches!(node.value, NodeValue::Null))
    }

    pub fn field_range(&self, name: &str) -> Range<usize> {
        self.get(name).map_or(self.at.clone(), |node| node.at.clone())
    }

    /// Returns a required field. `what` and `example` explain it if it is missing.
    pub fn require_field(&self, name: &str, (what, example): (&str, &str)) -> Result<&'n ConfigNode, ConfigProblem> {
        let missing =
            || ConfigProblem::new(format!("this needs {what}")).with_suggestion(format!("write `{name}: {example}`"));
        self.get(name).ok_or_else(|| missing().with_range(self.at.clone()))
    }

    pub fn text_field(&self, name: &str) -> Result<Option<&'n str>, ConfigProblem> {
        match self.get(name) {
            None => Ok(None),
            Some(ConfigNode { value: NodeValue::Text(text), .. }) => Ok(Some(text)),
            Some(node) => Err(not_text_problem(name, node)),
        }
    }

    pub fn require_text(&self, name: &str, what: (&str, &str)) -> Result<&'n str, ConfigProblem> {
        self.require_field(name, what)?;
        Ok(self.text_field(name)?.unwrap_or_default())
    }

    pub fn bool_field(&self, name: &str) -> Result<Option<bool>, ConfigProblem> {
        match self.get(name) {
            None => Ok(None),
            Some(ConfigNode { value: NodeValue::Bool(truth), .. }) => Ok(Some(*truth)),
            Some(node) => Err(ConfigProblem::new(format!("`{name}` is `true` or `false`"))
                .with_suggestion(format!("write `{name}: true` or `{name}: false`"))
                .with_range(node.at.clone())),
        }
    }

    /// Checks a text, or an expression that becomes one.
    pub fn check_text(&self, name: &str) -> Result<(), ConfigProblem> {
        let Some(node) = self.get(name) else { return Ok(()) };
        match (value_form(node, self.source)?, &node.value) {
            (ValueForm::Literal, NodeValue::Text(text)) if text.trim().is_empty() => {
                let instead = format!("write a value, as in `{name}: '…'`, or leave it out if it is optional");
                Err(ConfigProblem::new(format!("`{name}` is empty"))
                    .with_suggestion(instead)
                    .with_range(node.at.clone()))
            }
            (ValueForm::Expression | ValueForm::Text, _) | (_, NodeValue::Text(_)) => Ok(()),
            _ => Err(not_text_problem(name, node)),
        }
    }

    /// Checks each entry of a list, or accepts an expression that becomes one.
    pub fn check_list(
        &self,
        name: &str,
        entry: impl Fn(&ConfigNode) -> Result<(), ConfigProblem>,
    ) -> Result<(), ConfigProblem> {
        let Some(node) = self.get(name) else { return Ok(()) };
        match (&node.value, value_form(node, self.source)?) {
            (NodeValue::List(items), _) => {
                let written =
                    |item: &&ConfigNode| value_form(item, self.source).is_ok_and(|form| form == ValueForm::Literal);
                items.iter().filter(written).try_for_each(entry)
            }
            (_, ValueForm::Expression) => Ok(()),
            _ => {
                let shown = self.source.get(node.at.clone()).unwrap_or("…");
                let problem = ConfigProblem::new(format!("`{name}` is a list"));
                Err(problem.with_suggestion(format!("write `[{}]`", shown.trim())).with_range(node.at.clone()))
            }
        }
    }

    /// Checks a list of texts.
    pub fn check_text_list(&self, name: &str) -> Result<(), ConfigProblem> {
        self.check_list(name, |item| match &item.value {
            NodeValue::Text(text) if text.trim().is_empty() => {
                let problem = ConfigProblem::new(format!("an entry of `{name}` is empty"));
                Err(problem.with_suggestion("leave it out".to_owned()).with_range(item.at.clone()))
            }
            NodeValue::Text(_) => Ok(()),
            _ => {
                let problem = ConfigProblem::new(format!("an entry of `{name}` is text"));
                Err(problem
                    .with_suggestion(format!("write each as a text: `{name}: [one, 'two']`"))
                    .with_range(item.at.clone()))
            }
        })
    }

    /// Returns all fields as one pattern.
    pub fn combined_pattern(&self) -> Result<ValuePattern, ConfigProblem> {
        let parsed = |(name, _, value): &(&str, &ConfigNode, &ConfigNode)| {
            Ok(((*name).to_owned(), parse_value_pattern(value, self.source)?))
        };
        Ok(ValuePattern::Fields(self.found.iter().map(parsed).collect::<Result<_, ConfigProblem>>()?))
    }
}
