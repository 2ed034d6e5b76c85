//! Dialogs over the page.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Widget};
use windlass_app::answer_choice::AnswerChoice;
use windlass_app::tone::TextTone;
use windlass_text as text;

use super::footer::keep_end;
use crate::answer_text::VisibleRows;
use crate::dialog::{self, DialogState, MAX_INPUT_ROWS};
use crate::line_editor::LineEditor;
use crate::palette::ColorMode;

/// The most rows of a question without answers.
const MAX_QUESTION_ROWS: usize = 6;
/// The columns of the name of an answer, with its mark.
const ANSWER_COLUMNS: usize = 15;
/// The question before a session is cancelled.
const CANCEL_QUESTION: &str =
    "End the session? Its turn is stopped; feedback stays with its task. You can type a reason.";

/// A row of a dialog.
struct DialogRow {
    text: String,
    tone: TextTone,
    is_chosen: bool,
}

impl DialogRow {
    fn new(tone: TextTone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone, is_chosen: false }
    }
}

/// Draws a dialog in the middle of the lower part, so that the question behind it stays visible.
pub fn draw_dialog(dialog: &DialogState, colors: ColorMode, area: Rect, frame: &mut Frame<'_>) {
    let (width, room) = (dialog::dialog_width(area.width), dialog::text_columns(area.width));
    let Some((title, mut rows)) = head_rows(dialog, (area.width, area.height)) else { return };
    let typed = dialog.input().map(|input| (rows.len(), add_input_rows(input, room, &mut rows)));
    rows.push(key_row(dialog));
    let height = u16::try_from(rows.len() + 2).unwrap_or(u16::MAX).min(area.height.saturating_sub(1));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + area.height.saturating_sub(height + 1),
        width,
        height,
    };
    Clear.render(place, frame.buffer_mut());
    let title = text::fit_to_width(&title, room);
    Block::bordered().border_style(colors.border_style()).title(title).render(place, frame.buffer_mut());
    let inner = Rect { x: place.x + 2, y: place.y + 1, width: width.saturating_sub(4), height: height - 2 };
    for (row, line) in rows.iter().zip(inner.rows()) {
        let style = if row.is_chosen { colors.cursor_style() } else { colors.tone_style(row.tone) };
        frame.buffer_mut().set_stringn(line.x, line.y, &row.text, room, style);
    }
    if let Some((first, (row, column))) = typed {
        let (row, column) = (u16::try_from(first + row).unwrap_or_default(), u16::try_from(column).unwrap_or_default());
        if row < inner.height {
            frame.set_cursor_position((inner.x + column.min(inner.width), inner.y + row));
        }
    }
}

/// Returns the title of a dialog, and its rows above the typed text. A filter is typed in the footer.
fn head_rows(dialog: &DialogState, size: (u16, u16)) -> Option<(String, Vec<DialogRow>)> {
    let room = dialog::text_columns(size.0);
    Some(match dialog {
        DialogState::Filter { .. } => return None,
        DialogState::Answer { subject, text, answers, chosen, .. } => {
            let mut rows = visible_rows(text.layout_rows(dialog.text_space(size)));
            rows.extend(answer_rows(answers, *chosen, room));
            (format!(" Answer {} ", text::clean_line(subject)), rows)
        }
        DialogState::Say { session, .. } => (format!(" Say to {} ", text::clean_line(session)), Vec::new()),
        DialogState::Cancel { session, .. } => {
            (format!(" Cancel {} ", text::clean_line(session)), wrap_rows(CANCEL_QUESTION, room))
        }
        DialogState::Confirm { question, .. } | DialogState::Quit { question } => {
            let mut rows = wrap_rows(question, room);
            rows.push(DialogRow::new(TextTone::Plain, ""));
            (" Sure? ".to_owned(), rows)
        }
    })
}

/// Returns the keys that end a dialog.
fn key_row(dialog: &DialogState) -> DialogRow {
    let keys = match dialog {
        DialogState::Confirm { .. } | DialogState::Quit { .. } => {
            return DialogRow::new(TextTone::Strong, "y yes   n no");
        }
        DialogState::Answer { .. } => "↑↓ choose · Enter sends · Esc keeps the text",
        DialogState::Cancel { .. } => "Enter ends the session · Esc keeps the text",
        DialogState::Say { .. } | DialogState::Filter { .. } => "Enter sends · Esc keeps the text",
    };
    DialogRow::new(TextTone::Faint, keys)
}

fn wrap_rows(said: &str, room: usize) -> Vec<DialogRow> {
    let rows = said.lines().flat_map(|line| text::wrap_to_width(line, room, room));
    rows.take(MAX_QUESTION_ROWS).map(|row| DialogRow::new(TextTone::Plain, row)).collect()
}

/// Returns the rows of a text, and below them how it is scrolled.
fn visible_rows(shown: VisibleRows) -> Vec<DialogRow> {
    let count = |mark: &str, rows: usize| if rows > 0 { format!("{mark}{rows} ") } else { String::new() };
    let hidden = format!("{}{}", count("↑", shown.above), count("↓", shown.below));
    let scroll = if hidden.is_empty() { hidden } else { format!("{hidden}PgUp PgDn scroll") };
    let rows = shown.rows.into_iter().map(|row| DialogRow::new(row.tone, row.text));
    rows.chain([DialogRow::new(TextTone::Faint, scroll)]).collect()
}

/// Returns the rows of the answers. The chosen one has a sentence about what it does.
fn answer_rows(answers: &[AnswerChoice], chosen: usize, room: usize) -> Vec<DialogRow> {
    let mut rows = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        let is_chosen = number == chosen;
        let (mark, said) = if is_chosen { ("▸ ", answer.describe()) } else { ("  ", "") };
        let said_room = room.saturating_sub(ANSWER_COLUMNS);
        for (line, said) in text::wrap_to_width(said, said_room, said_room).into_iter().enumerate() {
            let label = if line == 0 { format!("{mark}{answer}") } else { String::new() };
            let row = format!("{}{said}", text::pad_to_width(&label, ANSWER_COLUMNS));
            let text = text::fit_to_width(&row, room);
            rows.push(DialogRow { text, tone: TextTone::Plain, is_chosen: is_chosen && line == 0 });
        }
    }
    rows.push(DialogRow::new(TextTone::Plain, ""));
    rows
}

/// Adds the text that is typed, and returns the row and the column of the cursor in it.
fn add_input_rows(input: &LineEditor, room: usize, rows: &mut Vec<DialogRow>) -> (usize, usize) {
    let (before, after) = input.split_at_cursor();
    let (before, after) = (text::clean_line(&before).into_owned(), text::clean_line(&after).into_owned());
    let line_room = room.saturating_sub(2).max(2);
    // The end before the cursor is always shown, with as much of the rest as fits.
    let shown = keep_end(&before, line_room * MAX_INPUT_ROWS - 1);
    let mut lines = vec![String::new()];
    let (mut cursor, mut is_after) = ((0, 0), false);
    for c in shown.chars().map(Some).chain([None]).chain(after.chars().map(Some)) {
        let Some(c) = c else {
            is_after = true;
            cursor = (lines.len() - 1, lines.last().map_or(0, |line| text::display_width(line)));
            continue;
        };
        let line = lines.last_mut().expect("there is a first one");
        if text::display_width(line) + text::display_width(c.encode_utf8(&mut [0; 4])) > line_room {
            if is_after && lines.len() == MAX_INPUT_ROWS {
                break;
            }
            lines.push(String::new());
        }
        lines.last_mut().expect("there is a first one").push(c);
    }
    for (number, line) in lines.iter().enumerate() {
        rows.push(DialogRow::new(TextTone::Strong, format!("{}{line}", if number == 0 { "> " } else { "  " })));
    }
    (cursor.0, cursor.1 + 2)
}
