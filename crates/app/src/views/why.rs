//! `windlass why` as a page.

use schemars::JsonSchema;
use serde::Serialize;

use super::LabelledText;
use crate::Failure;
use crate::context::OpenedProject;
use crate::tone::TextTone;
use crate::why::{WhyCause, WhyFact, WhySubject};

/// The most facts of a page, and the most lines of evidence of a fact.
const MAX_FACTS: usize = 1000;
const MAX_EVIDENCE_LINES: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyFactView {
    pub seq: u64,
    pub at: i64,
    pub task: Option<String>,
    pub session: Option<String>,
    pub iteration: Option<u32>,
    #[serde(rename = "type")]
    pub kind: String,
    pub tone: TextTone,
    pub sentence: String,
    pub is_decision: bool,
    pub evidence: Vec<String>,
    pub details: Vec<String>,
    /// The events that caused it. A decision of a gate has each hook that blocked.
    pub cause_seqs: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyView {
    pub kind: String,
    pub name: String,
    pub state: String,
    pub tone: TextTone,
    pub about: Vec<LabelledText>,
    /// The event that set the state, then its causes, back to a command.
    pub causes: Vec<WhyCause>,
    /// Whether more causes were left out.
    pub has_more_causes: bool,
    /// Oldest first.
    pub facts: Vec<WhyFactView>,
    /// How many older facts were left out.
    pub omitted: usize,
    pub next_command: Option<String>,
}

/// Explains the subject of a name.
pub fn build_why_view(opened: &OpenedProject, name: &str) -> Result<WhyView, Failure> {
    let report = WhySubject::find_subject(opened, name)?.build_report(opened)?;
    let (tone, state) = report.state;
    let omitted = report.facts.len().saturating_sub(MAX_FACTS);
    let about = report.about.into_iter().chain(report.details);
    Ok(WhyView {
        kind: report.kind.to_owned(),
        name: report.name,
        state,
        tone,
        about: about.map(|(label, text)| LabelledText::new(label, text)).collect(),
        causes: report.causes,
        has_more_causes: report.has_more_causes,
        facts: report.facts.iter().skip(omitted).map(fact_view).collect(),
        omitted,
        next_command: report.next,
    })
}

fn fact_view(fact: &WhyFact) -> WhyFactView {
    let envelope = &fact.record.envelope;
    WhyFactView {
        seq: fact.record.seq.0,
        at: envelope.timestamp.millis(),
        task: envelope.node.task_id().map(|task| task.to_string()),
        session: envelope.session.as_ref().map(ToString::to_string),
        iteration: envelope.iteration,
        kind: envelope.event.shown_type_name().to_string(),
        tone: fact.tone,
        sentence: fact.full_sentence(),
        is_decision: fact.is_decision(),
        evidence: fact.evidence.iter().take(MAX_EVIDENCE_LINES).cloned().collect(),
        details: fact.details.clone(),
        cause_seqs: fact.cause_positions().iter().map(|seq| seq.0).collect(),
    }
}
