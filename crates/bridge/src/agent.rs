//! The agents whose hook systems can call Windlass.

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

/// The name of each agent on the command line and its title, in the order of [`Agent`].
const NAMES: [(&str, &str); 8] = [
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("gemini", "Gemini CLI"),
    ("qwen", "Qwen Code"),
    ("copilot", "GitHub Copilot CLI"),
    ("goose", "goose"),
    ("kimi", "Kimi Code"),
    ("cursor", "Cursor"),
];

/// An error for a name that no agent has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no agent with hooks is called `{0}`")]
pub struct UnknownAgent(String);

impl Agent {
    pub const ALL: &[Self] =
        &[Self::Claude, Self::Codex, Self::Gemini, Self::Qwen, Self::Copilot, Self::Goose, Self::Kimi, Self::Cursor];

    /// Returns the name on the command line and in the log.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Returns the product name.
    pub const fn title(self) -> &'static str {
        NAMES[self as usize].1
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
