//! The report about one subject: its state, its facts, and the next command.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::fact::WhyFact;
use crate::tone::TextTone;

/// An event that led to the state of the subject of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyCause {
    pub seq: u64,
    /// The task of the event unless it is the subject, the type of the event, and its sentence.
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
    /// Whether more causes were left out.
    pub has_more_causes: bool,
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
        let more = self.has_more_causes.then(|| ("more causes", "`windlass events` shows everything".to_owned()));
        self.about.iter().cloned().chain(causes).chain(more).chain(self.details.iter().cloned()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_about_more_causes_follows_causes() {
        let report = WhyReport {
            kind: "task",
            name: "T1".to_owned(),
            state: (TextTone::Good, "ready".to_owned()),
            about: vec![("goal", "Mend the pump".to_owned())],
            causes: vec![WhyCause { seq: 7, text: "task_ready".to_owned() }],
            has_more_causes: true,
            details: vec![("waits for", "T2".to_owned())],
            facts: Vec::new(),
            next: None,
        };
        let labels: Vec<&str> = report.list_lines().iter().map(|(label, _)| *label).collect();
        assert_eq!(labels, ["goal", "because", "more causes", "waits for"]);
    }
}
