//! The text above the answers of a dialog: the question, and the last message of the agent. It scrolls.

use windlass_app::tone::TextTone;
use windlass_text as text;

use crate::row::RowPiece;

/// A question, with the message that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerText {
    question: String,
    message: Option<String>,
    /// The first row that is shown.
    first_row: usize,
}

/// The space of a text, in columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSpace {
    pub columns: usize,
    pub rows: usize,
}

/// The rows of a text that are shown, and the numbers of those above and below.
#[derive(Debug, PartialEq, Eq)]
pub struct VisibleRows {
    pub rows: Vec<RowPiece>,
    pub above: usize,
    pub below: usize,
}

impl AnswerText {
    pub fn new(question: String, message: Option<String>) -> Self {
        Self { question, message, first_row: 0 }
    }

    /// Lays out the rows that are shown.
    pub fn layout_rows(&self, space: TextSpace) -> VisibleRows {
        let mut rows = self.wrap_rows(space.columns);
        let above = self.first_row.min(rows.len().saturating_sub(space.rows));
        let below = rows.len().saturating_sub(above + space.rows);
        rows.drain(..above);
        rows.truncate(space.rows);
        VisibleRows { rows, above, below }
    }

    /// Scrolls by the rows that are shown. One of them stays.
    pub fn scroll_page(&mut self, is_down: bool, space: TextSpace) {
        let last = self.wrap_rows(space.columns).len().saturating_sub(space.rows);
        let (first, step) = (self.first_row.min(last), space.rows.saturating_sub(1).max(1));
        self.first_row = if is_down { (first + step).min(last) } else { first.saturating_sub(step) };
    }

    fn wrap_rows(&self, columns: usize) -> Vec<RowPiece> {
        let wrap = |tone, said: &str| -> Vec<RowPiece> {
            let rows = said.lines().flat_map(|line| text::wrap_to_width(line, columns, columns));
            rows.map(|text| RowPiece { text, tone }).collect()
        };
        let mut rows = wrap(TextTone::Plain, &self.question);
        if let Some(message) = &self.message {
            rows.extend(wrap(TextTone::Faint, "The agent's last message:"));
            rows.extend(wrap(TextTone::Plain, message));
        }
        rows
    }
}
