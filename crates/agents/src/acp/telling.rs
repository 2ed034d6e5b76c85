//! The transcript of a turn: the agent's events as text, for observers and for the record of the turn.

use super::permissions::{Permission, ToolKind};
use super::talk::Said;
use super::tools::{Change, Status, Tool};

/// Renders events, and knows whether the last line is still open.
#[derive(Debug, Default)]
pub struct Telling {
    within: bool,
}

impl Telling {
    /// Renders an event.
    pub fn tell(&mut self, said: &Said, tell: &mut dyn FnMut(&str)) {
        match said {
            Said::Text(text) if text.is_empty() => {}
            Said::Text(text) => {
                tell(text);
                self.within = !text.ends_with('\n');
            }
            said => {
                if let Some(text) = told(said) {
                    self.aside(&text, tell);
                }
            }
        }
    }

    /// Renders a note on a line of its own, in brackets, to tell it from the agent's text.
    pub fn aside(&mut self, text: &str, tell: &mut dyn FnMut(&str)) {
        let before = if std::mem::take(&mut self.within) { "\n" } else { "" };
        tell(&format!("{before}[{text}]\n"));
    }
}

/// Describes an event. Answers have no text, and requests are described when they are served.
fn told(said: &Said) -> Option<String> {
    Some(match said {
        Said::Tool(Change::Began(tool)) => named(tool),
        Said::Tool(Change::Ended(tool)) => {
            let end = if tool.status == Status::Failed { "failed" } else { "completed" };
            format!("{}: {end}", named(tool))
        }
        Said::Asked { tool, permission, answer } => {
            let answer = match (answer, permission) {
                (Some(option), Permission::Allow) => format!("allowed ({option})"),
                (Some(option), Permission::Deny) => format!("denied ({option})"),
                (None, _) => "cancelled".to_owned(),
            };
            format!("asks for permission, {}: {answer}", named(tool))
        }
        Said::Plan(steps) => {
            let lines: String = steps.iter().map(|(step, status)| format!("\n  {status}: {step}")).collect();
            format!("plan{lines}")
        }
        Said::Notice(title) => format!("notice: {title}"),
        Said::Text(_) | Said::Answer(_) | Said::Wish { .. } => return None,
    })
}

fn named(tool: &Tool) -> String {
    match tool.kind {
        ToolKind::Other => tool.title.clone(),
        kind => format!("{}: {}", kind.name(), tool.title),
    }
}
