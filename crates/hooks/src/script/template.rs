//! The placeholders of a command, and their positions in a text. Other `{{…}}` stay as they are.

use std::fmt;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceholderName {
    Session,
    Iteration,
    TaskId,
    TaskContent,
    Error,
}

/// A placeholder at its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlaceholderMark {
    pub name: PlaceholderName,
    pub at: Range<usize>,
}

const PLACEHOLDER_NAMES: [PlaceholderName; 5] = [
    PlaceholderName::Session,
    PlaceholderName::Iteration,
    PlaceholderName::TaskId,
    PlaceholderName::TaskContent,
    PlaceholderName::Error,
];

impl PlaceholderName {
    pub fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Iteration => "iteration",
            Self::TaskId => "task_id",
            Self::TaskContent => "task_content",
            Self::Error => "error",
        }
    }

    pub fn variable_name(self) -> &'static str {
        match self {
            Self::Session => "WINDLASS_SESSION",
            Self::Iteration => "WINDLASS_ITERATION",
            Self::TaskId => "WINDLASS_TASK_ID",
            Self::TaskContent => "WINDLASS_TASK_CONTENT",
            Self::Error => "WINDLASS_ERROR",
        }
    }

    /// Returns whether the value is free text.
    pub fn is_free_text(self) -> bool {
        matches!(self, Self::TaskContent | Self::Error)
    }
}

impl fmt::Display for PlaceholderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{}}}}}", self.word())
    }
}

pub(super) fn find_placeholders(text: &str) -> Vec<PlaceholderMark> {
    let mut marks = Vec::new();
    let mut from = 0;
    while let Some(found) = text[from..].find("{{") {
        let start = from + found;
        match parse_placeholder(&text[start + 2..]) {
            Some((name, length)) => {
                from = start + 2 + length;
                marks.push(PlaceholderMark { name, at: start..from });
            }
            // `{{{error}}` is a brace and a placeholder.
            None => from = start + 1,
        }
    }
    marks
}

/// Parses the text behind two braces: returns the placeholder, and its length up to the closing braces.
fn parse_placeholder(rest: &str) -> Option<(PlaceholderName, usize)> {
    let blank = |c: char| c == ' ' || c == '\t';
    let inner = rest.trim_start_matches(blank);
    let name = PLACEHOLDER_NAMES.into_iter().find(|name| {
        let after = inner.strip_prefix(name.word());
        after.is_some_and(|after| after.trim_start_matches(blank).starts_with("}}"))
    })?;
    let close = rest.find("}}").expect("braces that close follow the name");
    Some((name, close + 2))
}
