//! Typed access to the fields of a map, with errors at their place.

use std::ops::Range;

use serde_json::{Map, Number, Value as Json};
use windlass_expr::{ExpressionError, Pattern, snake_case};

use crate::{ConfigNode, ConfigProblem, NodeValue, expression_problem};

/// The fields of a map, by name.
pub struct Fields<'n> {
    at: Range<usize>,
    source: &'n str,
    found: Vec<(&'n str, &'n ConfigNode, &'n ConfigNode)>,
}

/// How much of a value is known before expressions are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The whole value.
    Written,
    /// Only that it is a text.
    Text,
    /// Nothing: the value is one expression, or a path.
    Filled,
}

pub fn form(node: &ConfigNode, source: &str) -> Result<Form, ConfigProblem> {
    Ok(match pattern(node, source)? {
        Pattern::Whole(_) => Form::Filled,
        Pattern::Text(_) => Form::Text,
        Pattern::Plain(_) | Pattern::List(_) | Pattern::Fields(_) => Form::Written,
    })
}

/// Parses a value with expressions.
pub fn pattern(node: &ConfigNode, source: &str) -> Result<Pattern, ConfigProblem> {
    paths(node)?;
    Pattern::parse(&json(node)).map_err(|error| {
        let place = find_text(node, |text| text == error.text).unwrap_or(node);
        wrong(place, source, &error.text, error.error)
    })
}

/// Checks that every `fromContext` is a path without other keys beside it.
fn paths(node: &ConfigNode) -> Result<(), ConfigProblem> {
    match &node.value {
        NodeValue::List(items) => items.iter().try_for_each(paths),
        NodeValue::Map(entries) => {
            let is_it = |(key, _): &&(ConfigNode, ConfigNode)| matches!(&key.value, NodeValue::Text(name) if snake_case(name) == "from_context");
            let Some((key, path)) = entries.iter().find(is_it) else {
                return entries.iter().try_for_each(|(_, value)| paths(value));
            };
            let problem = match (&path.value, entries.len()) {
                (NodeValue::Text(_), 1) => return Ok(()),
                (NodeValue::Text(_), _) => ConfigProblem::new("`fromContext` stands alone").at(key.at.clone()),
                _ => ConfigProblem::new("`fromContext` is a path: names with dots between them").at(path.at.clone()),
            };
            Err(problem.suggest("write `{fromContext: steps.make.data.taskId}`".to_owned()))
        }
        _ => Ok(()),
    }
}

fn no_text(name: &str, node: &ConfigNode) -> ConfigProblem {
    ConfigProblem::new(format!("`{name}` is text")).suggest(format!("write it as in `{name}: '…'`")).at(node.at.clone())
}

pub fn wrong(node: &ConfigNode, source: &str, text: &str, error: ExpressionError) -> ConfigProblem {
    expression_problem(source, node.at.clone(), text, error)
}

/// Returns the first text node that matches.
pub fn find_text(node: &ConfigNode, is_it: impl Fn(&str) -> bool + Copy) -> Option<&ConfigNode> {
    match &node.value {
        NodeValue::Text(own) if is_it(own) => Some(node),
        NodeValue::List(items) => items.iter().find_map(|item| find_text(item, is_it)),
        NodeValue::Map(entries) => entries.iter().find_map(|(_, value)| find_text(value, is_it)),
        _ => None,
    }
}

/// Finds the range of an expression: inside `${…}`, or a whole text.
pub fn find_expression(source: &str, node: &ConfigNode, expression: &str) -> Option<Range<usize>> {
    let filled = find_text(node, |text| piece(text, expression).is_some());
    let node = filled.or_else(|| find_text(node, |text| text.trim() == expression))?;
    // The source may differ from the value, for example with escaped quotes.
    let start = source.get(node.at.clone()).and_then(|text| piece(text, expression)).map(|start| node.at.start + start);
    Some(start.map_or(node.at.clone(), |start| start..start + expression.len()))
}

/// Returns the offset of this expression inside `${…}` in a text.
fn piece(text: &str, expression: &str) -> Option<usize> {
    let opens = |before: &str| before.trim_end().ends_with("${") && !before.trim_end().ends_with("$${");
    let is_it = |at: &usize| opens(&text[..*at]) && text[at + expression.len()..].trim_start().starts_with('}');
    text.match_indices(expression).map(|(at, _)| at).find(is_it)
}

pub fn json(node: &ConfigNode) -> Json {
    match &node.value {
        NodeValue::Null => Json::Null,
        NodeValue::Bool(truth) => Json::Bool(*truth),
        NodeValue::Integer(number) => Json::from(*number),
        NodeValue::Unsigned(number) => Json::from(*number),
        NodeValue::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        NodeValue::Text(text) => Json::String(text.clone()),
        NodeValue::List(items) => Json::Array(items.iter().map(json).collect()),
        NodeValue::Map(entries) => {
            let named = |(key, value): &(ConfigNode, ConfigNode)| match &key.value {
                NodeValue::Text(name) => Some((name.clone(), json(value))),
                _ => None,
            };
            Json::Object(entries.iter().filter_map(named).collect::<Map<_, _>>())
        }
    }
}

impl<'n> Fields<'n> {
    /// Reads a map and refuses unknown keys.
    pub fn of(
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
                .suggest(instead)
                .at(node.at.clone()));
        };
        if let Some((key, _)) = entries.iter().find(|(key, _)| !matches!(key.value, NodeValue::Text(_))) {
            return Err(ConfigProblem::new("a key is text").suggest(listed()).at(key.at.clone()));
        }
        let fields = Self::loose(node, source);
        for (place, (name, key, _)) in fields.found.iter().enumerate() {
            let is_same = |other: &str| snake_case(other) == snake_case(name);
            if !known.iter().any(|known| is_same(known)) {
                let problem = ConfigProblem::unknown("key", name, known);
                let instead = problem.suggestion.clone().unwrap_or_else(listed);
                return Err(problem.suggest(instead).at(key.at.clone()));
            }
            if fields.found[..place].iter().any(|(other, _, _)| is_same(other)) {
                let problem = ConfigProblem::new(format!("the key `{name}` is given twice, in two spellings"));
                return Err(problem.suggest("leave one of the two out".to_owned()).at(key.at.clone()));
            }
        }
        Ok(fields)
    }

    /// Reads a map with any keys.
    pub fn loose(node: &'n ConfigNode, source: &'n str) -> Self {
        let entries: &[(ConfigNode, ConfigNode)] =
            if let NodeValue::Map(entries) = &node.value { entries } else { &[] };
        let named = |(key, value): &'n (ConfigNode, ConfigNode)| match &key.value {
            NodeValue::Text(name) => Some((name.as_str(), key, value)),
            _ => None,
        };
        Self { at: node.at.clone(), source, found: entries.iter().filter_map(named).collect() }
    }

    pub fn get(&self, name: &str) -> Option<&'n ConfigNode> {
        let found = self.found.iter().find(|(key, _, _)| snake_case(key) == snake_case(name));
        found.map(|(_, _, value)| *value).filter(|node| !matches!(node.value, NodeValue::Null))
    }

    pub fn place(&self, name: &str) -> Range<usize> {
        self.get(name).map_or(self.at.clone(), |node| node.at.clone())
    }

    /// Returns a required field. `what` and `example` explain it if it is missing.
    pub fn needed(&self, name: &str, (what, example): (&str, &str)) -> Result<&'n ConfigNode, ConfigProblem> {
        let missing = || ConfigProblem::new(format!("this needs {what}")).suggest(format!("write `{name}: {example}`"));
        self.get(name).ok_or_else(|| missing().at(self.at.clone()))
    }

    pub fn text(&self, name: &str) -> Result<Option<&'n str>, ConfigProblem> {
        match self.get(name) {
            None => Ok(None),
            Some(ConfigNode { value: NodeValue::Text(text), .. }) => Ok(Some(text)),
            Some(node) => Err(no_text(name, node)),
        }
    }

    pub fn needed_text(&self, name: &str, what: (&str, &str)) -> Result<&'n str, ConfigProblem> {
        self.needed(name, what)?;
        Ok(self.text(name)?.unwrap_or_default())
    }

    pub fn truth(&self, name: &str) -> Result<Option<bool>, ConfigProblem> {
        match self.get(name) {
            None => Ok(None),
            Some(ConfigNode { value: NodeValue::Bool(truth), .. }) => Ok(Some(*truth)),
            Some(node) => Err(ConfigProblem::new(format!("`{name}` is `true` or `false`"))
                .suggest(format!("write `{name}: true` or `{name}: false`"))
                .at(node.at.clone())),
        }
    }

    /// Checks a text, or an expression that becomes one.
    pub fn is_text(&self, name: &str) -> Result<(), ConfigProblem> {
        let Some(node) = self.get(name) else { return Ok(()) };
        match (form(node, self.source)?, &node.value) {
            (Form::Written, NodeValue::Text(text)) if text.trim().is_empty() => {
                let instead = format!("write something, as in `{name}: '…'`, or leave it out if it need not be there");
                Err(ConfigProblem::new(format!("`{name}` is empty")).suggest(instead).at(node.at.clone()))
            }
            (Form::Filled | Form::Text, _) | (_, NodeValue::Text(_)) => Ok(()),
            _ => Err(no_text(name, node)),
        }
    }

    /// Checks each entry of a list, or accepts an expression that becomes one.
    pub fn is_list(
        &self,
        name: &str,
        entry: impl Fn(&ConfigNode) -> Result<(), ConfigProblem>,
    ) -> Result<(), ConfigProblem> {
        let Some(node) = self.get(name) else { return Ok(()) };
        match (&node.value, form(node, self.source)?) {
            (NodeValue::List(items), _) => {
                let written = |item: &&ConfigNode| form(item, self.source).is_ok_and(|form| form == Form::Written);
                items.iter().filter(written).try_for_each(entry)
            }
            (_, Form::Filled) => Ok(()),
            _ => {
                let shown = self.source.get(node.at.clone()).unwrap_or("…");
                let problem = ConfigProblem::new(format!("`{name}` is a list"));
                Err(problem.suggest(format!("write `[{}]`", shown.trim())).at(node.at.clone()))
            }
        }
    }

    /// Checks a list of texts.
    pub fn are_texts(&self, name: &str) -> Result<(), ConfigProblem> {
        self.is_list(name, |item| match &item.value {
            NodeValue::Text(text) if text.trim().is_empty() => {
                let problem = ConfigProblem::new(format!("an entry of `{name}` is empty"));
                Err(problem.suggest("leave it out".to_owned()).at(item.at.clone()))
            }
            NodeValue::Text(_) => Ok(()),
            _ => {
                let problem = ConfigProblem::new(format!("an entry of `{name}` is text"));
                Err(problem.suggest(format!("write each as a text: `{name}: [one, 'two']`")).at(item.at.clone()))
            }
        })
    }

    /// Returns all fields as one pattern.
    pub fn pattern(&self) -> Result<Pattern, ConfigProblem> {
        let parsed = |(name, _, value): &(&str, &ConfigNode, &ConfigNode)| {
            Ok(((*name).to_owned(), pattern(value, self.source)?))
        };
        Ok(Pattern::Fields(self.found.iter().map(parsed).collect::<Result<_, ConfigProblem>>()?))
    }
}
