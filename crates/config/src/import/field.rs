//! Typed access to the fields of a JSON object.

use crate::{ConfigNode, ConfigProblem, NodeValue, quoted};

/// Returns the text of a key.
pub fn key(node: &ConfigNode) -> Option<&str> {
    match &node.value {
        NodeValue::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the key and the value of an object's entry.
pub fn entry<'a>(node: &'a ConfigNode, name: &str) -> Option<(&'a ConfigNode, &'a ConfigNode)> {
    let NodeValue::Map(entries) = &node.value else { return None };
    entries.iter().find(|(found, _)| key(found) == Some(name)).map(|(key, value)| (key, value))
}

/// Returns the value of an entry; `null` counts as absent.
fn given<'a>(node: &'a ConfigNode, name: &str) -> Option<&'a ConfigNode> {
    entry(node, name).map(|(_, value)| value).filter(|value| !matches!(value.value, NodeValue::Null))
}

pub fn map<'a>(node: &'a ConfigNode, what: &str) -> Result<&'a [(ConfigNode, ConfigNode)], ConfigProblem> {
    match &node.value {
        NodeValue::Map(entries) => Ok(entries),
        _ => Err(wrong(node, what, "an object: `{…}`")),
    }
}

pub fn list<'a>(node: &'a ConfigNode, what: &str) -> Result<&'a [ConfigNode], ConfigProblem> {
    match &node.value {
        NodeValue::List(nodes) => Ok(nodes),
        _ => Err(wrong(node, what, "a list: `[…]`")),
    }
}

pub fn string<'a>(node: &'a ConfigNode, what: &str) -> Result<&'a str, ConfigProblem> {
    match &node.value {
        NodeValue::Text(text) => Ok(text),
        _ => Err(wrong(node, what, "text in double quotes")),
    }
}

pub fn text<'a>(node: &'a ConfigNode, name: &str) -> Result<Option<&'a str>, ConfigProblem> {
    given(node, name).map(|value| string(value, &format!("`{name}`"))).transpose()
}

pub fn flag(node: &ConfigNode, name: &str) -> Result<Option<bool>, ConfigProblem> {
    let read = |value: &ConfigNode| match value.value {
        NodeValue::Bool(flag) => Ok(flag),
        _ => Err(wrong(value, &format!("`{name}`"), "`true` or `false`")),
    };
    given(node, name).map(read).transpose()
}

pub fn number(node: &ConfigNode, name: &str) -> Result<Option<f64>, ConfigProblem> {
    #[expect(clippy::cast_precision_loss, reason = "numbers that lose precision are refused as too large")]
    let read = |value: &ConfigNode| match value.value {
        NodeValue::Integer(number) => Ok(number as f64),
        NodeValue::Unsigned(number) => Ok(number as f64),
        NodeValue::Float(number) => Ok(number),
        _ => Err(wrong(value, &format!("`{name}`"), "a number")),
    };
    given(node, name).map(read).transpose()
}

pub fn integer(node: &ConfigNode, name: &str) -> Result<Option<i64>, ConfigProblem> {
    let read = |value: &ConfigNode| match value.value {
        NodeValue::Integer(number) => Ok(number),
        _ => Err(wrong(value, &format!("`{name}`"), "a whole number")),
    };
    given(node, name).map(read).transpose()
}

/// Reads a list of texts.
pub fn texts<'a>(node: &'a ConfigNode, name: &str) -> Result<Option<Vec<&'a str>>, ConfigProblem> {
    let read = |value: &'a ConfigNode| {
        let nodes = list(value, &format!("`{name}`"))?;
        nodes.iter().map(|node| string(node, &format!("an entry of `{name}`"))).collect()
    };
    given(node, name).map(read).transpose()
}

/// Returns the first unknown key.
pub fn stranger<'a>(entries: &'a [(ConfigNode, ConfigNode)], known: &[&str]) -> Option<(&'a ConfigNode, &'a str)> {
    let mut keys = entries.iter().filter_map(|(node, _)| Some((node, key(node)?)));
    keys.find(|(_, name)| !known.contains(name))
}

fn wrong(node: &ConfigNode, what: &str, expected: &str) -> ConfigProblem {
    let found = match &node.value {
        NodeValue::Null => "`null`".to_owned(),
        NodeValue::Bool(value) => format!("`{value}`"),
        NodeValue::Integer(value) => format!("`{value}`"),
        NodeValue::Unsigned(value) => format!("`{value}`"),
        NodeValue::Float(value) => format!("`{value}`"),
        NodeValue::Text(text) => format!("the text {}", quoted(text)),
        NodeValue::List(_) => "a list".to_owned(),
        NodeValue::Map(_) => "an object".to_owned(),
    };
    // Otherwise the picture marks a whole object to its end.
    let at = node.at.start..node.at.start + 1;
    let at = if matches!(node.value, NodeValue::List(_) | NodeValue::Map(_)) { at } else { node.at.clone() };
    ConfigProblem::new(format!("{what}: expected {expected}, found {found}")).at(at)
}
