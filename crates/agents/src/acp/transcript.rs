//! The transcript of a turn: the agent's events as text, for observers and for the record of the turn.

use super::client::AcpEvent;
use super::permissions::{ToolKind, ToolPermission};
use super::tool_use::{ToolUse, ToolUseChange, ToolUseStatus};

/// Renders events, and knows whether the last line is still open.
#[derive(Debug, Default)]
pub struct TranscriptRenderer {
    within: bool,
}

impl TranscriptRenderer {
    /// Renders an event.
    pub fn render_event(&mut self, said: &AcpEvent, emit: &mut dyn FnMut(&str)) {
        match said {
            AcpEvent::Text(text) if text.is_empty() => {}
            AcpEvent::Text(text) => {
                emit(text);
                self.within = !text.ends_with('\n');
            }
            said => {
                if let Some(text) = describe_event(said) {
                    self.render_note(&text, emit);
                }
            }
        }
    }

    /// Renders a note on a line of its own, in brackets, to tell it from the agent's text.
    pub fn render_note(&mut self, text: &str, emit: &mut dyn FnMut(&str)) {
        let before = if std::mem::take(&mut self.within) { "\n" } else { "" };
        emit(&format!("{before}[{text}]\n"));
    }
}

/// Describes an event. Answers have no text, and requests are described when they are served.
fn describe_event(said: &AcpEvent) -> Option<String> {
    Some(match said {
        AcpEvent::Tool(ToolUseChange::Began(tool)) => describe_tool_use(tool),
        AcpEvent::Tool(ToolUseChange::Ended(tool)) => {
            let end = if tool.status == ToolUseStatus::Failed { "failed" } else { "completed" };
            format!("{}: {end}", describe_tool_use(tool))
        }
        AcpEvent::PermissionAnswered { tool, permission, answer } => {
            let answer = match (answer, permission) {
                (Some(option), ToolPermission::Allow) => format!("allowed ({option})"),
                (Some(option), ToolPermission::Deny) => format!("denied ({option})"),
                (None, _) => "cancelled".to_owned(),
            };
            format!("asks for permission, {}: {answer}", describe_tool_use(tool))
        }
        AcpEvent::Plan(steps) => {
            let lines: String = steps.iter().map(|(step, status)| format!("\n  {status}: {step}")).collect();
            format!("plan{lines}")
        }
        AcpEvent::Notice(title) => format!("notice: {title}"),
        AcpEvent::Text(_) | AcpEvent::Answer(_) | AcpEvent::Request { .. } => return None,
    })
}

fn describe_tool_use(tool: &ToolUse) -> String {
    match tool.kind {
        ToolKind::Other => tool.title.clone(),
        kind => format!("{}: {}", kind.name(), tool.title),
    }
}
