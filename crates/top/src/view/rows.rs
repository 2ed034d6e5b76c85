//! The rows of a page, and the pane beside or below it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use windlass_app::tone::TextTone;
use windlass_text as text;

use crate::model::{PageState, TopModel};
use crate::page::ScreenPage;
use crate::palette::ColorMode;
use crate::row::ScreenRow;
use crate::screens::shows_running_process;

/// The columns between the text of a row and the text at its right edge.
const RIGHT_GAP: usize = 1;

/// Draws the rows of the page from the first one on the screen.
pub fn draw_page(model: &TopModel, colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    let state = model.current();
    draw_rows(state, PaneFocus::Page, colors, area, buffer);
    if let (None, Some(error)) = (&state.data, &state.error) {
        let room = usize::from(area.width.saturating_sub(4));
        let lines = text::wrap_to_width(&error.message, room, room);
        let hint = error.hint.iter().flat_map(|hint| text::wrap_to_width(hint, room, room));
        for ((at, line), row) in lines.into_iter().chain(hint).enumerate().zip(area.rows()) {
            let tone = if at == 0 { TextTone::Bad } else { TextTone::Plain };
            buffer.set_string(row.x + 2, row.y, line, colors.tone_style(tone));
        }
    }
}

/// The pane whose rows are drawn. Only the page has a cursor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PaneFocus {
    Page,
    Side,
}

fn draw_rows(state: &PageState, focus: PaneFocus, colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    let top = if focus == PaneFocus::Page { state.top } else { 0 };
    for (at, place) in (top..state.rows.len()).zip(area.rows()) {
        draw_row(&state.rows[at], colors, place, buffer);
        let is_current = focus == PaneFocus::Page && state.cursor == at && state.rows[at].target.is_some();
        if is_current {
            buffer.set_style(place, colors.cursor_style());
        }
    }
}

fn draw_row(row: &ScreenRow, colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let right = row.right.as_ref().map(|right| text::fit_to_width(&right.text, width / 2));
    let right_width = right.as_ref().map_or(0, |right| text::display_width(right) + RIGHT_GAP);
    let mut room = width.saturating_sub(right_width);
    let mut spans = Vec::new();
    for piece in &row.pieces {
        let shown = text::fit_to_width(&piece.text, room);
        room = room.saturating_sub(text::display_width(&shown));
        spans.push(Span::styled(shown, colors.tone_style(piece.tone)));
    }
    buffer.set_line(area.x, area.y, &Line::from(spans), area.width);
    if let (Some(right), Some(piece)) = (right, &row.right) {
        let columns = u16::try_from(text::display_width(&right)).unwrap_or_default();
        buffer.set_string(area.right().saturating_sub(columns), area.y, right, colors.tone_style(piece.tone));
    }
}

/// Draws the task under the cursor, or the text of the agent, beside the page.
pub fn draw_side_pane(model: &TopModel, colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    for place in area.rows() {
        buffer.set_string(place.x, place.y, "│", colors.border_style());
    }
    let inner = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
    match (&model.current().page, &model.side) {
        (ScreenPage::Session(_), _) => draw_live_lines(model, inner, buffer),
        (_, Some(side)) => draw_rows(side, PaneFocus::Side, colors, inner, buffer),
        (_, None) => {}
    }
}

/// Draws the text of the agent below the page.
pub fn draw_live_text(model: &TopModel, colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    buffer.set_string(area.x, area.y, "─".repeat(area.width.into()), colors.border_style());
    let inner = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let is_alive = model.current().data.as_ref().is_some_and(shows_running_process);
    let title = if model.live.is_writing && is_alive { " the agent writes " } else { " the agent wrote " };
    buffer.set_stringn(area.x + 1, area.y, title, area.width.into(), colors.tone_style(TextTone::Name));
    draw_live_lines(model, inner, buffer);
}

/// Draws the last lines of the text that fit.
fn draw_live_lines(model: &TopModel, area: Rect, buffer: &mut Buffer) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut shown: Vec<String> = Vec::new();
    for line in model.live.lines.iter().rev() {
        if shown.len() >= height {
            break;
        }
        shown.extend(text::wrap_to_width(line, width, width).into_iter().rev());
    }
    shown.truncate(height);
    if shown.is_empty() {
        shown.push("the agent has written nothing yet".to_owned());
    }
    for (line, place) in shown.iter().rev().zip(area.rows()) {
        buffer.set_stringn(place.x, place.y, line, width, Style::new());
    }
}
