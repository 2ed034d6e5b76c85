//! The events at which agents call, which are the points of the bridge, and their names in each agent.

use crate::Agent;

/// An event of an agent's conversation at which its hook system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentHookEvent {
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

/// The names of each event, in the order of [`AgentHookEvent`]: as a point, in Claude Code, in Gemini CLI, and in Cursor.
const NAMES: [(&str, &str, Option<&str>, Option<&str>); 9] = [
    ("session_start", "SessionStart", Some("SessionStart"), Some("sessionStart")),
    ("user_prompt_submit", "UserPromptSubmit", Some("BeforeAgent"), Some("beforeSubmitPrompt")),
    ("pre_tool_use", "PreToolUse", Some("BeforeTool"), Some("preToolUse")),
    ("post_tool_use", "PostToolUse", Some("AfterTool"), Some("postToolUse")),
    ("stop", "Stop", Some("AfterAgent"), Some("stop")),
    ("subagent_stop", "SubagentStop", None, Some("subagentStop")),
    ("notification", "Notification", Some("Notification"), None),
    ("pre_compact", "PreCompact", Some("PreCompress"), Some("preCompact")),
    ("session_end", "SessionEnd", Some("SessionEnd"), Some("sessionEnd")),
];

impl AgentHookEvent {
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

    /// Returns the name of the event's point in the configuration.
    pub const fn point(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Returns Claude Code's name of the event.
    pub const fn claude_name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// Returns the event of a point, if it is a point of the bridge.
    pub fn of_point(point: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.point() == point)
    }

    /// Returns the field of Claude Code's payload that matchers use at events without a tool.
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

impl Agent {
    /// Returns the agent's name of an event, or `None` if it has no such event.
    pub const fn event_name(self, event: AgentHookEvent) -> Option<&'static str> {
        let (_, claude, gemini, cursor) = NAMES[event as usize];
        match (self, event) {
            (Self::Gemini, _) => gemini,
            (Self::Cursor, _) => cursor,
            (Self::Codex, AgentHookEvent::Notification)
            | (Self::Goose, AgentHookEvent::Notification | AgentHookEvent::SubagentStop | AgentHookEvent::PreCompact) => {
                None
            }
            _ => Some(claude),
        }
    }
}
