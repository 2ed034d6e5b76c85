//! Cobertura's XML: the root is `<coverage line-rate="0.8" …>`.
//!
//! Only the root is read: no entity is expanded, no file is fetched, and the depth of the rest does not matter.
//!
//! Invariants:
//! - The root is the first element. Text in comments, in a DOCTYPE, in CDATA or in the value of another attribute never counts as
//!   the root or as its rate.

use std::collections::BTreeMap;

use windlass_engine::validation::CoveragePercent;

use super::{ReportError, checked_percent};

pub fn parse_cobertura(text: &str) -> Result<CoveragePercent, ReportError> {
    let format = |why: &str| ReportError::Format(why.to_owned());
    let element = skip_prolog(text.trim_start_matches('\u{feff}'))
        .and_then(|root| root.strip_prefix("<coverage"))
        .filter(|rest| rest.starts_with([' ', '\t', '\r', '\n', '/', '>']))
        .ok_or_else(|| format("its first element is not `coverage`, or comes after a DOCTYPE with declarations"))?;
    let root = read_attributes(element).ok_or_else(|| format("its element `coverage` cannot be read"))?;
    let attribute = |name: &str| root.attributes.get(name).map(|value| value.trim());
    let rate = attribute("line-rate")
        .ok_or_else(|| format("its `coverage` has no `line-rate`; Clover's reports have none either"))?;
    let rate: f64 = rate.parse().map_err(|_| format("its `line-rate` is not a number"))?;
    let no_lines = match attribute("lines-valid") {
        Some(lines) => lines.parse() == Ok(0u64),
        None => !root.content.contains("<line "),
    };
    let is_whole = root.is_empty || root.content.trim_end().ends_with("</coverage>");
    match (0.0..=1.0).contains(&rate) {
        _ if !is_whole => Err(format("it ends in the middle")),
        true if no_lines => Err(ReportError::NoLines),
        true => checked_percent(rate * 100.0),
        false => Err(format("its `line-rate` is not a number from 0 to 1")),
    }
}

/// Returns the text from the first element on. A DOCTYPE with declarations of its own is refused.
fn skip_prolog(text: &str) -> Option<&str> {
    let mut text = text.trim_start();
    loop {
        let rest = if let Some(rest) = text.strip_prefix("<?") {
            rest.split_once("?>")?.1
        } else if let Some(rest) = text.strip_prefix("<!--") {
            rest.split_once("-->")?.1
        } else if let Some(rest) = text.strip_prefix("<!DOCTYPE") {
            skip_doctype(rest)?
        } else {
            return Some(text);
        };
        text = rest.trim_start();
    }
}

/// Returns the text after a DOCTYPE, whose quoted names may contain any character.
fn skip_doctype(mut text: &str) -> Option<&str> {
    loop {
        let at = text.find(['"', '\'', '[', '>'])?;
        let (found, rest) = text[at..].split_at(1);
        text = match found {
            ">" => return Some(rest),
            "[" => return None,
            quote => rest.split_once(quote)?.1,
        };
    }
}

/// An opening tag: its attributes, and the text after its `>`.
struct OpeningTag<'a> {
    attributes: BTreeMap<&'a str, &'a str>,
    content: &'a str,
    is_empty: bool,
}

/// Reads `name="value"` pairs up to `>`. Returns nothing if an attribute occurs twice.
fn read_attributes(mut text: &str) -> Option<OpeningTag<'_>> {
    let mut attributes = BTreeMap::new();
    loop {
        let next = text.trim_start();
        if let Some(content) = next.strip_prefix('>') {
            return Some(OpeningTag { attributes, content, is_empty: false });
        }
        if let Some(content) = next.strip_prefix("/>") {
            return Some(OpeningTag { attributes, content, is_empty: true });
        }
        let (name, rest) = next.split_once('=').filter(|_| next.len() < text.len())?;
        let (name, rest) = (name.trim_end(), rest.trim_start());
        let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "_:.-".contains(c));
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, rest) = rest[1..].split_once(quote)?;
        if !is_name(name) || value.contains('<') || attributes.insert(name, value).is_some() {
            return None;
        }
        text = rest;
    }
}
