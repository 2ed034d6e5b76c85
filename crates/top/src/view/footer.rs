//! The footer: the keys that work here, or a message.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use windlass_app::tone::TextTone;
use windlass_text as text;

use crate::dialog::DialogState;
use crate::model::TopModel;
use crate::page::ScreenPage;
use crate::palette::ColorMode;
use crate::row::RowTarget;

/// A key and what it does.
pub type KeyHint = (&'static str, &'static str);

/// Draws the message, the filter, or the keys.
pub fn draw_footer(model: &TopModel, colors: ColorMode, area: Rect, frame: &mut Frame<'_>) {
    let width = usize::from(area.width);
    let message = model.message.as_ref().filter(|_| !model.has_message_box());
    if let (Some(DialogState::Filter { input, .. }), None) = (&model.dialog, message) {
        let (before, after) = input.split_at_cursor();
        let before = keep_end(&before, width.saturating_sub(12));
        let label = if model.current().page == ScreenPage::Why(None) { "why " } else { "filter " };
        let line = format!("{label}{before}{}", text::clean_line(&after));
        frame.buffer_mut().set_stringn(area.x, area.y, &line, width, colors.tone_style(TextTone::Strong));
        let column = text::display_width(label) + text::display_width(&before);
        frame.set_cursor_position((area.x + u16::try_from(column).unwrap_or_default(), area.y));
        return;
    }
    if let Some(message) = message {
        let shown = text::fit_to_width(&message.line(), width);
        frame.buffer_mut().set_string(area.x, area.y, shown, colors.tone_style(message.tone));
        return;
    }
    let mut spans = Vec::new();
    let mut room = width;
    for (key, what) in list_page_keys(model) {
        let columns = text::display_width(key) + text::display_width(what) + 3;
        if columns > room + 2 {
            break;
        }
        room = room.saturating_sub(columns);
        spans.push(Span::styled(key, colors.tone_style(TextTone::Strong)));
        spans.push(Span::styled(format!(" {what}  "), colors.tone_style(TextTone::Faint)));
    }
    frame.buffer_mut().set_line(area.x, area.y, &Line::from(spans), area.width);
}

/// Lists the keys that work on the page, most useful first.
fn list_page_keys(model: &TopModel) -> Vec<KeyHint> {
    let state = model.current();
    let subject = state.subject();
    let mut keys: Vec<KeyHint> = Vec::new();
    let has_answers = subject.answers.as_ref().is_some_and(|answers| !answers.is_empty());
    let may_answer = subject.answers.is_none() && subject.task.is_some() && state.page == ScreenPage::Tasks;
    if has_answers || may_answer {
        keys.push(("a", "answer"));
    }
    if subject.can_merge {
        keys.push(("m", if subject.landed_base.is_some() { "record merge" } else { "merge" }));
    }
    if state.target().is_some_and(RowTarget::has_action) {
        let folds = matches!(state.page, ScreenPage::Session(_) | ScreenPage::Why(_) | ScreenPage::Change(_));
        let links = matches!(state.target(), Some(RowTarget::Cause(_)));
        keys.push(("Enter", if folds && !links { "fold" } else { "open" }));
    }
    if subject.session.is_some() && !subject.is_over {
        keys.extend([("s", "say"), ("c", "cancel")]);
    }
    if subject.task.is_some() && !matches!(state.page, ScreenPage::Change(_)) {
        keys.push(("d", "diff"));
    }
    if subject.why_name().is_some() && !matches!(state.page, ScreenPage::Why(_)) {
        keys.push(("w", "why"));
    }
    keys.extend([("/", "filter"), ("?", "help")]);
    if model.pages.len() > 1 {
        keys.push(("Esc", "back"));
    }
    keys.extend([("q", "quit"), ("Tab", "next")]);
    keys
}

/// Keeps the end of a text that is too wide, where the cursor is.
pub fn keep_end(text: &str, columns: usize) -> String {
    let clean = text::clean_line(text);
    let mut kept: Vec<char> = Vec::new();
    let mut used = 0;
    for c in clean.chars().rev() {
        used += text::display_width(c.encode_utf8(&mut [0; 4]));
        if used > columns {
            break;
        }
        kept.push(c);
    }
    kept.iter().rev().collect()
}
