//! Typed access to the fields of a JSON object.

use crate::{ConfigNode, ConfigProblem, NodeValue, quote_text};

/// Returns the text of a key.
pub fn key_text(node: &ConfigNode) -> Option<&str> {
    match &node.value {
        NodeValue::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the key and the value of an object's entry.
pub fn find_entry<'a>(node: &'a ConfigNode, name: &str) -> Option<(&'a ConfigNode, &'a ConfigNode)> {
    let NodeValue::Map(entries) = &node.value else { return None };
    entries.iter().find(|(found, _)| key_text(found) == Some(name)).map(|(key, value)| (key, value))
}

/// Returns the value of an entry; `null` counts as absent.
fn find_non_null<'a>(node: &'a ConfigNode, name: &str) -> Option<&'a ConfigNode> {
    find_entry(node, name).map(|(_, value)| value).filter(|value| !matches!(value.value, NodeValue::Null))
}

pub fn expect_object<'a>(node: &'a ConfigNode, what: &str) -> Result<&'a [(ConfigNode, ConfigNode)], ConfigProblem> {
    match &node.value {
        NodeValue::Map(entries) => Ok(entries),
        _ => Err(wrong_type_problem(node, what, "an object: `{…}`")),
    }
}

pub fn expect_list<'a>(node: &'a ConfigNode, what: &str) -> Result<&'a [ConfigNode], ConfigProblem> {
    match &node.value {
        NodeValue::List(nodes) => Ok(nodes),
        _ => Err(wrong_type_problem(node, what, "a list: `[…]`")),
    }
}

pub fn expect_text<'a>(node: &'a ConfigNode, what: &str) -> Result<&'a str, ConfigProblem> {
    match &node.value {
        NodeValue::Text(text) => Ok(text),
        _ => Err(wrong_type_problem(node, what, "text in double quotes")),
    }
}

pub fn text_field<'a>(node: &'a ConfigNode, name: &str) -> Result<Option<&'a str>, ConfigProblem> {
    find_non_null(node, name).map(|value| expect_text(value, &format!("`{name}`"))).transpose()
}

pub fn bool_field(node: &ConfigNode, name: &str) -> Result<Option<bool>, ConfigProblem> {
    let read = |value: &ConfigNode| match value.value {
        NodeValue::Bool(flag) => Ok(flag),
        _ => Err(wrong_type_problem(value, &format!("`{name}`"), "`true` or `false`")),
    };
    find_non_null(node, name).map(read).transpose()
}

pub fn number_field(node: &ConfigNode, name: &str) -> Result<Option<f64>, ConfigProblem> {
    #[expect(clippy::cast_precision_loss, reason = "numbers that lose precision are refused as too large")]
    let read = |value: &ConfigNode| match value.value {
        NodeValue::Integer(number) => Ok(number as f64),
        NodeValue::Unsigned(number) => Ok(number as f64),
        NodeValue::Float(number) => Ok(number),
        _ => Err(wrong_type_problem(value, &format!("`{name}`"), "a number")),
    };
    find_non_null(node, name).map(read).transpose()
}

pub fn integer_field(node: &ConfigNode, name: &str) -> Result<Option<i64>, ConfigProblem> {
    let read = |value: &ConfigNode| match value.value {
        NodeValue::Integer(number) => Ok(number),
        _ => Err(wrong_type_problem(value, &format!("`{name}`"), "a whole number")),
    };
    find_non_null(node, name).map(read).transpose()
}

/// Reads a list of texts.
pub fn text_list_field<'a>(node: &'a ConfigNode, name: &str) -> Result<Option<Vec<&'a str>>, ConfigProblem> {
    let read = |value: &'a ConfigNode| {
        let nodes = expect_list(value, &format!("`{name}`"))?;
        nodes.iter().map(|node| expect_text(node, &format!("an entry of `{name}`"))).collect()
    };
    find_non_null(node, name).map(read).transpose()
}

/// Returns the first unknown key.
pub fn find_unknown_key<'a>(
    entries: &'a [(ConfigNode, ConfigNode)],
    known: &[&str],
) -> Option<(&'a ConfigNode, &'a str)> {
    let mut keys = entries.iter().filter_map(|(node, _)| Some((node, key_text(node)?)));
    keys.find(|(_, name)| !known.contains(name))
}

fn wrong_type_problem(node: &ConfigNode, what: &str, expected: &str) -> ConfigProblem {
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
    ConfigProblem::new(format!("{what}: expected {expected}, found {found}")).with_range(at)
}
