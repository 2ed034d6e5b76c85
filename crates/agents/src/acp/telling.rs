//! What an agent does, in words: for whoever watches, and for the record of the turn.

use super::permissions::{Permission, ToolKind};
use super::talk::Said;
use super::tools::{Change, Status, Tool};

/// How something that was said is told. An answer is for nobody else, and a wish is told when it is served.
pub fn told(said: &Said) -> Option<String> {
    Some(match said {
        Said::Text(text) => text.clone(),
        Said::Tool(Change::Began(tool)) => aside(&named(tool)),
        Said::Tool(Change::Ended(tool)) => {
            let end = if tool.status == Status::Failed { "failed" } else { "completed" };
            aside(&format!("{}: {end}", named(tool)))
        }
        Said::Asked { tool, permission, answer } => {
            let answer = match (answer, permission) {
                (Some(option), Permission::Allow) => format!("allowed ({option})"),
                (Some(option), Permission::Deny) => format!("denied ({option})"),
                (None, _) => "cancelled".to_owned(),
            };
            aside(&format!("asks for permission, {}: {answer}", named(tool)))
        }
        Said::Plan(steps) => {
            let lines: String = steps.iter().map(|(step, status)| format!("\n  {status}: {step}")).collect();
            aside(&format!("plan{lines}"))
        }
        Said::Notice(title) => aside(&format!("notice: {title}")),
        Said::Answer(_) | Said::Wish { .. } => return None,
    })
}

/// On a line of its own, and not to be taken for what the agent says.
pub fn aside(text: &str) -> String {
    format!("\n[{text}]\n")
}

fn named(tool: &Tool) -> String {
    match tool.kind {
        ToolKind::Other => tool.title.clone(),
        kind => format!("{}: {}", kind.name(), tool.title),
    }
}
