//! What is under a key, of the type that it has to be.

use crate::config::{Node, Problem, Value, quoted};

/// The text of a key.
pub fn key(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The entry of an object under a key, with the key.
pub fn entry<'a>(node: &'a Node, name: &str) -> Option<(&'a Node, &'a Node)> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find(|(found, _)| key(found) == Some(name)).map(|(key, value)| (key, value))
}

/// The same, where `null` is as good as nothing.
fn given<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    entry(node, name).map(|(_, value)| value).filter(|value| !matches!(value.value, Value::Null))
}

pub fn map<'a>(node: &'a Node, what: &str) -> Result<&'a [(Node, Node)], Problem> {
    match &node.value {
        Value::Map(entries) => Ok(entries),
        _ => Err(wrong(node, what, "an object: `{…}`")),
    }
}

pub fn list<'a>(node: &'a Node, what: &str) -> Result<&'a [Node], Problem> {
    match &node.value {
        Value::List(nodes) => Ok(nodes),
        _ => Err(wrong(node, what, "a list: `[…]`")),
    }
}

pub fn string<'a>(node: &'a Node, what: &str) -> Result<&'a str, Problem> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(wrong(node, what, "text in double quotes")),
    }
}

pub fn text<'a>(node: &'a Node, name: &str) -> Result<Option<&'a str>, Problem> {
    given(node, name).map(|value| string(value, &format!("`{name}`"))).transpose()
}

pub fn flag(node: &Node, name: &str) -> Result<Option<bool>, Problem> {
    let read = |value: &Node| match value.value {
        Value::Bool(flag) => Ok(flag),
        _ => Err(wrong(value, &format!("`{name}`"), "`true` or `false`")),
    };
    given(node, name).map(read).transpose()
}

pub fn number(node: &Node, name: &str) -> Result<Option<f64>, Problem> {
    #[expect(clippy::cast_precision_loss, reason = "numbers that lose precision are refused as too large")]
    let read = |value: &Node| match value.value {
        Value::Integer(number) => Ok(number as f64),
        Value::Unsigned(number) => Ok(number as f64),
        Value::Float(number) => Ok(number),
        _ => Err(wrong(value, &format!("`{name}`"), "a number")),
    };
    given(node, name).map(read).transpose()
}

pub fn integer(node: &Node, name: &str) -> Result<Option<i64>, Problem> {
    let read = |value: &Node| match value.value {
        Value::Integer(number) => Ok(number),
        _ => Err(wrong(value, &format!("`{name}`"), "a whole number")),
    };
    given(node, name).map(read).transpose()
}

/// A list of texts.
pub fn texts<'a>(node: &'a Node, name: &str) -> Result<Option<Vec<&'a str>>, Problem> {
    let read = |value: &'a Node| {
        let nodes = list(value, &format!("`{name}`"))?;
        nodes.iter().map(|node| string(node, &format!("an entry of `{name}`"))).collect()
    };
    given(node, name).map(read).transpose()
}

/// The first key that is none of these.
pub fn stranger<'a>(entries: &'a [(Node, Node)], known: &[&str]) -> Option<(&'a Node, &'a str)> {
    let mut keys = entries.iter().filter_map(|(node, _)| Some((node, key(node)?)));
    keys.find(|(_, name)| !known.contains(name))
}

fn wrong(node: &Node, what: &str, expected: &str) -> Problem {
    let found = match &node.value {
        Value::Null => "`null`".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Integer(value) => format!("`{value}`"),
        Value::Unsigned(value) => format!("`{value}`"),
        Value::Float(value) => format!("`{value}`"),
        Value::Text(text) => format!("the text {}", quoted(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "an object".to_owned(),
    };
    // A whole object would be marked to its end otherwise.
    let at = node.at.start..node.at.start + 1;
    let at = if matches!(node.value, Value::List(_) | Value::Map(_)) { at } else { node.at.clone() };
    Problem::new(format!("{what}: expected {expected}, found {found}")).at(at)
}
