//! Errors of a configuration, with their place and a suggestion.
//!
//! Invariants:
//! - Text from the file is cleaned and cut before it becomes part of a picture.
//! - A suggestion is made only if it is likely to be right.
//!
//! Not here: when and where the picture is printed (`cli`).

use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use windlass_expr::nearest_name;
use windlass_text as text;

/// Maximum width of a picture in columns, of the marked text, and of the text after it.
const MAX_PICTURE_WIDTH: usize = 120;
const MAX_MARKED_WIDTH: usize = 70;
const MAX_TRAILING_WIDTH: usize = 40;

/// An error at a place of the text that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    pub at: Option<Range<usize>>,
    pub message: String,
    pub suggestion: Option<String>,
}

impl ConfigProblem {
    pub fn new(message: impl Into<String>) -> Self {
        Self { at: None, message: message.into(), suggestion: None }
    }

    /// Sets the place, unless a more exact one is set already.
    pub fn with_range(mut self, place: Range<usize>) -> Self {
        self.at.get_or_insert(place);
        self
    }

    pub fn with_suggestion(mut self, suggestion: impl Into<Option<String>>) -> Self {
        self.suggestion = suggestion.into();
        self
    }

    /// Reports an unknown name.
    pub fn unknown_name(what: &str, name: &str, known: &[&str]) -> Self {
        Self::new(format!("unknown {what} {}", quote_text(name))).with_suggestion(suggest_known_name(name, known))
    }
}

/// Quotes text of the file in a message.
pub fn quote_text(text: &str) -> String {
    format!("`{}`", text::fit_to_width(text, 60))
}

/// Suggests the nearest known name, or all of them if there are few.
pub fn suggest_known_name(name: &str, known: &[&str]) -> Option<String> {
    if let Some(near) = nearest_name(name, known) {
        return Some(format!("did you mean `{near}`?"));
    }
    (1..=16).contains(&known.len()).then(|| format!("known here: `{}`", known.join("`, `")))
}

/// An error that makes a configuration file unusable.
#[derive(Debug)]
pub struct ConfigError {
    file: PathBuf,
    place: Option<Box<TextPosition>>,
    message: String,
    suggestion: Option<String>,
    cause: Option<io::Error>,
}

/// A line and a column, with the line's text.
#[derive(Debug)]
struct TextPosition {
    line: usize,
    column: usize,
    excerpt: LineExcerpt,
}

/// One cleaned source line, with the offending part marked.
#[derive(Debug, PartialEq, Eq)]
struct LineExcerpt {
    text: String,
    marked: Range<usize>,
}

impl ConfigError {
    /// Makes an error from a problem in the file's text.
    pub fn from_problem(file: &Path, source: &str, problem: ConfigProblem) -> Self {
        let ConfigProblem { at, message, suggestion } = problem;
        let place = at.map(|range| Box::new(TextPosition::find_in_source(source, range)));
        Self { file: file.to_owned(), place, message, suggestion, cause: None }
    }

    /// Makes an error about the file itself.
    pub fn for_file(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), place: None, message: message.into(), suggestion: None, cause: None }
    }

    pub fn with_cause(mut self, cause: io::Error) -> Self {
        self.cause = Some(cause);
        self
    }

    pub fn with_suggestion(mut self, suggestion: &str) -> Self {
        self.suggestion = Some(suggestion.to_owned());
        self
    }

    /// Returns whether the file does not exist.
    pub fn is_missing_file(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
    }

    /// Returns the message without its place.
    pub fn into_message(self) -> String {
        self.message
    }

    /// Returns the suggestion.
    pub fn hint(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }

    /// Renders the message with the offending line below it, if the error has a place in the file.
    pub fn render_picture(&self, is_styled: bool) -> Option<String> {
        let renderer = if is_styled { Renderer::styled() } else { Renderer::plain() };
        self.render_picture_with(&renderer.term_width(MAX_PICTURE_WIDTH))
    }

    pub(crate) fn render_picture_with(&self, renderer: &Renderer) -> Option<String> {
        let TextPosition { line, excerpt, .. } = self.place.as_deref()?;
        let file = self.file.to_string_lossy();
        let title = text::clean_line(&self.message);
        let marked = AnnotationKind::Primary.span(excerpt.marked.clone());
        let source =
            Snippet::source(excerpt.text.as_str()).line_start(*line).path(text::clean_line(&file)).annotation(marked);
        Some(renderer.render(&[Level::ERROR.primary_title(title).element(source)]))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.place {
            Some(place) => write!(f, "{file}:{}:{}: {}", place.line, place.column, self.message),
            None => write!(f, "{file}: {}", self.message),
        }
    }
}

impl Error for ConfigError {
    /// A missing file has no further cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().filter(|_| !self.is_missing_file()).map(|cause| cause as &(dyn Error + 'static))
    }
}

/// Returns the line and the column of a range.
pub fn find_position(source: &str, at: Range<usize>) -> (usize, usize) {
    let place = TextPosition::find_in_source(source, at);
    (place.line, place.column)
}

impl TextPosition {
    fn find_in_source(source: &str, range: Range<usize>) -> Self {
        let start = source.floor_char_boundary(range.start);
        let end = source.floor_char_boundary(range.end).max(start);
        let begin = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let length = source[begin..].find('\n').unwrap_or(source.len() - begin);
        let line = source[begin..begin + length].trim_end_matches('\r');
        let marked = (start - begin).min(line.len())..(end - begin).min(line.len());
        Self {
            line: source[..begin].matches('\n').count() + 1,
            column: source[begin..start].chars().count() + 1,
            excerpt: LineExcerpt::from_line(line, marked),
        }
    }
}

impl LineExcerpt {
    /// Marks a part of a line. An empty range, such as the start of a map, marks the rest of the line.
    fn from_line(line: &str, marked: Range<usize>) -> Self {
        let rest = line.trim_end().len().max(marked.start);
        let marked = if marked.is_empty() { marked.start..rest } else { marked };
        let before = text::clean_line(&line[..marked.start]);
        let offending = text::fit_to_width(&line[marked.clone()], MAX_MARKED_WIDTH);
        let after = text::fit_to_width(&line[marked.end..], MAX_TRAILING_WIDTH);
        let marked = before.len()..before.len() + offending.len();
        Self { text: format!("{before}{offending}{after}"), marked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_made_only_when_near() {
        let known: Vec<_> = (0..20).map(|n| ["pre_iteration", "post_iteration", "stop"][n % 3]).collect();
        assert_eq!(suggest_known_name("pre_iterations", &known), Some("did you mean `pre_iteration`?".into()));
        assert_eq!(suggest_known_name("Pre-Iteration", &known), Some("did you mean `pre_iteration`?".into()));
        assert_eq!(suggest_known_name("deploy", &known), None);
        assert_eq!(suggest_known_name("deploy", &["stop"]), Some("known here: `stop`".into()));
        assert_eq!(suggest_known_name(&"x".repeat(1_000_000), &known), None);
    }

    #[test]
    fn long_lines_are_cut_around_the_offending_text() {
        let source = format!("{}BAD{}\n", "a".repeat(500_000), "b".repeat(500_000));
        let error = ConfigError::from_problem(
            Path::new("c.yaml"),
            &source,
            ConfigProblem::new("wrong").with_range(500_000..500_003),
        );
        insta::assert_snapshot!(error.render_picture_with(&Renderer::plain().term_width(MAX_PICTURE_WIDTH)).unwrap(), @"
        error: wrong
         --> c.yaml:1:500001
          |
        1 | ...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaBADbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
          |                                                         ^^^
        ");
    }

    #[test]
    fn diagnostic_escapes_control_sequences() {
        let source = "ok: 1\n\u{1b}[31mkey\u{7}: \u{1b}]0;x\u{7}value\n";
        let problem = ConfigProblem::unknown_name("key", "\u{1b}[31mkey\u{7}", &[]).with_range(6..15);
        let error = ConfigError::from_problem(Path::new("a\u{1b}b.yaml"), source, problem);
        let picture = error.render_picture_with(&Renderer::plain()).unwrap();
        assert!(!picture.contains(|c: char| c.is_control() && c != '\n'), "{picture:?}");
        insta::assert_snapshot!(picture, @r"
        error: unknown key `\u{1b}[31mkey\u{7}`
         --> a\u{1b}b.yaml:2:1
          |
        2 | \u{1b}[31mkey\u{7}: \u{1b}]0;x\u{7}value
          | ^^^^^^^^^^^^^^^^^^
        ");
    }

    #[test]
    fn diagnostic_columns_count_characters() {
        let place = TextPosition::find_in_source("a: 1\r\nüü: x\r\n", 11..12);
        assert_eq!((place.line, place.column), (2, 4));
        assert_eq!(place.excerpt.text, "üü: x");
        for range in [0..usize::MAX, 7..8, 1_000..2_000] {
            TextPosition::find_in_source("ü\nüü", range);
        }
        TextPosition::find_in_source("", 0..1);
    }
}
