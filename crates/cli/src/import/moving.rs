//! A hook that is to stand under another point: its lines are taken from the one list and put at the end of the other.
//!
//! Invariant: what comes out says what was there, with this hook elsewhere. If anything else would change, nothing comes out.

use std::collections::BTreeSet;

use super::edit::{Editing, Lines, Obstacle, find, obstacle};
use super::field::{entry, key};
use crate::config::{self, Config, Node, Point, Value};
use crate::switch::is_same;

/// The configuration with the hook of that name under another point.
pub fn moved(config: &Config, name: &str, to: Point) -> Result<Config, Obstacle> {
    let text: &str = config.text();
    let tree = config::tree(text).map_err(|problem| Obstacle::Layout(problem.to_string()))?;
    let edited = edited(text, &tree, name, to)?;
    let new = config::tree(&edited).map_err(|problem| Obstacle::Layout(problem.to_string()))?;
    if !is_moved(&tree, &new, name, to) {
        return Err(Obstacle::Shared);
    }
    let after = Config::of(config.file(), &edited).map_err(|error| Obstacle::Wrong(error.into_problem()))?;
    let names = |config: &Config| config.hooks.iter().map(|hook| hook.name.clone()).collect::<BTreeSet<_>>();
    match names(config) == names(&after) {
        true => Ok(after),
        false => obstacle("hooks without a name are called by their places, which would be others"),
    }
}

fn edited(text: &str, tree: &Node, name: &str, to: Point) -> Result<String, Obstacle> {
    let Value::Map(top) = &tree.value else { return obstacle("it is no map") };
    let Some((key, items, index)) = place(tree, name) else {
        return obstacle("it has no `name`, or is not one of the project's `hooks`");
    };
    let mut editing = Editing::of(text, top);
    let line = editing.line(items[index].at.start);
    let start = editing.line_start(line);
    let dash = text[start..].find(|letter| letter != ' ').unwrap_or_default();
    let before = text.get(start + dash..items[index].at.start).unwrap_or_default();
    if !before.strip_prefix('-').is_some_and(|blanks| blanks.trim_matches(' ').is_empty()) {
        return obstacle("it is not written after a `- ` on a line of its own");
    }
    let end = editing.block_end(line, dash, false);
    let Some(rows) =
        text.get(start..end).unwrap_or_default().lines().map(|row| within(row, dash)).collect::<Option<Vec<_>>>()
    else {
        return obstacle("its lines stand further to the left than it does");
    };
    editing.replace(start..end, "");
    if items.len() == 1 {
        let Some(colon) = text.get(key.at.end..start).and_then(|rest| rest.find(':')) else {
            return obstacle("its point cannot be found");
        };
        // Nothing is another thing than none.
        let whole = editing.line_start(editing.line(key.at.start))..key.at.end + colon + 1;
        editing.replace(whole.clone(), &format!("{} []", &text[whole]));
    }
    let lines =
        |indent: usize| rows.iter().map(|row| format!("{}\n", format!("{:indent$}{row}", "").trim_end())).collect();
    let lines: Lines<'_> = Box::new(lines);
    editing.put(top, &[(to, lines)])?;
    Ok(editing.done())
}

/// A line without what it is indented by.
fn within(row: &str, indent: usize) -> Option<&str> {
    let (blanks, rest) = row.split_at_checked(indent).unwrap_or((row, ""));
    blanks.trim_matches(' ').is_empty().then_some(rest)
}

/// Where the hook of that name stands: the key of its point, the list and its number there.
fn place<'t>(tree: &'t Node, name: &str) -> Option<(&'t Node, &'t [Node], usize)> {
    let (_, hooks) = entry(tree, "hooks")?;
    let Value::Map(points) = &hooks.value else { return None };
    points.iter().find_map(|(key, list)| {
        let Value::List(items) = &list.value else { return None };
        let index = items.iter().position(|item| is_called(item, name))?;
        Some((key, items.as_slice(), index))
    })
}

fn is_called(item: &Node, name: &str) -> bool {
    entry(item, "name").is_some_and(|(_, called)| key(called) == Some(name))
}

/// Whether two trees are the same but for the point of that hook.
fn is_moved(old: &Node, new: &Node, name: &str, to: Point) -> bool {
    let (Value::Map(before), Value::Map(after)) = (&old.value, &new.value) else { return false };
    let mut pairs = before.iter().zip(after);
    let is_rest_same = before.len() == after.len()
        && pairs.all(|(old, new)| is_same(&old.0, &new.0) && (key(&old.0) == Some("hooks") || is_same(&old.1, &new.1)));
    let hooks = |tree| entry(tree, "hooks").map(|(_, hooks)| &hooks.value);
    let (Some(Value::Map(before)), Some(Value::Map(after))) = (hooks(old), hooks(new)) else { return false };
    let same_others = after.iter().all(|(point, list)| {
        let Some(point) = key(point).and_then(Point::parse) else { return false };
        let old = find(before, |name| Point::parse(name) == Some(point)).map(|(_, list)| without(list, name));
        let (old, new) = (old.unwrap_or_default(), without(list, name));
        old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| is_same(old, new))
    });
    let is_kept = |(key, _): &(Node, Node)| after.iter().any(|(other, _)| is_same(key, other));
    let at = |tree| place(tree, name).map(|(key, items, index)| (key, &items[index]));
    let (Some((_, old)), Some((point, new))) = (at(old), at(new)) else { return false };
    is_rest_same
        && same_others
        && before.iter().all(is_kept)
        && is_same(old, new)
        && key(point).and_then(Point::parse) == Some(to)
}

/// The entries of a list but for the hook of that name.
fn without<'t>(list: &'t Node, name: &str) -> Vec<&'t Node> {
    match &list.value {
        Value::List(items) => items.iter().filter(|item| !is_called(item, name)).collect(),
        _ => Vec::new(),
    }
}
