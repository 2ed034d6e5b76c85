//! Known agents by their own command lines: a new process for each prompt, in the conversation before, whose output is a
//! stream of events.

/// The agents whose command lines and streams are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Goose,
}

impl Dialect {
    /// The program that speaks it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
        }
    }
}
