//! Edits of a configuration's text that keep its comments, order and layout.
//!
//! ```text
//! Config ─ located tree ─► places in the text ─ insert, replace, remove ─► edited text ─ verify ─► Config
//! ```
//!
//! Invariants:
//! - The edited text parses to the old tree with exactly the intended change, and to a valid configuration. Otherwise the edit
//!   fails. So simple rules find the places, and no rule has to be right for every way to write YAML.
//! - No byte outside of the inserted, replaced or removed text changes.
//!
//! Not here: which hooks to add (`import`); resolving the name of a hook, and writing the file (`cli`).

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::{fmt, mem};

use crate::{Config, ConfigNode, NodeValue, parse_hook_point};

/// The reason why a configuration cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditObstacle {
    #[error("its text has a form that Windlass does not edit, such as an anchor that repeats it or a list on one line")]
    Layout,
    #[error("the configuration would be wrong then: {0}")]
    Invalid(String),
}

/// A field of a hook with its new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookField {
    Enabled(bool),
    Priority(i64),
}

impl HookField {
    /// Returns the key and the value as YAML text.
    fn key_value(self) -> (&'static str, String) {
        match self {
            Self::Enabled(on) => ("enabled", on.to_string()),
            Self::Priority(priority) => ("priority", priority.to_string()),
        }
    }
}

impl fmt::Display for HookField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, value) = self.key_value();
        write!(f, "{key}: {value}")
    }
}

/// Sets a field of the hook with this index. A hook is enabled without the field, so enabling it removes a field without a
/// comment: the text is then what it was before the hook was disabled.
pub fn set_hook_field(config: &Config, hook: usize, field: HookField) -> Result<Config, EditObstacle> {
    let (key, value) = field.key_value();
    if field == HookField::Enabled(true)
        && let Ok(edited) = apply_field_edit(config, hook, (key, &[]), |text, entry| removal_edits(text, entry, key))
    {
        return Ok(edited);
    }
    let values = [value.clone()];
    apply_field_edit(config, hook, (key, &values), |text, entry| field_edits(text, entry, key, &value))
}

/// A range of a text, and the text to put there.
type TextEdit = (Range<usize>, String);

/// Applies the first edit of a hook's entry after which its field has the wanted values, and everything else is as before.
fn apply_field_edit(
    config: &Config,
    hook: usize,
    (key, wanted): (&str, &[String]),
    list_edits: impl Fn(&str, &ConfigNode) -> Option<Vec<TextEdit>>,
) -> Result<Config, EditObstacle> {
    let (text, start) = (&**config.text(), config.hooks[hook].at.start);
    let mut tree = parse_tree(text)?;
    let mut edits = Vec::new();
    visit_entries(&mut tree, start, &mut |entry| edits.extend(list_edits(text, entry)));
    let (old, _) = without_field(text, start, key)?;
    for (place, new) in edits.into_iter().flatten().filter(|(place, _)| text.get(place.clone()).is_some()) {
        let mut edited = text.to_owned();
        edited.replace_range(place, &new);
        if without_field(&edited, start, key).is_ok_and(|(new, values)| new == old && values == wanted) {
            return validate_edit(config, &edited);
        }
    }
    Err(EditObstacle::Layout)
}

/// Merges a fragment of a configuration, in block style, into the text: new entries of lists and new keys of maps come last.
pub fn append_fragment(config: &Config, fragment: &str) -> Result<Config, EditObstacle> {
    let text: &str = if config.text().trim().is_empty() { "version: 1\n" } else { config.text() };
    let (mut tree, added) = (parse_tree(text)?, parse_tree(fragment)?);
    let mut merge = TextMerge { text, fragment, insertions: Vec::new() };
    merge.collect_insertions(None, &tree, &added, fragment.len()).ok_or(EditObstacle::Layout)?;
    merge.insertions.sort_by_key(|(place, _)| *place);
    let mut edited = text.to_owned();
    for (place, lines) in merge.insertions.iter().rev() {
        edited.insert_str(*place, lines);
    }
    merge_trees(&mut tree, added);
    match parse_tree(&edited)? == tree {
        true => validate_edit(config, &edited),
        false => Err(EditObstacle::Layout),
    }
}

fn parse_tree(text: &str) -> Result<ConfigNode, EditObstacle> {
    crate::tree(text).map_err(|_| EditObstacle::Layout)
}

fn validate_edit(config: &Config, edited: &str) -> Result<Config, EditObstacle> {
    Config::from_text(config.file(), edited).map_err(|error| EditObstacle::Invalid(error.into_message()))
}

/// Visits the list entries that start at an offset: several if aliases repeat them.
fn visit_entries(node: &mut ConfigNode, start: usize, visit: &mut impl FnMut(&mut ConfigNode)) {
    match &mut node.value {
        NodeValue::List(entries) => entries.iter_mut().for_each(|entry| match entry.at.start == start {
            true => visit(entry),
            false => visit_entries(entry, start, visit),
        }),
        NodeValue::Map(entries) => entries.iter_mut().for_each(|(_, value)| visit_entries(value, start, visit)),
        _ => {}
    }
}

/// Returns the tree of a text without a field of the entry at an offset, and the values of that field.
fn without_field(text: &str, start: usize, key: &str) -> Result<(ConfigNode, Vec<String>), EditObstacle> {
    let mut tree = parse_tree(text)?;
    let mut values = Vec::new();
    visit_entries(&mut tree, start, &mut |entry| {
        if matches!(entry.value, NodeValue::Text(_)) {
            let name = ConfigNode { at: 0..0, value: NodeValue::Text("use".to_owned()) };
            let word = ConfigNode { at: 0..0, value: mem::replace(&mut entry.value, NodeValue::Null) };
            entry.value = NodeValue::Map(vec![(name, word)]);
        }
        if let NodeValue::Map(fields) = &mut entry.value {
            let removed = fields.extract_if(.., |(name, _)| is_key_named(name, key));
            values.extend(removed.map(|(_, value)| text.get(value.at).unwrap_or_default().to_owned()));
        }
    });
    Ok((tree, values))
}

/// Returns candidate edits that set a field of an entry, the most readable one first.
fn field_edits(text: &str, entry: &ConfigNode, key: &str, value: &str) -> Option<Vec<TextEdit>> {
    let (start, field) = (entry.at.start, format!("{key}: {value}"));
    let NodeValue::Map(fields) = &entry.value else {
        let word = text.get(entry.at.clone())?;
        return Some(vec![(entry.at.clone(), format!("{{use: {word}, {field}}}"))]);
    };
    let present = fields.iter().find(|(name, _)| is_key_named(name, key));
    let mut edits: Vec<_> = present.map(|(_, old)| (old.at.clone(), value.to_owned())).into_iter().collect();
    if let Some(inside) = text.get(start..)?.strip_prefix('{') {
        let first = text.len() - inside.trim_start().len();
        edits.push((first..first, format!("{field}, ")));
    } else {
        let (newline, column) = (newline_style(text), start - find_line_start(text, start));
        let below = find_line_end(text, start);
        edits.push((below..below, format!("{newline}{:column$}{field}", "")));
        edits.push((start..start, format!("{field}{newline}{:column$}", "")));
    }
    Some(edits)
}

/// Returns candidate edits that remove a field without a comment: with its line, with the separator after it, or with the
/// braces that came with it. A comment at the indentation of the field, on the line above, is about the field.
fn removal_edits(text: &str, entry: &ConfigNode, key: &str) -> Option<Vec<TextEdit>> {
    let NodeValue::Map(fields) = &entry.value else { return None };
    let index = fields.iter().position(|(name, _)| is_key_named(name, key))?;
    let (start, end) = (fields[index].0.at.start, fields[index].1.at.end);
    let field = text.get(start..end)?;
    let rest = text[end..].trim_start();
    let mut edits = Vec::new();
    let line = find_line_start(text, start)..find_line_end(text, end);
    let above = text[..line.start].lines().next_back().unwrap_or_default();
    if above.trim_start().starts_with('#') && indent_width(above) == start - line.start {
        return None;
    }
    if text[line.clone()].trim() == field {
        let before = &text[..line.start];
        let before = before.strip_suffix('\n').unwrap_or(before);
        edits.push((before.strip_suffix('\r').unwrap_or(before).len()..line.end, String::new()));
    }
    let next = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    if index + 1 < fields.len() && !rest.starts_with('#') && !next.starts_with('#') {
        edits.push((start..text.len() - next.len(), String::new()));
    }
    if let [(name, word), _] = fields.as_slice()
        && is_key_named(name, "use")
        && text[entry.at.start..].starts_with('{')
        && rest.starts_with('}')
    {
        edits.push((entry.at.start..text.len() - rest.len() + 1, text.get(word.at.clone())?.to_owned()));
    }
    Some(edits)
}

/// Insertions into a text that merge a fragment into it.
struct TextMerge<'a> {
    text: &'a str,
    fragment: &'a str,
    insertions: Vec<(usize, String)>,
}

impl TextMerge<'_> {
    /// Collects insertions for a value of the fragment, whose lines end at `end`, into the value that the text has under `key`
    /// (`None`: the whole text). Returns `None` if the values cannot be merged.
    fn collect_insertions(
        &mut self,
        key: Option<&ConfigNode>,
        old: &ConfigNode,
        new: &ConfigNode,
        end: usize,
    ) -> Option<()> {
        let mut lines = String::new();
        let last = match (&old.value, &new.value) {
            (NodeValue::Map(_) | NodeValue::Null, NodeValue::Map(added)) => {
                let present = if let NodeValue::Map(present) = &old.value { present.as_slice() } else { &[] };
                for (index, (name, value)) in added.iter().enumerate() {
                    let end =
                        added.get(index + 1).map_or(end, |(next, _)| find_line_start(self.fragment, next.at.start));
                    match present.iter().find(|(other, _)| is_same_key(other, name)) {
                        Some((name, old)) => self.collect_insertions(Some(name), old, value, end)?,
                        None => lines += self.fragment.get(find_line_start(self.fragment, name.at.start)..end)?,
                    }
                }
                present.last().map(|(name, _)| name)
            }
            (NodeValue::List(present), NodeValue::List(added)) => {
                lines += self.fragment.get(find_line_start(self.fragment, added.first()?.at.start)..end)?;
                present.last()
            }
            _ => return None,
        };
        if lines.is_empty() {
            return Some(());
        }
        let indent = match (last, key) {
            (Some(last), _) => indent_width(&self.text[find_line_start(self.text, last.at.start)..]),
            (None, Some(key)) => key.at.start - find_line_start(self.text, key.at.start) + 2,
            (None, None) => 0,
        };
        let newline = newline_style(self.text);
        let (place, separator) = match (last, key) {
            (_, None) => (self.text.trim_end().len(), newline),
            (Some(last), _) => (find_block_end(self.text, last.at.start, indent), ""),
            (None, Some(key)) => (find_line_end(self.text, key.at.start), ""),
        };
        let (old_indent, mut inserted) = (indent_width(&lines), separator.to_owned());
        for line in lines.lines() {
            let line = line.get(old_indent..).unwrap_or_default();
            let indent = if line.is_empty() { 0 } else { indent };
            inserted += &format!("{newline}{:indent$}{line}", "");
        }
        self.insertions.push((place, inserted));
        Some(())
    }
}

/// Merges a tree into another one, as `TextMerge` merges their texts.
fn merge_trees(old: &mut ConfigNode, new: ConfigNode) {
    match (&mut old.value, new.value) {
        (NodeValue::Map(present), NodeValue::Map(added)) => {
            for (name, value) in added {
                match present.iter_mut().find(|(other, _)| is_same_key(other, &name)) {
                    Some((_, old)) => merge_trees(old, value),
                    None => present.push((name, value)),
                }
            }
        }
        (NodeValue::List(present), NodeValue::List(added)) => present.extend(added),
        (old, new) => *old = new,
    }
}

fn is_key_named(name: &ConfigNode, key: &str) -> bool {
    matches!(&name.value, NodeValue::Text(name) if name == key)
}

/// Compares two keys. Two spellings of one point are equal.
fn is_same_key(one: &ConfigNode, other: &ConfigNode) -> bool {
    let (NodeValue::Text(name), NodeValue::Text(key)) = (&one.value, &other.value) else { return false };
    name == key || parse_hook_point(name).is_some_and(|point| parse_hook_point(key) == Some(point))
}

fn newline_style(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn find_line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the end of the line without its newline.
fn find_line_end(text: &str, offset: usize) -> usize {
    text[offset..].find(['\r', '\n']).map_or(text.len(), |length| offset + length)
}

fn indent_width(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns the end of the last line that belongs to the block at `start`: it is indented further, or has a `-` at the same column.
fn find_block_end(text: &str, start: usize, indent: usize) -> usize {
    let mut end = find_line_end(text, start);
    let mut offset = end;
    for line in text[end..].split_inclusive('\n') {
        offset += line.len();
        let content = line.trim();
        let depth = indent_width(line);
        if depth > indent && !content.is_empty() || depth == indent && content.starts_with('-') {
            end = offset - (line.len() - line.trim_end_matches(['\r', '\n']).len());
        } else if !content.is_empty() && !content.starts_with('#') {
            break;
        }
    }
    end
}
