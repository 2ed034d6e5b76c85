//! The moments at which agents call: the points of the bridge.

/// A moment in an agent's conversation at which its hook system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    SessionStart,
    UserPromptSubmit,
    PreToolUse,
    PostToolUse,
    Stop,
    SubagentStop,
    Notification,
    PreCompact,
    SessionEnd,
}

impl Moment {
    pub const ALL: &[Self] = &[
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::Stop,
        Self::SubagentStop,
        Self::Notification,
        Self::PreCompact,
        Self::SessionEnd,
    ];

    /// The point of the configuration that it is.
    pub const fn point(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::UserPromptSubmit => "user_prompt_submit",
            Self::PreToolUse => "pre_tool_use",
            Self::PostToolUse => "post_tool_use",
            Self::Stop => "stop",
            Self::SubagentStop => "subagent_stop",
            Self::Notification => "notification",
            Self::PreCompact => "pre_compact",
            Self::SessionEnd => "session_end",
        }
    }

    /// The same in Claude Code's words.
    pub const fn claude_name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
            Self::Notification => "Notification",
            Self::PreCompact => "PreCompact",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// The moment of a point, if it is one of the bridge.
    pub fn of_point(point: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|moment| moment.point() == point)
    }

    /// Where matchers look at something else than a tool: the field of Claude Code's payload that has it.
    pub const fn matched_field(self) -> Option<&'static str> {
        match self {
            Self::SessionStart => Some("source"),
            Self::SubagentStop => Some("agent_type"),
            Self::Notification => Some("notification_type"),
            Self::PreCompact => Some("trigger"),
            Self::SessionEnd => Some("reason"),
            Self::UserPromptSubmit | Self::PreToolUse | Self::PostToolUse | Self::Stop => None,
        }
    }
}
