//! What agents call the moments.

use crate::{Agent, Moment};

impl Agent {
    /// What it calls a moment; none where it has no such event.
    pub const fn event(self, moment: Moment) -> Option<&'static str> {
        match (self, moment) {
            (Self::Gemini, _) => gemini(moment),
            (Self::Cursor, _) => cursor(moment),
            (Self::Codex, Moment::Notification)
            | (Self::Goose, Moment::Notification | Moment::SubagentStop | Moment::PreCompact) => None,
            _ => Some(moment.claude_name()),
        }
    }
}

const fn gemini(moment: Moment) -> Option<&'static str> {
    match moment {
        Moment::SessionStart => Some("SessionStart"),
        Moment::UserPromptSubmit => Some("BeforeAgent"),
        Moment::PreToolUse => Some("BeforeTool"),
        Moment::PostToolUse => Some("AfterTool"),
        Moment::Stop => Some("AfterAgent"),
        Moment::SubagentStop => None,
        Moment::Notification => Some("Notification"),
        Moment::PreCompact => Some("PreCompress"),
        Moment::SessionEnd => Some("SessionEnd"),
    }
}

const fn cursor(moment: Moment) -> Option<&'static str> {
    match moment {
        Moment::SessionStart => Some("sessionStart"),
        Moment::UserPromptSubmit => Some("beforeSubmitPrompt"),
        Moment::PreToolUse => Some("preToolUse"),
        Moment::PostToolUse => Some("postToolUse"),
        Moment::Stop => Some("stop"),
        Moment::SubagentStop => Some("subagentStop"),
        Moment::Notification => None,
        Moment::PreCompact => Some("preCompact"),
        Moment::SessionEnd => Some("sessionEnd"),
    }
}
