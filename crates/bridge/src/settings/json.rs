//! JSON with comments, edited as text: what is not edited keeps every byte.
//!
//! Invariants:
//! - `remove` undoes `append`, given the text from before.
//! - A comment stays behind what it was written behind.
//!
//! Not here: what is added (`hooks.rs`, `servers.rs`).

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::Unfit;

/// Comments and a comma at the end are what agents themselves allow here and there; nothing else is.
const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The object that a file holds; `None` for a file with nothing in it.
pub fn root(text: &str) -> Result<Option<Object<'_>>, Unfit> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &DIALECT).map_err(|error| Unfit::json(&error))?;
    match parsed.value {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(wrong("the file", &other, "an object")),
    }
}

/// A text with an object in it, where there was none.
pub fn with_root(text: &str) -> Result<String, Unfit> {
    let newline = newline(text);
    Ok(match root(text)? {
        Some(_) => text.to_owned(),
        None if text.trim().is_empty() => format!("{{}}{newline}"),
        // Nothing but comments.
        None => format!("{}{newline}{{}}{newline}", text.trim_end()),
    })
}

fn wrong(key: &str, found: &Value<'_>, wanted: &'static str) -> Unfit {
    let found = match found {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    };
    Unfit::Kind { key: key.to_owned(), found, wanted }
}

/// The member of that name. Which of two counts would be a guess.
pub fn member<'a, 'b>(object: &'b Object<'a>, name: &str, path: &str) -> Result<Option<&'b ObjectProp<'a>>, Unfit> {
    let mut found = object.properties.iter().filter(|member| member.name.as_str() == name);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(Unfit::Twice { key: path.to_owned() }),
        (first, None) => Ok(first),
    }
}

/// The object in a member; `path` is for whoever reads the error.
pub fn object<'a, 'b>(within: &'b Object<'a>, name: &str, path: &str) -> Result<Option<&'b Object<'a>>, Unfit> {
    match member(within, name, path)?.map(|member| &member.value) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(wrong(path, other, "an object")),
    }
}

pub fn array<'a, 'b>(within: &'b Object<'a>, name: &str, path: &str) -> Result<Option<&'b Array<'a>>, Unfit> {
    match member(within, name, path)?.map(|member| &member.value) {
        None => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(other) => Err(wrong(path, other, "a list")),
    }
}

/// The text of a string, if it is one.
pub fn string<'b>(object: &'b Object<'_>, name: &str) -> Option<&'b str> {
    object.get_string(name).map(|text| text.value.as_ref())
}

pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What stands between two brackets.
#[derive(Debug, Clone)]
pub struct Container {
    /// Where the opening bracket is.
    open: usize,
    /// Where the closing bracket is.
    close: usize,
    items: Vec<Range<usize>>,
}

impl From<&Object<'_>> for Container {
    fn from(object: &Object<'_>) -> Self {
        Self::new(object.range(), object.properties.iter().map(Ranged::range))
    }
}

impl From<&Array<'_>> for Container {
    fn from(array: &Array<'_>) -> Self {
        Self::new(array.range(), array.elements.iter().map(Ranged::range))
    }
}

impl Container {
    fn new(range: jsonc_parser::common::Range, items: impl Iterator<Item = jsonc_parser::common::Range>) -> Self {
        Self { open: range.start, close: range.end - 1, items: items.map(|item| item.start..item.end).collect() }
    }

    pub fn inner<'t>(&self, text: &'t str) -> &'t str {
        &text[self.open + 1..self.close]
    }

    /// Whether nothing at all stands in it, not even a comment.
    pub fn is_bare(&self, text: &str) -> bool {
        self.inner(text).trim().is_empty()
    }

    /// Whether the last item has a comma behind it, and where what belongs to that item ends: the comma, comments of its line.
    fn end(&self, text: &str) -> (bool, usize) {
        let Some(last) = self.items.last() else {
            return (false, self.open + 1 + self.inner(text).trim_end().len());
        };
        let comma = past_blank(text, last.end);
        let has_comma = text[comma..].starts_with(',');
        (has_comma, past_comments_of_line(text, if has_comma { comma + 1 } else { last.end }))
    }

    /// Whether the closing bracket is in the line of the last item.
    fn closes_inline(&self, text: &str) -> bool {
        !text[self.end(text).1..self.close].contains('\n')
    }

    /// Adds an item behind the last one.
    pub fn append(&self, text: &str, item: &str) -> String {
        let (newline, outer) = (newline(text), indent(text, self.open));
        let child = match self.items.last().and_then(|last| own_line(text, last.start)) {
            Some(indent) => indent.to_owned(),
            None => format!("{outer}{}", unit(text)),
        };
        let closing = if self.closes_inline(text) { format!("{newline}{outer}") } else { String::new() };
        let (has_comma, end) = self.end(text);
        let (before, after) = match self.items.last() {
            Some(last) if !has_comma => (format!("{},{}", &text[..last.end], &text[last.end..end]), ""),
            Some(_) => (text[..end].to_owned(), ","),
            None => (text[..end].to_owned(), ""),
        };
        let rest = if self.is_bare(text) && !closing.is_empty() { self.close } else { end };
        format!("{before}{newline}{child}{item}{after}{closing}{}", &text[rest..])
    }

    /// Takes an item away. `was` is the same container in the text from before it was added.
    pub fn remove(&self, text: &str, index: usize, was: Option<(&str, &Self)>) -> String {
        let item = &self.items[index];
        let previous = index.checked_sub(1).map_or(self.open + 1, |previous| self.items[previous].end);
        let after = past_blank(text, item.end);
        let has_comma = text[after..].starts_with(',');
        let mut end = if has_comma { after + 1 } else { item.end };
        let is_last = index + 1 == self.items.len();
        let mut closing = "";
        // An agent may have written its file anew since, in a form of its own: that form stays.
        let is_as_before = |before: &str, was: &Self| match (&self.items[..index], &was.items[..]) {
            ([.., kept], [.., last]) => blanks_before(text, kept.start) == blanks_before(before, last.start),
            _ => true,
        };
        if let Some((before, was)) =
            was.filter(|(before, was)| is_last && was.closes_inline(before) && is_as_before(before, was))
            && text[end..self.close].trim().is_empty()
        {
            (end, closing) = (self.close, &before[was.end(before).1..was.close]);
        }
        let mut start = text[..item.start].trim_end().len();
        // What follows must not become part of a comment.
        let ends_line = text[end..].trim_start_matches([' ', '\t']).starts_with(['\r', '\n']);
        if !ends_line && ends_in_line_comment(text, previous, start) {
            start = item.start;
        }
        let mut kept = text.to_owned();
        kept.replace_range(start..end, closing);
        if self.items.len() == 1 {
            let close = self.close + closing.len() - (end - start);
            let inner = &kept[self.open + 1..close];
            let was = was.filter(|(_, was)| was.items.is_empty()).map_or("", |(text, was)| was.inner(text));
            if inner.trim() == was.trim() {
                kept.replace_range(self.open + 1..close, was);
            }
        } else if is_last && !has_comma {
            let comma = past_blank(text, previous);
            if text[comma..].starts_with(',') {
                kept.replace_range(comma..=comma, "");
            }
        }
        kept
    }
}

/// What stands before the file's object, if that is empty and nothing but blanks stands behind it.
pub fn around_bare_root(text: &str) -> Option<&str> {
    let root = container(text, &[])?;
    (root.is_bare(text) && text[root.close + 1..].trim().is_empty()).then(|| text[..root.open].trim())
}

/// The container at a path of names, if there is exactly one.
pub fn container(text: &str, path: &[&str]) -> Option<Container> {
    let root = root(text).ok()??;
    let Some((last, parents)) = path.split_last() else { return Some((&root).into()) };
    let parent = parents.iter().try_fold(&root, |object, name| self::object(object, name, name).ok()?)?;
    match &member(parent, last, last).ok()??.value {
        Value::Object(object) => Some(object.into()),
        Value::Array(array) => Some(array.into()),
        _ => None,
    }
}

/// Takes a member away. `before` is the text from before it was added.
pub fn without_member(text: &str, parents: &[&str], name: &str, before: Option<&str>) -> Option<String> {
    let root = root(text).ok()??;
    let parent = parents.iter().try_fold(&root, |object, name| self::object(object, name, name).ok()?)?;
    let index = parent.properties.iter().position(|member| member.name.as_str() == name)?;
    let was = before.and_then(|before| Some((before, container(before, parents)?)));
    Some(Container::from(parent).remove(text, index, was.as_ref().map(|(text, was)| (*text, was))))
}

pub(super) fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// How deep a level is indented in this file.
fn unit(text: &str) -> &str {
    let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut indents =
        text.lines().skip(1).filter(|line| line.trim_start().starts_with('"')).map(|line| &line[..blanks(line)]);
    indents.find(|indent| !indent.is_empty()).unwrap_or("  ")
}

/// The blanks at the beginning of the line that a place is in.
fn indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The same, if nothing else stands before the place.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    Some(&text[start..at]).filter(|blanks| blanks.trim_start_matches([' ', '\t']).is_empty())
}

/// The blanks and line ends in front of a place.
fn blanks_before(text: &str, at: usize) -> &str {
    &text[text[..at].trim_end().len()..at]
}

/// The next place that is neither blank nor a comment.
fn past_blank(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        at = text.len() - text[at..].trim_start().len();
        at += match comment(&text[at..]) {
            0 => return at,
            length => length,
        };
    }
}

/// The place behind the comments that follow in the same line.
fn past_comments_of_line(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let blanks = text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len();
        at += match comment(&text[at + blanks..]) {
            0 => return at,
            length => blanks + length,
        };
    }
}

/// How long the comment is that a text begins with.
fn comment(text: &str) -> usize {
    match text.get(..2) {
        Some("//") => text.find(['\r', '\n']).unwrap_or(text.len()),
        Some("/*") => text[2..].find("*/").map_or(text.len(), |end| end + 4),
        _ => 0,
    }
}

/// Whether a line comment ends at a place, seen from one in front of it that is in no comment.
fn ends_in_line_comment(text: &str, from: usize, place: usize) -> bool {
    let mut at = from;
    while at < place {
        let rest = &text[at..];
        match comment(rest) {
            0 => at += rest.chars().next().map_or(1, char::len_utf8),
            length if rest.starts_with("//") && at + length >= place => return true,
            length => at += length,
        }
    }
    false
}
