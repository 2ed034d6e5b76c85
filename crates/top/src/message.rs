//! The message of the footer. An error or a warning that does not fit into a line is shown in a box that scrolls.

use windlass_app::tone::TextTone;
use windlass_text as text;

use crate::event::ErrorLine;

/// The widest box, and the most rows of text in it.
const MAX_BOX_WIDTH: u16 = 76;
const MAX_BOX_ROWS: usize = 10;
/// The columns and rows around the text of a box, and the rows of the screen that it leaves free.
const BOX_BORDER: u16 = 4;
const FREE_ROWS: u16 = 5;

/// The text of the footer, instead of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FooterMessage {
    pub text: String,
    pub hint: Option<String>,
    pub tone: TextTone,
    /// The first row of the text that the box shows.
    first_row: usize,
}

/// The text of a message in a box.
#[derive(Debug, PartialEq, Eq)]
pub struct MessageBox {
    pub width: u16,
    /// The rows that are shown.
    pub rows: Vec<String>,
    pub can_scroll: bool,
}

impl FooterMessage {
    pub fn new(tone: TextTone, text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: None, tone, first_row: 0 }
    }

    pub fn from_error(error: &ErrorLine) -> Self {
        let tone = if error.is_error { TextTone::Bad } else { TextTone::Warning };
        Self { hint: error.hint.clone(), ..Self::new(tone, error.message.clone()) }
    }

    /// Returns the message in one line.
    pub fn line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!(" · {hint}")).unwrap_or_default();
        format!("{}{hint}", self.text)
    }

    /// Returns whether the message needs a box on a terminal of this size.
    pub fn needs_box(&self, (columns, _): (u16, u16)) -> bool {
        matches!(self.tone, TextTone::Bad | TextTone::Warning)
            && text::display_width(&text::clean_line(&self.line())) > usize::from(columns)
    }

    /// Lays out the box on a terminal of this size.
    pub fn layout_box(&self, size: (u16, u16)) -> MessageBox {
        let width = size.0.saturating_sub(BOX_BORDER).min(MAX_BOX_WIDTH);
        let (rows, shown) = self.wrap_rows(size);
        let hidden = rows.len() - shown;
        let rows = rows.into_iter().skip(self.first_row.min(hidden)).take(shown).collect();
        MessageBox { width, rows, can_scroll: hidden > 0 }
    }

    /// Scrolls the text of the box.
    pub fn scroll(&mut self, by: isize, size: (u16, u16)) {
        let (rows, shown) = self.wrap_rows(size);
        self.first_row = self.first_row.saturating_add_signed(by).min(rows.len().saturating_sub(shown));
    }

    /// Returns all rows of the text, and how many of them the box shows.
    fn wrap_rows(&self, (columns, lines): (u16, u16)) -> (Vec<String>, usize) {
        let room = usize::from(columns.saturating_sub(BOX_BORDER).min(MAX_BOX_WIDTH).saturating_sub(BOX_BORDER));
        let parts = self.text.lines().chain(self.hint.iter().flat_map(|hint| hint.lines()));
        let rows: Vec<String> = parts.flat_map(|line| text::wrap_to_width(line, room, room)).collect();
        let shown = rows.len().min(MAX_BOX_ROWS).min(lines.saturating_sub(FREE_ROWS).max(1).into());
        (rows, shown)
    }
}
