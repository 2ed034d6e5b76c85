//! The agents whose hook systems can call us.

use std::fmt::{self, Display};
use std::str::FromStr;

/// An agent with a hook system of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Copilot,
    Goose,
    Kimi,
    Cursor,
}

/// A name that none of them has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no agent with hooks is called `{0}`")]
pub struct UnknownAgent(String);

impl Agent {
    pub const ALL: &[Self] =
        &[Self::Claude, Self::Codex, Self::Gemini, Self::Qwen, Self::Copilot, Self::Goose, Self::Kimi, Self::Cursor];

    /// What it is called on the command line and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Goose => "goose",
            Self::Kimi => "kimi",
            Self::Cursor => "cursor",
        }
    }

    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::Copilot => "GitHub Copilot CLI",
            Self::Goose => "goose",
            Self::Kimi => "Kimi Code",
            Self::Cursor => "Cursor",
        }
    }
}

impl Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, UnknownAgent> {
        Self::ALL.iter().copied().find(|agent| agent.name() == text).ok_or_else(|| UnknownAgent(text.to_owned()))
    }
}
