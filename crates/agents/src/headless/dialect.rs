//! The agents whose command lines and streams are known.

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

    /// The name of a new conversation, where we give it: from random bytes.
    pub fn name(self, random: u128) -> Option<String> {
        match self {
            Self::Claude | Self::Gemini => Some(uuid(random)),
            Self::Goose => Some(format!("windlass-{random:032x}")),
            Self::Codex | Self::Opencode => None,
        }
    }

    /// Whether its process stays for a while when its turn is over, with nothing more to do.
    pub fn lingers(self) -> bool {
        self == Self::Codex
    }

    /// Whether there is a way to hand it tools.
    pub fn takes_tools(self) -> bool {
        self != Self::Gemini
    }
}

/// Version 4, as programs expect it.
fn uuid(random: u128) -> String {
    let marked = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{marked:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
