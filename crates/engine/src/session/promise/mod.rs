//! The claims in an agent's final message, found by one rule.
//!
//! - COMPLETE counts when the last line that is not blank ends with its tag. In backticks it counts only when it stands
//!   alone on that line.
//! - ESCALATE and BLOCKED count at the start or the end of any line outside code fences, and in backticks when they stand
//!   alone on it. Either of them outweighs COMPLETE.
//!
//! Upper and lower case, white space and Markdown emphasis (`*`, `_`) around the tag, and one punctuation mark at the end
//! of the line make no difference. The rule never interprets a sentence around the tag, and treats invisible characters
//! like others. The gates judge the work; a claim only asks for them.
//!
//! Invariant: reading a message takes time linear in its length.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A claim. The gates check COMPLETE; the other claims are always accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Promise {
    Complete,
    Escalate,
    Blocked,
}

impl Promise {
    pub const ALL: [Self; 3] = [Self::Complete, Self::Escalate, Self::Blocked];

    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "COMPLETE",
            Self::Escalate => "ESCALATE",
            Self::Blocked => "BLOCKED",
        }
    }

    /// Returns the reason why a person is needed, for a claim that asks for one.
    pub(crate) fn reason_for_person(self) -> Option<&'static str> {
        match self {
            Self::Complete => None,
            Self::Escalate => Some("the agent asks for a person"),
            Self::Blocked => Some("the agent says it is blocked"),
        }
    }

    /// Returns the promise as an agent writes it.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Complete => "<promise>COMPLETE</promise>",
            Self::Escalate => "<promise>ESCALATE</promise>",
            Self::Blocked => "<promise>BLOCKED</promise>",
        }
    }
}

impl FromStr for Promise {
    type Err = String;

    /// Accepts the name alone or as a tag, in upper or lower case.
    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.trim();
        let is_named =
            |promise: &Self| word.eq_ignore_ascii_case(promise.name()) || word.eq_ignore_ascii_case(promise.tag());
        Self::ALL.into_iter().find(is_named).ok_or_else(|| {
            let text: String = text.chars().take(40).collect();
            format!("`{text}` is not a promise; the promises are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

const OPENING_TAG: &str = "<promise>";
/// The replacement for an opening tag in text that the prompt quotes.
const QUOTED_TAG: &str = "[promise]";
/// The punctuation marks of which one may follow a tag. A question claims nothing.
const FINAL_PUNCTUATION: [char; 8] = ['.', '!', ',', ';', ':', '…', '。', '！'];
/// The maximum size of the last line that a session keeps, in bytes.
const MAX_LAST_WORDS_BYTES: usize = 300;

/// Returns the claim of a message, if it makes one.
pub fn find_promise(message: &str) -> Option<Promise> {
    find_promises(message).into_iter().next()
}

/// Returns all claims of a message: ESCALATE and BLOCKED, in this order, or else COMPLETE.
pub fn find_promises(message: &str) -> Vec<Promise> {
    let claimed: Vec<Promise> = unfenced_lines(message)
        .flat_map(|line| [find_tag_at_start(line), find_tag_at_end(line)])
        .flatten()
        .map(|tag| tag.0)
        .collect();
    let stuck: Vec<Promise> =
        [Promise::Escalate, Promise::Blocked].into_iter().filter(|promise| claimed.contains(promise)).collect();
    if stuck.is_empty() && ends_with_complete_tag(message) { vec![Promise::Complete] } else { stuck }
}

/// Returns why the COMPLETE tag of a message does not count, if it has one and claims nothing.
pub fn explain_uncounted_claim(message: &str) -> Option<&'static str> {
    let has_tag = |text: &str| contains_ignoring_case(text, Promise::Complete.tag());
    if !has_tag(message) || !find_promises(message).is_empty() {
        return None;
    }
    Some(if last_filled_line(message).is_some_and(has_tag) {
        "Your COMPLETE tag did not count because the last line of your message does not end with it (in backticks it \
         must stand alone on that line); if the work is done, end your final message with the tag."
    } else {
        "Your COMPLETE tag did not count because it is not on the last line of your message; if the work is done, end \
         your final message with the tag."
    })
}

fn ends_with_complete_tag(message: &str) -> bool {
    let tag = last_filled_line(message).and_then(find_tag_at_end);
    tag.is_some_and(|(promise, _)| promise == Promise::Complete)
}

fn last_filled_line(message: &str) -> Option<&str> {
    message.lines().rev().find(|line| !line.trim().is_empty())
}

/// Returns the lines outside code fences. As in Markdown, an unclosed fence reaches to the end.
fn unfenced_lines(message: &str) -> impl Iterator<Item = &str> {
    let mut open: Option<&str> = None;
    message.lines().filter(move |line| {
        let marks = code_fence_marks(line);
        match (open, marks) {
            (None, None) => return true,
            (None, Some(_)) => open = marks,
            (Some(opening), Some(marks)) if marks.starts_with(opening) && marks == line.trim() => open = None,
            (Some(_), _) => {}
        }
        false
    })
}

/// Returns the marks of a line that opens or closes a code fence.
fn code_fence_marks(line: &str) -> Option<&str> {
    let line = line.trim();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let (marks, info) = line.split_at(line.len() - line.trim_start_matches(mark).len());
    // Backticks that are closed on the same line are inline code.
    (marks.len() >= 3 && !(mark == '`' && info.contains('`'))).then_some(marks)
}

/// Returns the tag that a line ends with, and the text before it.
fn find_tag_at_end(line: &str) -> Option<(Promise, &str)> {
    let line = line.trim_end_matches(is_ignored_around_tag);
    let line = line.strip_suffix(FINAL_PUNCTUATION).unwrap_or(line).trim_end_matches(is_ignored_around_tag);
    if line.ends_with('`') {
        let code = line.trim_start_matches(is_ignored_around_tag);
        let inner = code.trim_matches('`').trim();
        let is_alone = |promise: &Promise| code.starts_with('`') && inner.eq_ignore_ascii_case(promise.tag());
        return Promise::ALL.into_iter().find(is_alone).map(|promise| (promise, ""));
    }
    let split = |promise: Promise| {
        let (before, end) = line.split_at_checked(line.len().checked_sub(promise.tag().len())?)?;
        end.eq_ignore_ascii_case(promise.tag()).then(|| (promise, before.trim_matches(is_ignored_around_tag)))
    };
    Promise::ALL.into_iter().find_map(split)
}

/// Returns the tag that a line starts with, and the text after it.
fn find_tag_at_start(line: &str) -> Option<(Promise, &str)> {
    let line = line.trim_start_matches(is_ignored_around_tag);
    let split = |promise: Promise| {
        let (start, after) = line.split_at_checked(promise.tag().len())?;
        start.eq_ignore_ascii_case(promise.tag()).then(|| (promise, after.trim_matches(is_ignored_around_tag)))
    };
    Promise::ALL.into_iter().find_map(split)
}

fn is_ignored_around_tag(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '*' | '_')
}

fn contains_ignoring_case(text: &str, tag: &str) -> bool {
    text.as_bytes().windows(tag.len()).any(|window| window.eq_ignore_ascii_case(tag.as_bytes()))
}

/// Returns a text for a prompt to quote, without anything that an agent could repeat as a claim. It replaces opening
/// tags, and turns control characters, which could hide a tag from people, into spaces.
pub fn neutralize_claims(text: &str) -> String {
    let is_hidden = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    let text = text.replace("\r\n", "\n").replace(is_hidden, " ");
    let mut quoted = String::with_capacity(text.len());
    let mut done = 0;
    for (place, tag) in text.to_ascii_lowercase().match_indices(OPENING_TAG) {
        quoted.push_str(&text[done..place]);
        quoted.push_str(QUOTED_TAG);
        done = place + tag.len();
    }
    quoted.push_str(&text[done..]);
    quoted
}

/// Returns the last line of a message that contains more than a claim, without the claim.
pub fn last_line_without_claim(message: &str) -> Option<&str> {
    let lines = message.lines().rev().filter(|line| code_fence_marks(line).is_none());
    let without_tag = |line| match find_tag_at_end(line).or_else(|| find_tag_at_start(line)) {
        // A bullet or a heading mark has no content.
        Some((_, rest)) => rest.contains(char::is_alphanumeric).then_some(rest),
        None => Some(line.trim()),
    };
    lines.filter_map(without_tag).find(|line| !line.is_empty())
}

/// Returns that line, cut to the size that a session keeps.
pub fn excerpt_last_words(message: &str) -> Option<String> {
    last_line_without_claim(message).map(|line| line[..line.floor_char_boundary(MAX_LAST_WORDS_BYTES)].to_owned())
}

#[cfg(test)]
mod tests;
