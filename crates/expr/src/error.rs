//! Errors of expressions: those found when an expression is read, and those of an evaluation.

use std::ops::Range;

use minijinja::ErrorKind;
use minijinja::machinery::Span;

/// Maximum length of a text and of a reason in a message.
const MAX_SHOWN_CHARACTERS: usize = 60;
const MAX_REASON_CHARACTERS: usize = 200;
/// Hint for an expression that the parser refuses.
const SYNTAX_HINT: &str =
    "write it as in `'docs' in task.labels and iteration > 2`; docs/reference/expressions.md has the language";

/// An error in an expression, found before evaluation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    pub message: String,
    /// The byte range in the expression's text.
    pub at: Option<Range<usize>>,
    pub suggestion: Option<String>,
}

impl ExpressionError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None, suggestion: None }
    }

    pub(crate) fn with_range(mut self, place: Range<usize>) -> Self {
        self.at = Some(place);
        self
    }

    pub(crate) fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Converts an error of the parser.
    pub(crate) fn from_parser_error(error: &minijinja::Error, text: &str) -> Self {
        let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let problem = Self::new(truncate_line(&detail, MAX_REASON_CHARACTERS)).with_suggestion(SYNTAX_HINT);
        // A range at the very end has nothing to mark.
        match error.range().filter(|range| range.start < range.end && text.get(range.clone()).is_some()) {
            Some(range) => problem.with_range(range),
            None => problem,
        }
    }
}

/// An evaluation that failed: the value of the expression is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot evaluate `{text}`: {reason}")]
pub struct EvaluationError {
    /// The beginning of the expression, as written.
    pub text: String,
    pub reason: String,
    undefined: bool,
}

impl EvaluationError {
    /// Returns whether the cause is an undefined name.
    pub fn is_undefined(&self) -> bool {
        self.undefined
    }

    pub(crate) fn undefined_value(text: &str) -> Self {
        Self { undefined: true, ..Self::new(text, "its value is undefined") }
    }

    pub(crate) fn new(text: &str, reason: impl Into<String>) -> Self {
        Self { text: truncate_line(text, MAX_SHOWN_CHARACTERS), reason: reason.into(), undefined: false }
    }

    pub(crate) fn from_minijinja_error(text: &str, error: &minijinja::Error) -> Self {
        let reason = match (error.kind(), error.detail()) {
            (ErrorKind::OutOfFuel, _) => "it takes too many steps".to_owned(),
            (_, Some(detail)) => truncate_line(detail, MAX_REASON_CHARACTERS),
            (kind, None) => kind.to_string(),
        };
        Self { undefined: error.kind() == ErrorKind::UndefinedError, ..Self::new(text, reason) }
    }
}

/// Returns the byte range of a part of the syntax tree.
pub(crate) fn span_range(span: Span) -> Range<usize> {
    let offset = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    offset(span.start_offset)..offset(span.end_offset)
}

/// Returns text as one line of at most `most` characters.
pub(crate) fn truncate_line(text: &str, most: usize) -> String {
    let mut line: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}
