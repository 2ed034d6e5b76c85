//! Rows of a screen: pieces of text with tones, and the thing that a row stands for.
//!
//! Invariants:
//! - The text of a piece is clean: no character in it acts on a terminal.

use windlass_app::tone::TextTone;
use windlass_text as text;

/// The narrowest width for which rows are laid out.
const MIN_LAYOUT_WIDTH: usize = 20;

/// The thing that a row stands for. The cursor stays at it when the rows change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowTarget {
    /// An item that needs a person: its task or session.
    Waiting(String),
    Task(String),
    Session(String),
    Change(String),
    /// An event, a fact or an item of a timeline, by its position in the log.
    Event(u64),
    /// A line that names an event as a cause.
    Cause(u64),
    /// An iteration of a session.
    Iteration(u32),
    /// A file of a diff.
    File(usize),
    /// A check of a change.
    Check(usize),
    /// A text without an action.
    Text(usize),
}

impl RowTarget {
    /// Returns whether Enter opens or folds something.
    pub fn has_action(&self) -> bool {
        !matches!(self, Self::Text(_))
    }
}

/// A part of a row with one tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPiece {
    pub text: String,
    pub tone: TextTone,
}

/// A row of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenRow {
    pub pieces: Vec<RowPiece>,
    /// Without a target, the cursor skips the row.
    pub target: Option<RowTarget>,
    /// A text at the right edge.
    pub right: Option<RowPiece>,
}

impl ScreenRow {
    pub fn new(target: Option<RowTarget>) -> Self {
        Self { target, ..Self::default() }
    }

    /// Adds a piece of text in one line.
    #[must_use]
    pub fn with(mut self, tone: TextTone, text: impl AsRef<str>) -> Self {
        let text = text::clean_line(text.as_ref()).into_owned();
        self.pieces.push(RowPiece { text, tone });
        self
    }

    /// Adds a piece of text, padded or cut to a number of columns.
    #[must_use]
    pub fn with_column(self, tone: TextTone, text: &str, columns: usize) -> Self {
        let fitted = text::pad_to_width(&text::fit_to_width(text, columns), columns);
        self.with(tone, fitted)
    }

    /// Sets the text at the right edge.
    #[must_use]
    pub fn with_right(mut self, tone: TextTone, text: impl AsRef<str>) -> Self {
        self.right = Some(RowPiece { text: text::clean_line(text.as_ref()).into_owned(), tone });
        self
    }

    /// Returns the text of the row, for a filter.
    pub fn plain_text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// Rows for a width, while they are built.
#[derive(Debug)]
pub struct RowList {
    pub rows: Vec<ScreenRow>,
    pub width: usize,
}

impl RowList {
    pub fn new(width: u16) -> Self {
        Self { rows: Vec::new(), width: usize::from(width).max(MIN_LAYOUT_WIDTH) }
    }

    pub fn push(&mut self, row: ScreenRow) {
        self.rows.push(row);
    }

    /// Adds a heading with a blank row before it.
    pub fn push_heading(&mut self, heading: &str) {
        if !self.rows.is_empty() {
            self.push(ScreenRow::default());
        }
        self.push(ScreenRow::default().with(TextTone::Strong, heading));
    }

    /// Adds a row that the cursor skips.
    pub fn push_note(&mut self, tone: TextTone, note: &str) {
        for row in text::wrap_to_width(note, self.width, self.width) {
            self.push(ScreenRow::default().with(tone, row));
        }
    }

    /// Adds text over as many rows as it needs, each after `before`.
    pub fn push_wrapped(&mut self, target: Option<&RowTarget>, before: &str, tone: TextTone, said: &str) {
        let room = self.width.saturating_sub(text::display_width(before)).max(MIN_LAYOUT_WIDTH / 2);
        for line in said.lines() {
            for row in text::wrap_to_width(line, room, room) {
                self.push(ScreenRow::new(target.cloned()).with(TextTone::Faint, before).with(tone, row));
            }
        }
    }

    /// Adds a label and its text; further rows are indented.
    pub fn push_labelled(&mut self, target: Option<&RowTarget>, label: &str, said: &str) {
        let columns = text::display_width(label).max(11) + 1;
        let room = self.width.saturating_sub(columns).max(MIN_LAYOUT_WIDTH / 2);
        let mut shown = label.to_owned();
        for row in said.lines().flat_map(|line| text::wrap_to_width(line, room, room)) {
            let label = text::pad_to_width(&text::fit_to_width(&shown, columns), columns);
            self.push(ScreenRow::new(target.cloned()).with(TextTone::Faint, label).with(TextTone::Plain, row));
            shown.clear();
        }
    }
}
