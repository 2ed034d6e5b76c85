//! The box over the page with a message that is too long for the footer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Widget};
use windlass_app::tone::TextTone;

use crate::message::FooterMessage;
use crate::palette::ColorMode;

/// The rows above the box: the tab bar. A dialog below stays visible where there is room.
const ROWS_ABOVE: u16 = 2;

pub fn draw_message_box(message: &FooterMessage, colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    let shown = message.layout_box((area.width, area.height));
    let height = u16::try_from(shown.rows.len()).unwrap_or(u16::MAX).saturating_add(2);
    let place = Rect {
        x: area.x + (area.width - shown.width) / 2,
        y: area.y + ROWS_ABOVE,
        width: shown.width,
        height: height.min(area.height.saturating_sub(ROWS_ABOVE)),
    };
    Clear.render(place, buffer);
    let name = if message.tone == TextTone::Bad { "Error" } else { "Warning" };
    let keys = if shown.can_scroll { "↑↓ scroll · Esc closes" } else { "Esc closes" };
    let frame = Block::bordered().border_style(colors.tone_style(message.tone)).title(format!(" {name} · {keys} "));
    frame.render(place, buffer);
    let inner = Rect {
        x: place.x + 2,
        y: place.y + 1,
        width: place.width.saturating_sub(4),
        height: place.height.saturating_sub(2),
    };
    for (row, line) in shown.rows.iter().zip(inner.rows()) {
        buffer.set_stringn(line.x, line.y, row, usize::from(line.width), colors.tone_style(TextTone::Plain));
    }
}
