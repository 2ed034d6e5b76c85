//! The report about one subject: its state, its facts, and the next command.

use serde_json::{Value, json};

use super::fact::WhyFact;
use crate::tone::TextTone;

pub struct WhyReport {
    /// The kind of the subject: `task`, `session`, `hook`, `series` or `conversation`.
    pub kind: &'static str,
    pub name: String,
    pub state: (TextTone, String),
    pub about: Vec<(&'static str, String)>,
    /// Oldest first.
    pub facts: Vec<WhyFact>,
    /// The next command.
    pub next: Option<String>,
}

impl WhyReport {
    /// Returns the whole report as JSON.
    pub fn to_json(&self) -> Value {
        let about = self.about.iter().map(|(label, text)| json!({"label": label, "text": text}));
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
