//! The agents whose hook systems can call Windlass.

use std::fmt::{self, Display};
use std::str::FromStr;

/// An agent with a hook system of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BridgeAgent {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Copilot,
    Goose,
    Kimi,
    Cursor,
}

/// The name of each agent on the command line and its title, in the order of [`BridgeAgent`].
const AGENT_NAMES: [(&str, &str); 8] = [
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
#[error("unknown agent `{0}`: Windlass knows no hook system of it")]
pub struct UnknownAgentError(String);

impl BridgeAgent {
    pub const ALL: &[Self] =
        &[Self::Claude, Self::Codex, Self::Gemini, Self::Qwen, Self::Copilot, Self::Goose, Self::Kimi, Self::Cursor];

    /// Returns the name on the command line and in the log.
    pub const fn name(self) -> &'static str {
        AGENT_NAMES[self as usize].0
    }

    /// Returns the product name.
    pub const fn title(self) -> &'static str {
        AGENT_NAMES[self as usize].1
    }
}

impl Display for BridgeAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for BridgeAgent {
    type Err = UnknownAgentError;

    fn from_str(text: &str) -> Result<Self, UnknownAgentError> {
        Self::ALL.iter().copied().find(|agent| agent.name() == text).ok_or_else(|| UnknownAgentError(text.to_owned()))
    }
}
