//! Ways to write into a text what is to be said of a hook, the best looking first.
//!
//! They are found by the places of values and by indentation, which is right for YAML as people write it. Where it is not,
//! the text says something else than was meant: whoever asks has to look.

use std::ops::Range;

use super::{Said, is};
use crate::config::{Node, Value};

/// What stands in the place of what.
pub type Edit = (Range<usize>, String);

/// Places among comments that are tried.
const TRIES: usize = 16;

/// Ways to say it of an entry, each as changes in the order of the text.
pub fn ways(text: &str, entry: &Node, said: &Said) -> Vec<Vec<Edit>> {
    let ways = match &entry.value {
        Value::Text(_) => word(&Around::of(text, entry), entry, said),
        Value::Map(fields) => {
            let around = Around::of(text, entry);
            let mut ways: Vec<_> = fields.iter().filter_map(|(name, flag)| replaced(text, name, flag, said)).collect();
            ways.extend(match text.get(entry.at.start..).is_some_and(|rest| rest.starts_with('{')) {
                true => braces(text, entry, fields, said),
                false => block(&around, fields, said),
            });
            ways
        }
        _ => Vec::new(),
    };
    let fits = |(place, _): &Edit| text.get(place.clone()).is_some();
    ways.into_iter().filter(|edits| edits.iter().all(fits)).collect()
}

/// The field that is there, with its other value.
fn replaced(text: &str, name: &Node, value: &Node, said: &Said) -> Option<Vec<Edit>> {
    if !is(name, said.field()) {
        return None;
    }
    let new = said.written(quote(text, name.at.start));
    let colon = || Some(name.at.end + text.get(name.at.end..)?.find(':')? + 1);
    if let Value::List(items) = &value.value {
        let in_brackets = text.get(value.at.start..).is_some_and(|rest| rest.starts_with('['));
        let (place, new) = match (in_brackets, items.last()) {
            (true, _) => (value.at.start..end(text, value)?, new),
            (false, last) => (colon()?..last?.at.end, format!(" {new}")),
        };
        // A comment between its entries would be lost.
        return text.get(place.clone()).is_some_and(|old| !old.contains('#')).then(|| vec![(place, new)]);
    }
    if !text.get(value.at.clone())?.trim().is_empty() {
        return Some(vec![(value.at.clone(), new)]);
    }
    // Nothing is written after the colon.
    let colon = colon()?;
    Some(vec![(colon..colon, format!(" {new}"))])
}

/// The lines around the start of an entry.
struct Around<'a> {
    text: &'a str,
    /// Where the entry starts.
    start: usize,
    /// How far that is to the right.
    column: usize,
    newline: &'static str,
}

impl<'a> Around<'a> {
    fn of(text: &'a str, entry: &Node) -> Self {
        let start = entry.at.start.min(text.len());
        let mut around = Self { text, start, column: 0, newline: "\n" };
        around.column = start - around.line_start(start);
        let line = text.get(start..around.line_end(start)).unwrap_or_default();
        // The last line of a file may have no end.
        let whole = if line.ends_with('\n') { line } else { text };
        if whole.contains("\r\n") {
            around.newline = "\r\n";
        }
        around
    }

    fn line_start(&self, offset: usize) -> usize {
        self.text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
    }

    /// Where the next line begins.
    fn line_end(&self, offset: usize) -> usize {
        let after = self.text.get(offset..).and_then(|after| after.find('\n'));
        after.map_or(self.text.len(), |newline| offset + newline + 1)
    }

    /// The field as a line of its own.
    fn line(&self, place: usize, column: usize, said: &Said) -> Edit {
        let (newline, line) = (self.newline, format!("{:column$}{said}", ""));
        // And then it gets none.
        let unended = place == self.text.len() && !self.text.ends_with('\n');
        let line = if unended { format!("{newline}{line}") } else { format!("{line}{newline}") };
        (place..place, line)
    }

    /// Places from the end of the first field to this line, which begins the next: above the comments between them, as far as
    /// they are comments and not text.
    fn between_comments(&self, line: usize) -> Vec<usize> {
        let mut places = vec![line];
        let mut place = line;
        while place > self.start {
            place = self.line_start(place - 1);
            let content = self.text[place..].lines().next().unwrap_or_default().trim();
            if place <= self.start || !(content.is_empty() || content.starts_with('#')) {
                break;
            }
            places.push(place);
        }
        places.reverse();
        if places.len() > TRIES {
            places.truncate(TRIES);
            places.push(line);
        }
        places
    }

    /// Where the entry ends: without the comments behind it, and with them. What looks like a comment may be text.
    fn ends(&self) -> [usize; 2] {
        let first = self.line_end(self.start);
        let (mut offset, mut ends) = (first, [first; 2]);
        for row in self.text[first..].split_inclusive('\n') {
            offset += row.len();
            let content = row.trim_start_matches(' ');
            let is_inside = row.len() - content.len() >= self.column;
            match content.trim_end() {
                "" => {}
                comment if comment.starts_with('#') && is_inside => ends[1] = offset,
                comment if comment.starts_with('#') => {}
                _ if is_inside => ends = [offset; 2],
                _ => break,
            }
        }
        ends
    }
}

/// Below the first field, else at the end, else above everything.
fn block(around: &Around<'_>, fields: &[(Node, Node)], said: &Said) -> Vec<Vec<Edit>> {
    // What is merged in comes from earlier in the text.
    let later = fields.iter().map(|(name, _)| name.at.start).filter(|start| *start >= around.line_end(around.start));
    let next = later.min().map(|start| around.line_start(start));
    let below = next.into_iter().flat_map(|line| around.between_comments(line));
    let lines = below.chain(around.ends()).map(|place| vec![around.line(place, around.column, said)]);
    let above = format!("{said}{}{:column$}", around.newline, "", column = around.column);
    lines.chain([vec![(around.start..around.start, above)]]).collect()
}

/// After the last field, else before the first.
fn braces(text: &str, entry: &Node, fields: &[(Node, Node)], said: &Said) -> Vec<Vec<Edit>> {
    let own = || fields.iter().filter(|(name, _)| name.at.start > entry.at.start);
    let Some(first) = own().map(|(name, _)| name.at.start).min() else { return Vec::new() };
    let quote = quote(text, first);
    let field = field(said, quote);
    let last = own().max_by_key(|(name, _)| name.at.start).and_then(|(_, value)| end(text, value));
    let after = last.map(|end| vec![(end..end, format!(", {field}"))]);
    after.into_iter().chain([vec![(first..first, format!("{field}, "))]]).collect()
}

/// Where a value ends that stands in braces: of a list or a map only its start is known.
fn end(text: &str, value: &Node) -> Option<usize> {
    let (last, sign) = match &value.value {
        Value::List(entries) => (entries.last(), ']'),
        Value::Map(entries) => (entries.last().map(|(_, value)| value), '}'),
        _ => return Some(value.at.end),
    };
    let inside = last.map_or(Some(value.at.start + 1), |last| end(text, last))?;
    Some(inside + text.get(inside..)?.find(sign)? + 1)
}

/// A built-in that is only named gets fields.
fn word(around: &Around<'_>, entry: &Node, said: &Said) -> Vec<Vec<Edit>> {
    let line = around.line_start(around.start);
    let before = &around.text[line..around.start];
    let dash = before.find(|letter| letter != ' ').filter(|dash| before[*dash..].starts_with("- "));
    let fields = dash.map(|dash| {
        let blanks = before[dash + 1..].find(|letter| letter != ' ').unwrap_or(before.len() - dash - 1);
        let column = dash + 1 + blanks;
        let (start, end) = (line + column, around.line_end(around.start));
        vec![(start..start, "use: ".to_owned()), around.line(end, column, said)]
    });
    let Range { start, end } = entry.at;
    let quote = quote(around.text, start);
    let open = (start..start, format!("{{{quote}use{quote}: "));
    let close = (end..end, format!(", {}}}", field(said, quote)));
    fields.into_iter().chain([vec![open, close]]).collect()
}

fn field(said: &Said, quote: &str) -> String {
    format!("{quote}{}{quote}: {}", said.field(), said.written(quote))
}

/// Where somebody writes JSON, it stays that.
fn quote(text: &str, place: usize) -> &'static str {
    if text.get(place..).is_some_and(|rest| rest.starts_with('"')) { "\"" } else { "" }
}
