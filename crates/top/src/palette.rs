//! The colours of the screen: the sixteen of every terminal, or none.

use ratatui::style::{Color, Modifier, Style};
use windlass_app::tone::Tone;

/// Whether the terminal shows colours. Without them, tones are bold, dim or underlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorMode {
    Colors,
    Plain,
}

impl ColorMode {
    /// Returns the style of a tone.
    pub fn tone_style(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self) {
            (Tone::Plain, _) => style,
            (Tone::Strong, _) => style.add_modifier(Modifier::BOLD),
            (Tone::Faint, Self::Colors) => style.fg(Color::DarkGray),
            (Tone::Faint, Self::Plain) => style.add_modifier(Modifier::DIM),
            (Tone::Good, Self::Colors) => style.fg(Color::Green),
            (Tone::Warning, Self::Colors) => style.fg(Color::Yellow),
            (Tone::Bad, Self::Colors) => style.fg(Color::Red),
            (Tone::Name, Self::Colors) => style.fg(Color::Cyan),
            (Tone::Warning | Tone::Bad, Self::Plain) => style.add_modifier(Modifier::BOLD),
            (Tone::Name, Self::Plain) => style.add_modifier(Modifier::UNDERLINED),
            (Tone::Good, Self::Plain) => style,
        }
    }

    /// Returns the style of the row under the cursor. It keeps the colours of the text readable on any background.
    pub fn cursor_style(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Returns the style of the lines around panes and dialogs.
    pub fn border_style(self) -> Style {
        self.tone_style(Tone::Faint)
    }
}
