//! The help: all keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Widget};
use windlass_app::tone::TextTone;

use crate::palette::ColorMode;

/// The keys with what they do. They fit on the smallest terminal for which the screens are made.
const KEYS: [(&str, &str); 15] = [
    ("↑↓ j k", "move; PgUp PgDn, g and G for the ends"),
    ("Enter → l", "open, or fold and unfold"),
    ("Esc ← h", "back to where you came from"),
    ("Tab 1–6", "next screen, or the one with this number"),
    ("/", "filter: words, a state, an event type, T3"),
    ("a", "answer what waits for a person"),
    ("s", "say something to the agent"),
    ("c", "cancel the session"),
    ("d", "show the change of the task, with its diff"),
    ("m", "merge the change"),
    ("w", "why: who decided what about it"),
    ("u", "go to the cause of the event"),
    ("r Ctrl-L", "load again, draw again"),
    ("Ctrl-Z", "suspend; fg continues"),
    ("q Ctrl-C", "quit; agents keep working"),
];

const HELP_WIDTH: u16 = 58;

pub fn draw_help(colors: ColorMode, area: Rect, buffer: &mut Buffer) {
    let rows = u16::try_from(KEYS.len()).unwrap_or(u16::MAX);
    let (width, height) = (HELP_WIDTH.min(area.width), (rows + 2).min(area.height));
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(place, buffer);
    Block::bordered().border_style(colors.border_style()).title(" Keys · any key closes ").render(place, buffer);
    let inner = Rect { x: place.x + 2, y: place.y + 1, width: width.saturating_sub(3), height: height - 2 };
    for ((key, what), line) in KEYS.into_iter().zip(inner.rows()) {
        buffer.set_stringn(line.x, line.y, key, 10, colors.tone_style(TextTone::Strong));
        buffer.set_stringn(
            line.x + 11,
            line.y,
            what,
            usize::from(line.width.saturating_sub(11)),
            colors.tone_style(TextTone::Plain),
        );
    }
}
