//! The agents whose command lines and streams are known.

/// A command line and event stream that Windlass knows, named after the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadlessDialect {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Goose,
}

impl HeadlessDialect {
    /// Returns the name of the agent's program.
    pub fn program_name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
        }
    }

    /// Returns the name of a new conversation from random bytes, if the agent accepts one.
    pub fn new_conversation_name(self, random: u128) -> Option<String> {
        match self {
            Self::Claude | Self::Gemini => Some(format_uuid(random)),
            Self::Goose => Some(format!("windlass-{random:032x}")),
            Self::Codex | Self::Opencode => None,
        }
    }

    /// Returns whether the process stays for a while after its turn, with nothing left to do.
    pub fn lingers_after_turn(self) -> bool {
        self == Self::Codex
    }

    /// Returns whether tools can be passed to the agent.
    pub fn takes_tools(self) -> bool {
        self != Self::Gemini
    }
}

/// Formats random bytes as a UUID of version 4.
fn format_uuid(random: u128) -> String {
    let marked = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{marked:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
