//! The report about one subject: its state, its facts, and the next command.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::fact::WhyFact;
use crate::tone::TextTone;

/// An event that led to the state of the subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyCause {
    pub seq: u64,
    /// The type of the event, and its sentence.
    pub text: String,
}

pub struct WhyReport {
    /// The kind of the subject: `task`, `session`, `hook`, `series` or `conversation`.
    pub kind: &'static str,
    pub name: String,
    pub state: (TextTone, String),
    pub about: Vec<(&'static str, String)>,
    /// The event that set the state, then its causes, back to a command.
    pub causes: Vec<WhyCause>,
    /// The lines that follow the causes.
    pub details: Vec<(&'static str, String)>,
    /// Oldest first.
    pub facts: Vec<WhyFact>,
    /// The next command.
    pub next: Option<String>,
}

impl WhyReport {
    /// Lists the labelled lines about the subject, with its causes.
    pub fn list_lines(&self) -> Vec<(&'static str, String)> {
        let causes = self.causes.iter().map(|cause| ("because", format!("{} {}", cause.seq, cause.text)));
        self.about.iter().cloned().chain(causes).chain(self.details.iter().cloned()).collect()
    }

    /// Returns the whole report as JSON.
    pub fn to_json(&self) -> Value {
        let lines = self.list_lines();
        let about = lines.iter().map(|(label, text)| json!({"label": label, "text": text}));
        json!({
            "kind": self.kind,
            "name": self.name,
            "standing": self.state.1,
            "about": about.collect::<Vec<_>>(),
            "facts": self.facts.iter().map(WhyFact::to_json).collect::<Vec<_>>(),
            "next": self.next,
        })
    }
}
