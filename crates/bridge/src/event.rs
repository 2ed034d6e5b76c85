//! The events at which agents call, which are the points of the bridge, and their names in each agent.

use windlass_engine::HookPoint;

use crate::BridgeAgent;

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

/// The point of each event and its name, in the order of [`AgentHookEvent`]: for Claude Code, Gemini CLI, and Cursor.
static EVENT_NAMES: [(HookPoint, &str, Option<&str>, Option<&str>); 9] = [
    (HookPoint::SessionStart, "SessionStart", Some("SessionStart"), Some("sessionStart")),
    (HookPoint::UserPromptSubmit, "UserPromptSubmit", Some("BeforeAgent"), Some("beforeSubmitPrompt")),
    (HookPoint::PreToolUse, "PreToolUse", Some("BeforeTool"), Some("preToolUse")),
    (HookPoint::PostToolUse, "PostToolUse", Some("AfterTool"), Some("postToolUse")),
    (HookPoint::Stop, "Stop", Some("AfterAgent"), Some("stop")),
    (HookPoint::SubagentStop, "SubagentStop", None, Some("subagentStop")),
    (HookPoint::Notification, "Notification", Some("Notification"), None),
    (HookPoint::PreCompact, "PreCompact", Some("PreCompress"), Some("preCompact")),
    (HookPoint::SessionEnd, "SessionEnd", Some("SessionEnd"), Some("sessionEnd")),
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

    /// Returns the point at which the hooks for this event are configured.
    pub fn point_name(self) -> &'static HookPoint {
        &EVENT_NAMES[self as usize].0
    }

    /// Returns Claude Code's name of the event.
    pub const fn claude_event_name(self) -> &'static str {
        EVENT_NAMES[self as usize].1
    }

    /// Returns the event of a point, where an agent calls at that point.
    pub fn from_point(point: &HookPoint) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.point_name() == point)
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

impl BridgeAgent {
    /// Returns the agent's name of an event, or `None` if it has no such event.
    pub const fn event_name(self, event: AgentHookEvent) -> Option<&'static str> {
        let (_, claude, gemini, cursor) = EVENT_NAMES[event as usize];
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
