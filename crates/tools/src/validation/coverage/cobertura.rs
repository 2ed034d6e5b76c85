//! Cobertura's XML: the root is `<coverage line-rate="0.8" …>`.
//!
//! Only the root is read: no entity is expanded, nothing is fetched, and the depth of the rest does not matter.

use regex_lite::Regex;
use windlass_engine::validation::Percent;

use super::{Fault, stated};

/// The root, with its attributes.
const ROOT: &str = r#"^<coverage((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>"#;

pub fn covered(text: &str) -> Result<Percent, Fault> {
    let format = |why: &str| Fault::Format(why.to_owned());
    let pattern = |text: &str| Regex::new(text).expect("the patterns here are well formed");
    let mut rest = text;
    let element = loop {
        let at = rest.find("<coverage").ok_or_else(|| format("it has no element `coverage`"))?;
        match rest[..at].find("<!--") {
            Some(comment) => rest = rest[comment..].split_once("-->").map_or("", |(_, after)| after),
            None => break &rest[at..],
        }
    };
    let root = pattern(ROOT).captures(element).ok_or_else(|| format("its element `coverage` cannot be read"))?;
    let attribute = |name: &str| {
        let found = pattern(&format!(r#"\s{name}\s*=\s*["']([^"']*)["']"#)).captures(&root[1]);
        found.map(|found| found[1].trim().to_owned())
    };
    let rate = attribute("line-rate")
        .ok_or_else(|| format("its `coverage` has no `line-rate`; Clover's reports have none either"))?;
    let rate: f64 = rate.parse().map_err(|_| format("its `line-rate` is not a number"))?;
    let no_lines = match attribute("lines-valid") {
        Some(lines) => lines.parse() == Ok(0u64),
        None => !element.contains("<line "),
    };
    let is_whole = &root[2] == "/" || element.trim_end().ends_with("</coverage>");
    match (0.0..=1.0).contains(&rate) {
        _ if !is_whole => Err(format("it ends in the middle")),
        true if no_lines => Err(Fault::NoLines),
        true => stated(rate * 100.0),
        false => Err(format("its `line-rate` is not a number from 0 to 1")),
    }
}
