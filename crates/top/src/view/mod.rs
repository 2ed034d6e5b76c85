//! The screen: `view(model, frame)`.
//!
//! ```text
//!  tab bar            project, screens
//!  rows               the page; beside or below it the task under the cursor, or the text of the agent
//!  footer             what can be done here, or a message
//! ```
//!
//! Invariants:
//! - No cell has a character that acts on a terminal, whatever the data hold.

mod dialogs;
mod footer;
mod help;
mod message_box;
mod rows;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use windlass_app::tone::TextTone;
use windlass_text as text;

use crate::model::{MIN_SIZE, TopModel};
use crate::page::{ScreenPage, ScreenTab};
use crate::palette::ColorMode;

/// The width from which the names of all screens fit.
const FULL_TAB_WIDTH: u16 = 48;

/// Draws the program.
pub fn view(model: &TopModel, colors: ColorMode, frame: &mut Frame<'_>) {
    let area = frame.area();
    if (area.width, area.height) != model.size {
        // The terminal has another size by now; the event about it is on its way.
        return;
    }
    if model.is_too_small() {
        let said = format!("too small: windlass top needs {}×{}", MIN_SIZE.0, MIN_SIZE.1);
        for (row, line) in text::wrap_to_width(&said, area.width.into(), area.width.into()).iter().enumerate() {
            let at = u16::try_from(row).unwrap_or(u16::MAX);
            if at < area.height {
                frame.buffer_mut().set_string(area.x, area.y + at, line, colors.tone_style(TextTone::Warning));
            }
        }
        return;
    }
    let (height, live_height) = model.pane_heights();
    let (width, side_width) = model.pane_widths();
    let page = Rect { y: area.y + 2, height, width, ..area };
    draw_tab_bar(model, colors, Rect { height: 2, ..area }, frame.buffer_mut());
    rows::draw_page(model, colors, page, frame.buffer_mut());
    if side_width > 0 {
        let side = Rect { x: area.right() - side_width, width: side_width, ..page };
        rows::draw_side_pane(model, colors, side, frame.buffer_mut());
    } else if live_height > 0 {
        rows::draw_live_text(model, colors, Rect { y: page.bottom(), height: live_height, ..page }, frame.buffer_mut());
    }
    let footer = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    footer::draw_footer(model, colors, footer, frame);
    if let Some(dialog) = &model.dialog {
        dialogs::draw_dialog(dialog, colors, area, frame);
    }
    if let Some(message) = model.message.as_ref().filter(|_| model.has_message_box()) {
        message_box::draw_message_box(message, colors, area, frame.buffer_mut());
    }
    if model.has_help {
        help::draw_help(colors, area, frame.buffer_mut());
    }
    disarm_cells(frame.buffer_mut());
}

/// Draws the names of the screens, and the place in them.
fn draw_tab_bar(model: &TopModel, colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    let current = model.current().page.tab();
    let mut spans = Vec::new();
    for (number, tab) in ScreenTab::ALL.into_iter().enumerate() {
        let style = match tab == current {
            true => colors.cursor_style(),
            false => colors.tone_style(TextTone::Plain),
        };
        spans.push(Span::styled(format!(" {} ", number + 1), colors.tone_style(TextTone::Faint)));
        // A narrow terminal has room for the name of the screen that is shown.
        if tab == current || area.width >= FULL_TAB_WIDTH {
            spans.push(Span::styled(tab.title(), style));
        }
    }
    let tabs = Line::from(spans);
    let width = u16::try_from(tabs.width()).unwrap_or(u16::MAX);
    buffer.set_line(area.x, area.y, &tabs, area.width);
    let room = usize::from(area.width.saturating_sub(width + 2));
    let name = text::fit_to_width(&model.project, room);
    let at = area.right().saturating_sub(u16::try_from(text::display_width(&name)).unwrap_or_default() + 1);
    buffer.set_string(at, area.y, name, colors.tone_style(TextTone::Strong));
    let line = "─".repeat(area.width.into());
    buffer.set_string(area.x, area.y + 1, line, colors.border_style());
    let title = format!(" {} ", describe_page(model));
    let hidden = describe_hidden_rows(model);
    let hidden_width = u16::try_from(text::display_width(&hidden)).unwrap_or_default();
    let at = area.right().saturating_sub(hidden_width + 1);
    buffer.set_string(at, area.y + 1, hidden, colors.tone_style(TextTone::Plain));
    let title = text::fit_to_width(&title, usize::from(area.width.saturating_sub(4 + hidden_width)));
    buffer.set_string(area.x + 1, area.y + 1, title, colors.tone_style(TextTone::Name));
}

/// Describes how many rows are above and below those on the screen.
fn describe_hidden_rows(model: &TopModel) -> String {
    let state = model.current();
    let below = state.rows.len().saturating_sub(state.top + usize::from(model.pane_heights().0));
    let count = |mark: &str, rows: usize| if rows > 0 { format!(" {mark}{rows}") } else { String::new() };
    let hidden = format!("{}{}", count("↑", state.top), count("↓", below));
    if hidden.is_empty() { hidden } else { format!("{hidden} ") }
}

fn describe_page(model: &TopModel) -> String {
    let state = model.current();
    let subject = match &state.page {
        ScreenPage::Now => "what needs you, what runs, what is next".to_owned(),
        ScreenPage::Tasks => "open tasks".to_owned(),
        ScreenPage::Task(id) => format!("task {id}"),
        ScreenPage::Sessions => "sessions, newest first".to_owned(),
        ScreenPage::Session(name) => name.clone(),
        ScreenPage::Why(Some(name)) => format!("why {name}"),
        ScreenPage::Why(None) => "why".to_owned(),
        ScreenPage::Changes => "open changes".to_owned(),
        ScreenPage::Change(task) => format!("the change of {task}"),
        ScreenPage::Log => "events, newest last".to_owned(),
    };
    let filter = match state.filter.as_str() {
        "" => String::new(),
        filter => format!(" · filter: {filter}"),
    };
    let loading = if state.is_loading() && state.data.is_none() { " · loading …" } else { "" };
    format!("{subject}{filter}{loading}")
}

/// Replaces every character that could act on the terminal. The rows have none; this keeps it so.
fn disarm_cells(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().contains(text::is_unsafe_character) {
            cell.set_symbol("?");
        }
    }
}
