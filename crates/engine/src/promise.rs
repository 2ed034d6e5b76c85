//! What an agent claims about its work, read from its final message.
//!
//! A tag counts at the start or the end of a line, in any case, outside code fences, quotes and backticks. A line that
//! follows the same line as in the prompt is an echo of the prompt, and counts for nothing.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A claim. It is never believed without the gates; that the agent is stuck is always believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Promise {
    Complete,
    Escalate,
    Blocked,
}

const PROMISES: [(Promise, &str); 3] = [
    (Promise::Complete, "<promise>complete</promise>"),
    (Promise::Escalate, "<promise>escalate</promise>"),
    (Promise::Blocked, "<promise>blocked</promise>"),
];

/// The claim in a message that answers this prompt: COMPLETE before ESCALATE before BLOCKED.
pub fn detect(message: &str, prompt: &str) -> Option<Promise> {
    let asked: BTreeSet<(&str, &str)> = pairs(prompt.lines().map(str::trim).filter(|line| !line.is_empty())).collect();
    let own = pairs(claims(message)).filter(|pair| pair.0.is_empty() || !asked.contains(pair));
    let lines: Vec<String> = own.map(|(_, line)| line.to_lowercase()).collect();
    let says = |tag: &str| lines.iter().any(|line| line.starts_with(tag) || line.ends_with(tag));
    PROMISES.iter().find(|(_, tag)| says(tag)).map(|(promise, _)| *promise)
}

/// Each line with the one before it.
fn pairs<'t>(lines: impl Iterator<Item = &'t str>) -> impl Iterator<Item = (&'t str, &'t str)> {
    lines.scan("", |before, line| Some((std::mem::replace(before, line), line)))
}

/// A text that quotes others, without anything in it that could be taken for a claim.
pub fn without_claims(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    let mut done = 0;
    for (place, tag) in text.to_ascii_lowercase().match_indices("<promise>") {
        quoted.push_str(&text[done..place]);
        quoted.push_str("[promise]");
        done = place + tag.len();
    }
    quoted.push_str(&text[done..]);
    quoted
}

/// How much of an agent's last line is kept.
const LAST_WORDS: usize = 300;

/// The last line of a message, but for its claims.
pub fn last_words(message: &str) -> Option<String> {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty() && fence_of(line).is_none());
    let line = lines.rev().map(without_tags).find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(LAST_WORDS)].to_owned())
}

/// A line without a claim at its start or its end.
fn without_tags(line: &str) -> &str {
    let lower = line.to_ascii_lowercase();
    let tag = PROMISES.iter().map(|(_, tag)| *tag).find(|tag| lower.starts_with(tag) || lower.ends_with(tag));
    match tag {
        Some(tag) if lower.starts_with(tag) => line[tag.len()..].trim(),
        Some(tag) => line[..line.len() - tag.len()].trim(),
        None => line,
    }
}

/// The lines in which an agent speaks for itself.
fn claims(message: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    let parts: Vec<&[&str]> = lines.split(|line| is_cut(line)).collect();
    let mut own = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        // What was cut out may have opened a block: then there are more ends than beginnings after it.
        let fences = part.iter().filter(|line| fence_of(line).is_some()).count();
        outside_of_fences(part, index > 0 && fences % 2 == 1, &mut own);
    }
    own.into_iter()
}

/// Where a long message was cut.
fn is_cut(line: &str) -> bool {
    line.strip_prefix('[').is_some_and(|rest| rest.ends_with(" bytes left out]"))
}

fn outside_of_fences<'m>(lines: &[&'m str], begins_inside: bool, own: &mut Vec<&'m str>) {
    let mut fence = begins_inside.then_some("");
    for line in lines {
        match (fence, fence_of(line)) {
            (None, Some(marks)) => fence = Some(marks),
            (Some(open), Some(marks)) if marks.starts_with(open) && marks.len() == line.len() => fence = None,
            (Some(_), _) => {}
            (None, None) if line.is_empty() || line.starts_with(['>', '|']) => {}
            (None, None) => own.push(line),
        }
    }
}

/// The marks that open or close a block of code.
fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|next| *next == mark).count();
    (length >= 3).then(|| &line[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: Option<Promise>) {
        assert_eq!(
            detect(message, "Mend the pump.\n<promise>COMPLETE</promise>\nThat ends it."),
            expected,
            "{message}"
        );
    }

    #[test]
    fn a_tag_at_the_start_or_the_end_of_a_line_counts() {
        check("All green.\n<promise>COMPLETE</promise>", Some(Promise::Complete));
        check("All green. <promise>complete</promise>", Some(Promise::Complete));
        check("  <Promise>Blocked</Promise> by the network", Some(Promise::Blocked));
        check("<promise>BLOCKED</promise>\n<promise>COMPLETE</promise>", Some(Promise::Complete));
        check("<promise>COMPLETE</promise>", Some(Promise::Complete));
    }

    #[test]
    fn what_is_shown_or_quoted_or_echoed_does_not() {
        check("", None);
        check("I will write <promise>COMPLETE</promise> when it works", None);
        check("```\n<promise>COMPLETE</promise>\n```", None);
        check("~~~~ text\n```\n<promise>COMPLETE</promise>\n~~~~", None);
        check("> <promise>COMPLETE</promise>", None);
        check("`<promise>COMPLETE</promise>`", None);
        check("\"<promise>COMPLETE</promise>\"", None);
        check("You said:\nMend the pump.\n<promise>COMPLETE</promise>\nThat ends it.\nI have not begun.", None);
        check("<promise>COMPLETED</promise>", None);
    }

    #[test]
    fn what_follows_a_block_of_code_counts_again() {
        check("```sh\ncargo test\n```\n<promise>COMPLETE</promise>", Some(Promise::Complete));
    }

    #[test]
    fn a_message_that_was_cut_is_read_after_the_cut() {
        let fenced = "```sh\n[900 bytes left out]\nlast line\n```\n<promise>COMPLETE</promise>";
        check(fenced, Some(Promise::Complete));
        check("begin\n[900 bytes left out]\n<promise>COMPLETE</promise>\n```\nnot yet", None);
        check("```\n[900 bytes left out]\n```\nx\n```\n<promise>COMPLETE</promise>", Some(Promise::Complete));
    }

    #[test]
    fn the_last_words_are_those_before_the_claim() {
        let words = |message: &str| last_words(message);
        assert_eq!(
            words("I looked.\nWhich version?\n\n<Promise>Blocked</Promise>\n").as_deref(),
            Some("Which version?")
        );
        assert_eq!(words("Which version? <promise>BLOCKED</promise>").as_deref(), Some("Which version?"));
        assert_eq!(words("x\n```\n").as_deref(), Some("x"));
        assert_eq!(words("<promise>BLOCKED</promise>"), None);
        assert_eq!(words(&"é".repeat(200)).map(|words| words.len()), Some(300));
    }

    #[test]
    fn quoted_claims_are_taken_apart() {
        let quoted = without_claims("ä <PROMISE>COMPLETE</promise>\n<promise>x");
        assert_eq!(quoted, "ä [promise]COMPLETE</promise>\n[promise]x");
        assert_eq!(detect(&quoted, ""), None);
    }
}
