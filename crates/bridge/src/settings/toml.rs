//! Our entries in settings that are TOML: Kimi's hooks, Codex's MCP server.
//!
//! They are added at the end of the file, as tables of their own, and known again by what they say.

use std::ops::Range;

use toml_edit::{Array, Document, Item, Table, TableLike, Value};

use super::command::{self, Program};
use super::json::{newline, quoted};
use super::servers::NAME;
use super::{Before, Unfit, table};
use crate::{Agent, Moment};

const HOOKS: &str = "hooks";
const SERVERS: &str = "mcp_servers";

fn parse(text: &str) -> Result<Document<&str>, Unfit> {
    Document::parse(text).map_err(|error| Unfit::toml(&error, text))
}

/// Text as a value.
fn string(text: &str) -> String {
    quoted(text).replace('\u{7f}', "\\u007f")
}

/// The list of hooks, in one of the two ways in which it can be written.
enum List<'a> {
    Tables(Vec<&'a Table>),
    Inline(&'a Array),
}

fn list<'a>(document: &'a Document<&str>) -> Result<List<'a>, Unfit> {
    match document.get(HOOKS) {
        None => Ok(List::Tables(Vec::new())),
        Some(Item::ArrayOfTables(tables)) => Ok(List::Tables(tables.iter().collect())),
        Some(Item::Value(Value::Array(array))) => Ok(List::Inline(array)),
        Some(other) => {
            let found = if other.is_table_like() { "a table" } else { "a value" };
            Err(Unfit::Kind { key: HOOKS.to_owned(), found, wanted: "a list of tables" })
        }
    }
}

/// An entry of ours.
struct Found {
    /// Its place in the list.
    index: usize,
    event: String,
    values: Vec<(Range<usize>, String)>,
    whole: Range<usize>,
}

fn found(text: &str, agent: Agent) -> Result<Vec<Found>, Unfit> {
    let document = parse(text)?;
    let list = list(&document)?;
    let entries: Vec<(&dyn TableLike, Range<usize>)> = match &list {
        List::Tables(tables) => tables.iter().map(|table| (*table as &dyn TableLike, section(text, table))).collect(),
        List::Inline(array) => {
            let inline = array.iter().map(|value| Some((value.as_inline_table()? as &dyn TableLike, value.span()?)));
            inline.collect::<Option<_>>().ok_or_else(|| Unfit::Closed { key: HOOKS.to_owned() })?
        }
    };
    let ours = |(index, (entry, whole)): (usize, (&dyn TableLike, Range<usize>))| {
        let text = |name| entry.get(name).and_then(Item::as_str);
        let command = text("command").filter(|command| command::is_ours(command, agent))?;
        let span = |name| entry.get(name).and_then(Item::span);
        let timeout = entry.get("timeout").and_then(Item::as_integer).map(|number| number.to_string());
        let values =
            span("command").map(|span| (span, command.to_owned())).into_iter().chain(span("timeout").zip(timeout));
        Some(Found { index, event: text("event").unwrap_or_default().to_owned(), values: values.collect(), whole })
    };
    Ok(entries.into_iter().enumerate().filter_map(ours).collect())
}

pub fn has_hooks(text: &str, agent: Agent) -> bool {
    found(text, agent).is_ok_and(|found| !found.is_empty())
}

pub fn with_hooks(text: &str, agent: Agent, program: &Program) -> Result<String, Unfit> {
    let mut text = text.to_owned();
    let event = |moment: &Moment| table::event(agent, *moment);
    let mut seen: Vec<String> = Vec::new();
    // What is not wanted, is there twice, or lacks a value, from the last to the first.
    for entry in found(&text, agent)?.into_iter().rev() {
        let is_wanted = Moment::ALL.iter().filter_map(event).any(|event| event == entry.event);
        if !is_wanted || seen.contains(&entry.event) || entry.values.len() < 2 {
            text = without_one(&text, &entry)?;
        }
        seen.push(entry.event);
    }
    for moment in Moment::ALL {
        let Some(event) = event(moment) else { continue };
        let patience = table::patience(agent, *moment);
        let command = command::line(program, agent, *moment, table::within(patience));
        let timeout = table::timeout(agent, patience).to_string();
        match found(&text, agent)?.into_iter().find(|found| found.event == event) {
            Some(found) => {
                let wanted = [(command.clone(), string(&command)), (timeout.clone(), timeout)];
                let mut edits: Vec<_> = found.values.into_iter().zip(wanted).collect();
                edits.sort_by_key(|((span, _), _)| std::cmp::Reverse(span.start));
                for ((span, value), (wanted, written)) in edits {
                    if value != wanted {
                        text.replace_range(span, &written);
                    }
                }
            }
            None => text = with_one(&text, event, &command, &timeout)?,
        }
    }
    Ok(text)
}

fn with_one(text: &str, event: &str, command: &str, timeout: &str) -> Result<String, Unfit> {
    let fields = [("event", string(event)), ("command", string(command)), ("timeout", timeout.to_owned())];
    let document = parse(text)?;
    let List::Inline(array) = list(&document)? else { return extended(text, "[[hooks]]", &fields) };
    let closed = || Unfit::Closed { key: HOOKS.to_owned() };
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let entry = format!("{{ {} }}", fields.join(", "));
    let mut text = text.to_owned();
    match array.iter().last().map(Value::span) {
        Some(span) => text.insert_str(span.ok_or_else(closed)?.end, &format!(", {entry}")),
        None => text.insert_str(array.span().ok_or_else(closed)?.start + 1, &entry),
    }
    Ok(text)
}

/// The text with a table at its end.
fn extended(text: &str, header: &str, fields: &[(&str, String)]) -> Result<String, Unfit> {
    let newline = newline(text);
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => newline,
        _ => &newline.repeat(2),
    };
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name} = {value}{newline}")).collect();
    let extended = format!("{text}{gap}{header}{newline}{}", fields.concat());
    // A list or a table that is closed where it was written takes no more.
    match parse(&extended) {
        Ok(_) => Ok(extended),
        Err(_) => Err(Unfit::Closed { key: header.trim_matches(['[', ']']).to_owned() }),
    }
}

pub fn without_hooks(text: &str, agent: Agent, before: Before<'_>) -> Result<String, Unfit> {
    let found = found(text, agent)?;
    if found.is_empty() {
        return Ok(text.to_owned());
    }
    let kept = found.iter().rev().try_fold(text.to_owned(), |text, found| without_one(&text, found))?;
    Ok(without_last_newline(kept, before))
}

fn without_one(text: &str, found: &Found) -> Result<String, Unfit> {
    let document = parse(text)?;
    let mut kept = text.to_owned();
    let Found { index, whole, .. } = found;
    let List::Inline(array) = list(&document)? else {
        kept.replace_range(whole.clone(), "");
        return Ok(kept);
    };
    let span = |index: usize| array.get(index).and_then(Value::span);
    let (start, end) = match (index.checked_sub(1).and_then(span), span(index + 1)) {
        (Some(previous), _) => (previous.end, whole.end),
        (None, Some(next)) => (whole.start, next.start),
        (None, None) => (whole.start, whole.end),
    };
    // Comments between two entries belong to somebody else.
    let edges = [start..whole.start, whole.end..end];
    let range = if edges.iter().any(|edge| text[edge.clone()].contains('#')) { whole.clone() } else { start..end };
    kept.replace_range(range, "");
    parse(&kept).map(|_| kept.clone()).map_err(|_| Unfit::Closed { key: HOOKS.to_owned() })
}

/// The lines of a table, with one empty line in front of it.
fn section(text: &str, table: &Table) -> Range<usize> {
    let spans =
        table.iter().filter(|(_, item)| item.is_value()).filter_map(|(_, item)| item.span()).chain(table.span());
    let (start, end) = spans.fold((text.len(), 0), |(start, end), span| (start.min(span.start), end.max(span.end)));
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let mut start = line_start(start);
    if start > 0 {
        let above = line_start(start - 1);
        if text[above..start].trim().is_empty() {
            start = above;
        }
    }
    let end = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
    start..end
}

/// A text that did not end with a line's end gets its old one back.
fn without_last_newline(text: String, before: Before<'_>) -> String {
    let Some(was) = before.text().filter(|was| !was.ends_with('\n')) else { return text };
    let Some(kept) = text.strip_suffix(newline(&text)) else { return text };
    if kept.rsplit('\n').next() == was.rsplit('\n').next() { kept.to_owned() } else { text }
}

/// The server of our name.
fn server<'a>(document: &'a Document<&str>) -> Result<Option<&'a Item>, Unfit> {
    match document.get(SERVERS) {
        None => Ok(None),
        Some(servers) if !servers.is_table_like() => {
            Err(Unfit::Kind { key: SERVERS.to_owned(), found: "a value", wanted: "a table" })
        }
        Some(servers) => Ok(servers.as_table_like().and_then(|servers| servers.get(NAME))),
    }
}

fn is_ours(server: &Item) -> bool {
    let Some(server) = server.as_table_like() else { return false };
    let args = server.get("args").and_then(Item::as_array);
    let mcp = args.is_some_and(|args| args.len() == 1 && args.get(0).and_then(Value::as_str) == Some("mcp"));
    mcp && server.get("command").is_some_and(Item::is_str)
}

pub fn has_server(text: &str) -> bool {
    parse(text).is_ok_and(|document| matches!(server(&document), Ok(Some(server)) if is_ours(server)))
}

pub fn with_server(text: &str, program: &Program) -> Result<String, Unfit> {
    let document = parse(text)?;
    let key = || format!("{SERVERS}.{NAME}");
    let Some(server) = server(&document)? else {
        let fields = [("command", string(&program.path)), ("args", "[\"mcp\"]".to_owned())];
        return extended(text, &format!("[{}]", key()), &fields);
    };
    if !is_ours(server) {
        return Err(Unfit::Taken { key: key() });
    }
    let command = server.get("command").filter(|command| command.as_str() != Some(&program.path));
    let mut text = text.to_owned();
    if let Some(span) = command.and_then(Item::span) {
        text.replace_range(span, &string(&program.path));
    }
    Ok(text)
}

pub fn without_server(text: &str, before: Before<'_>) -> Result<String, Unfit> {
    let document = parse(text)?;
    let ours = server(&document)?.filter(|server| is_ours(server)).and_then(Item::as_table);
    let Some(ours) = ours.filter(|_| !before.text().is_some_and(has_server)) else { return Ok(text.to_owned()) };
    let mut sections = Vec::new();
    gather(text, ours, &mut sections);
    sections.sort_by_key(|section| std::cmp::Reverse(section.start));
    let mut kept = text.to_owned();
    sections.into_iter().for_each(|section| kept.replace_range(section, ""));
    Ok(without_last_newline(kept, before))
}

/// The lines of a table and of those below it.
fn gather(text: &str, table: &Table, sections: &mut Vec<Range<usize>>) {
    sections.push(section(text, table));
    table.iter().filter_map(|(_, item)| item.as_table()).for_each(|table| gather(text, table, sections));
}
