//! Where hooks stand in the tree of a configuration.

use crate::config::{Node, Value};

/// The way from the top of a tree: which value of a map, which entry of a list.
pub type Place = Vec<usize>;

/// The place of each hook, in the order of `Config::hooks`: the project's, then types', then agents', then notices.
pub fn all(tree: &Node) -> Option<Vec<Place>> {
    let mut places = Vec::new();
    if let Some((index, hooks)) = under(tree, "hooks") {
        points(&[index], hooks, &mut places)?;
    }
    for section in ["task_types", "agents"] {
        let Some((section, owners)) = under(tree, section) else { continue };
        for (owner, index) in by_name(owners)? {
            if let Some((hooks, node)) = under(owner, "hooks") {
                points(&[section, index, hooks], node, &mut places)?;
            }
        }
    }
    if let Some((index, notices)) = under(tree, "notify") {
        entries(&[index], notices, &mut places)?;
    }
    Some(places)
}

/// What stands at a place.
pub fn at<'t>(tree: &'t Node, place: &[usize]) -> Option<&'t Node> {
    let Some((index, rest)) = place.split_first() else { return Some(tree) };
    let next = match &tree.value {
        Value::Map(entries) => entries.get(*index).map(|(_, value)| value),
        Value::List(entries) => entries.get(*index),
        _ => None,
    };
    at(next?, rest)
}

/// The value of a map under a key.
fn under<'t>(node: &'t Node, name: &str) -> Option<(usize, &'t Node)> {
    let Value::Map(entries) = &node.value else { return None };
    let found = entries.iter().enumerate().find(|(_, (key, _))| super::is(key, name));
    found.map(|(index, (_, value))| (index, value))
}

/// The values of a map in the order of their names.
fn by_name(node: &Node) -> Option<Vec<(&Node, usize)>> {
    let entries = match &node.value {
        Value::Null => return Some(Vec::new()),
        Value::Map(entries) => entries,
        _ => return None,
    };
    let named = entries.iter().enumerate().map(|(index, (name, value))| match &name.value {
        Value::Text(name) => Some((name, value, index)),
        _ => None,
    });
    let mut named: Vec<_> = named.collect::<Option<_>>()?;
    named.sort_by_key(|(name, ..)| *name);
    Some(named.into_iter().map(|(_, value, index)| (value, index)).collect())
}

/// The hooks of a map from points to lists.
fn points(above: &[usize], node: &Node, places: &mut Vec<Place>) -> Option<()> {
    match &node.value {
        Value::Null => Some(()),
        Value::Map(points) => points
            .iter()
            .enumerate()
            .try_for_each(|(index, (_, list))| entries(&[above, &[index]].concat(), list, places)),
        _ => None,
    }
}

fn entries(above: &[usize], node: &Node, places: &mut Vec<Place>) -> Option<()> {
    match &node.value {
        Value::Null => {}
        Value::List(entries) => places.extend((0..entries.len()).map(|index| [above, &[index]].concat())),
        _ => return None,
    }
    Some(())
}
