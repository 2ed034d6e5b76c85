//! Cobertura's XML: the root is `<coverage line-rate="0.8" …>`.
//!
//! Only the root is read: no entity is expanded, nothing is fetched, and the depth of the rest does not matter.

use windlass_engine::validation::Percent;

use super::{Fault, stated};

pub fn covered(text: &str) -> Result<Percent, Fault> {
    let format = |why: &str| Fault::Format(why.to_owned());
    let (root, rest) = root(text).ok_or_else(|| format("it is not XML"))?;
    let (name, mut attributes) =
        root.split_at(root.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(root.len()));
    if name != "coverage" {
        return Err(format("its first element is not `coverage`"));
    }
    let (mut rate, mut lines) = (None, None);
    while let Some((key, value, more)) = attribute(attributes) {
        match key {
            "line-rate" => rate = Some(value),
            "lines-valid" => lines = Some(value),
            _ => {}
        }
        attributes = more;
    }
    let rate = rate.ok_or_else(|| format("its `coverage` has no `line-rate`; Clover's reports have none either"))?;
    let rate: f64 = rate.trim().parse().map_err(|_| format("its `line-rate` is not a number"))?;
    let no_lines = match lines {
        Some(lines) => lines.trim().parse() == Ok(0u64),
        None => !rest.contains("<line "),
    };
    let is_whole = root.ends_with('/') || rest.trim_end().ends_with("</coverage>");
    match (0.0..=1.0).contains(&rate) {
        _ if !is_whole => Err(format("it ends in the middle")),
        true if no_lines => Err(Fault::NoLines),
        true => stated(rate * 100.0),
        false => Err(format("its `line-rate` is not a number from 0 to 1")),
    }
}

/// What stands between the brackets of the first element, and what follows it.
fn root(text: &str) -> Option<(&str, &str)> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let inside = rest.strip_prefix('<')?;
        let after = if let Some(comment) = inside.strip_prefix("!--") {
            comment.split_once("-->")?.1
        } else if inside.starts_with('?') {
            inside.split_once("?>")?.1
        } else if inside.starts_with('!') {
            &inside[declaration(inside)?..]
        } else {
            let end = unquoted_end(inside)?;
            return Some((&inside[..end], &inside[end + 1..]));
        };
        rest = after.trim_start();
    }
}

/// Where a `<!DOCTYPE …>` ends, with the declarations that it may hold in brackets.
fn declaration(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0i32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            (None, '>') if depth <= 0 => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The `>` that ends an element.
fn unquoted_end(text: &str) -> Option<usize> {
    let mut quote = None;
    text.char_indices().find_map(|(at, letter)| {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '>') => return Some(at),
            _ => {}
        }
        None
    })
}

/// The first `name="value"`, and what follows it.
fn attribute(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|letter| matches!(letter, '"' | '\''))?;
    let (value, rest) = rest[1..].split_once(quote)?;
    Some((name.trim(), value, rest))
}
