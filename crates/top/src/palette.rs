//! The colours of the screen: the sixteen of every terminal, or none.

use ratatui::style::{Color, Modifier, Style};
use windlass_app::tone::TextTone;

/// Whether the terminal shows colours. Without them, tones are bold, dim or underlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorMode {
    Colors,
    Plain,
}

impl ColorMode {
    /// Returns the style of a tone.
    pub fn tone_style(self, tone: TextTone) -> Style {
        let style = Style::new();
        match (tone, self) {
            (TextTone::Plain, _) => style,
            (TextTone::Strong, _) => style.add_modifier(Modifier::BOLD),
            (TextTone::Faint, Self::Colors) => style.fg(Color::DarkGray),
            (TextTone::Faint, Self::Plain) => style.add_modifier(Modifier::DIM),
            (TextTone::Good, Self::Colors) => style.fg(Color::Green),
            (TextTone::Warning, Self::Colors) => style.fg(Color::Yellow),
            (TextTone::Bad, Self::Colors) => style.fg(Color::Red),
            (TextTone::Name, Self::Colors) => style.fg(Color::Cyan),
            (TextTone::Warning | TextTone::Bad, Self::Plain) => style.add_modifier(Modifier::BOLD),
            (TextTone::Name, Self::Plain) => style.add_modifier(Modifier::UNDERLINED),
            (TextTone::Good, Self::Plain) => style,
        }
    }

    /// Returns the style of the row under the cursor. It keeps the colours of the text readable on any background.
    pub fn cursor_style(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Returns the style of the lines around panes and dialogs.
    pub fn border_style(self) -> Style {
        self.tone_style(TextTone::Faint)
    }
}
