//! The facts that answer `windlass why`, in the order of the log.
//!
//! ```text
//! hook_started 12.0 ─► hook_finished 12.0 ─► feedback_queued      one fact: a run of a hook, at its last event
//! any other event                                                 one fact
//! ```
//!
//! Not here: the events that a question is about (`subject`), the printed form of facts (`report`).

use std::collections::BTreeMap;
use std::path::Path;

use crate::context::OpenedProject;
use crate::hook_runs::{HookRunOutcome, HookRunRecord, RunCause, RunCauses, collect_runs};
use crate::{Failure, time_format};
use serde_json::{Value, json};
use windlass_engine::validation::RuleResult;
use windlass_engine::{
    AfterIteration, Event, EventRecord, EventSubject, EventType, GateDecision, GateVerdict, HookClass, Seq, TaskId,
    last_line_without_claim, payload,
};

use crate::event_text::{self, bridge, drive};
use crate::tone::TextTone;

/// Events that decide nothing. The summary leaves them out.
const NON_DECISION_EVENTS: &[EventType] = &[
    EventType::AgentMetrics,
    EventType::CheckpointCreated,
    EventType::ConfigRecorded,
    EventType::ConversationOpened,
    EventType::DependencyAdded,
    EventType::DependencyRemoved,
    EventType::FeedbackDelivered,
    EventType::IterationCompleted,
    EventType::IterationStarted,
    EventType::MergeStarted,
    EventType::SeriesAdvanced,
    EventType::SessionStarted,
    EventType::TaskUpdated,
    EventType::TurnStarted,
    EventType::WorkspaceOpened,
];

/// The most lines of evidence that the summary shows of a fact.
const MAX_EVIDENCE_LINES: usize = 3;

/// One fact of the log, with its evidence.
pub struct WhyFact {
    pub record: EventRecord,
    pub tone: TextTone,
    /// The event in one sentence.
    what: String,
    /// The hook, person or agent that decided it, unless the sentence names them.
    by: Option<String>,
    /// The lines that hooks, rules and agents said.
    pub evidence: Vec<String>,
    /// Further facts: actions, output files, the delivery of the feedback.
    pub details: Vec<String>,
    /// The run, if the fact is a run of a hook.
    pub run: Option<HookRunRecord>,
    /// The verdict of a stop hook about the turn.
    verdict: Option<GateVerdict>,
    /// The runs of the hooks that a gate has followed. The log names only the run that ended last.
    judges: Vec<Seq>,
}

/// Builds the facts of a list of events, oldest first.
pub fn build_facts(opened: &OpenedProject, records: Vec<EventRecord>) -> Result<Vec<WhyFact>, Failure> {
    let runs = collect_runs(opened, &records)?;
    let mut runs: BTreeMap<Seq, HookRunRecord> = runs.into_iter().map(|run| (run.at, run)).collect();
    let mut causes = RunCauses::new(&opened.store);
    let files = opened.project.record_directory();
    let mut facts: Vec<WhyFact> = Vec::new();
    for record in records {
        if let Some(run) = runs.remove(&record.seq) {
            let cause = causes.find_cause(&run)?;
            facts.push(WhyFact::from_hook_run(record, run, cause, &files));
        } else if !is_part_of_run(&record.envelope.event) {
            if let Event::FeedbackDelivered(delivered) = &record.envelope.event {
                mark_delivered(&mut facts, &delivered.feedback, record.seq);
            }
            facts.push(WhyFact::from_event(record, &facts));
        }
    }
    Ok(facts)
}

fn is_part_of_run(event: &Event) -> bool {
    match event {
        Event::HookStarted(_) | Event::HookFinished(_) | Event::HookRetrying(_) | Event::HookError(_) => true,
        Event::FeedbackQueued(queued) => queued.voice.is_hook(),
        _ => false,
    }
}

fn mark_delivered(facts: &mut [WhyFact], pieces: &[Seq], at: Seq) {
    for fact in facts {
        let feedback = fact.run.as_ref().and_then(|run| run.feedback.as_ref());
        if feedback.is_some_and(|(seq, _)| pieces.contains(seq)) {
            fact.details.push(format!("delivered to the agent with event {at}"));
        }
    }
}

impl WhyFact {
    fn from_hook_run(record: EventRecord, run: HookRunRecord, cause: Option<&RunCause>, files: &Path) -> Self {
        let (tone, word) = event_text::describe_run_outcome(run.outcome);
        let title = run.title();
        // A hook without a name of its own is called after its point.
        let point =
            cause.and_then(|cause| cause.find_hook_point(&run)).filter(|point| !title.starts_with(point.as_str()));
        let place = point.map(|point| format!(" at {point}")).unwrap_or_default();
        let attempt = if run.attempt > 1 { format!(" in attempt {}", run.attempt) } else { String::new() };
        let message = match run.message.as_deref() {
            Some(message) if message.starts_with(word) => format!("{message}{attempt}"),
            Some(message) => format!("{word}{attempt}: {message}"),
            None => format!("{word}{attempt}"),
        };
        let took = run.took.map(|took| format!(" ({})", time_format::format_millis(took))).unwrap_or_default();
        let mut details: Vec<String> =
            run.actions.iter().map(|action| format!("asks for {}: {}", action.kind, action.payload)).collect();
        details.extend(
            run.find_output_file(files)
                .map(|(file, exists)| format!("all of its output: {file}{}", if exists { "" } else { " (gone)" })),
        );
        let gate = cause.and_then(|cause| cause.find_hook_effect(&run)).filter(|owed| owed.class == HookClass::Gate);
        let verdict = gate.and_then(|owed| match run.outcome {
            HookRunOutcome::Ended(outcome) => {
                Some(GateVerdict::from_stop_hook(outcome, owed.on_failure, run.unstarted))
            }
            HookRunOutcome::Error | HookRunOutcome::Running | HookRunOutcome::Left => None,
        });
        Self {
            what: format!("{title}{place} {message}{took}"),
            by: None,
            evidence: run.feedback.as_ref().map(|(_, text)| split_lines(text)).unwrap_or_default(),
            details,
            tone,
            verdict,
            judges: Vec::new(),
            run: Some(run),
            record,
        }
    }

    /// Describes an event; `before` are the facts before it.
    pub fn from_event(record: EventRecord, before: &[Self]) -> Self {
        let (what, by) = (event_text::summarize_event(&record).trim_end().to_owned(), find_trigger(&record));
        let (evidence, judges) = (collect_evidence(&record.envelope.event), find_judges(&record, before));
        let (tone, details, run, verdict) = (TextTone::Plain, Vec::new(), None, None);
        let mut fact = Self { what, by, evidence, details, tone, run, verdict, judges, record };
        match &fact.record.envelope.event {
            Event::TurnFinished(payload::TurnFinished { output, .. })
            | Event::DeliveryFinished(payload::DeliveryFinished { output, .. }) => {
                fact.what = format!("agent: {}", last_line_without_claim(output).unwrap_or_default());
            }
            Event::BridgeAnswered(answered) => {
                let (tone, outcome) = bridge::describe_answer(answered);
                (fact.tone, fact.what) = (tone, format!("{}: {outcome}", answered.point));
                fact.by = Some(answered.hooks.join(", ")).filter(|hooks| !hooks.is_empty());
            }
            Event::GateDecided(decided) => {
                let judges = list_turn_judges(decided.verdict, before);
                let judges: Vec<String> = judges.iter().filter_map(|fact| Some(fact.run.as_ref()?.title())).collect();
                fact.by = Some(judges.join(", ")).filter(|judges| !judges.is_empty());
                fact.what = format!("{}, so: {}", verdict_name(decided.verdict), fact.what);
                fact.tone = if decided.verdict == GateVerdict::Pass { TextTone::Good } else { TextTone::Warning };
                let is_claim = |fact: &Self| fact.record.kind() == EventType::PromiseDetected;
                let is_claimed = list_turn_facts(before).any(is_claim);
                if fact.tone == TextTone::Good
                    && decided.decision == GateDecision::Next(AfterIteration::Continue)
                    && !is_claimed
                {
                    fact.details.push("the agent has not said that it is done".to_owned());
                }
            }
            _ => {}
        }
        // An answer repeats the words of its hooks, and a validation those of its rules.
        if let Some(last) = before.last().filter(|last| last.record.kind() != fact.record.kind()) {
            fact.evidence.retain(|line| !last.evidence.contains(line));
        }
        fact
    }

    /// Returns the evidence that the summary shows. The sentence about a turn has the agent's last line already.
    pub fn evidence_excerpt(&self) -> &[String] {
        match self.record.kind() {
            EventType::TurnFinished | EventType::DeliveryFinished => &[],
            _ => &self.evidence[..self.evidence.len().min(MAX_EVIDENCE_LINES)],
        }
    }

    /// Returns whether the fact is about the event at a position. A run of a hook is also about its feedback.
    pub fn is_about(&self, seq: Seq) -> bool {
        let queued = self.run.as_ref().and_then(|run| run.feedback.as_ref());
        self.record.seq == seq || queued.is_some_and(|(queued, _)| *queued == seq)
    }

    /// Returns the events that led to it: the runs of the hooks that a gate has followed, or the event that the log names.
    pub fn cause_positions(&self) -> Vec<Seq> {
        match self.judges.is_empty() {
            true => self.record.cause_position().into_iter().collect(),
            false => self.judges.clone(),
        }
    }

    /// Returns whether the summary shows the fact.
    pub fn is_decision(&self) -> bool {
        !NON_DECISION_EVENTS.contains(&self.record.kind())
    }

    /// Returns the sentence with the author of the decision.
    pub fn full_sentence(&self) -> String {
        match &self.by {
            None => self.what.clone(),
            Some(by) if self.what.is_empty() => format!("by {by}"),
            Some(by) => format!("{}, by {by}", self.what),
        }
    }

    /// Formats the fact in one line. Its task is named unless it is `own`.
    pub fn format_line(&self, own: TaskId) -> String {
        let node = self.record.envelope.node;
        let node = if node == EventSubject::Task(own) { String::new() } else { format!("{node} ") };
        format!("{node}{} {}", self.record.envelope.event.shown_type_name(), self.full_sentence())
    }

    /// Returns the event as `windlass events --json` prints it, with the description.
    pub fn to_json(&self) -> Value {
        let mut object = json!(self.record);
        object["what"] = json!(self.what);
        object["by"] = json!(self.by);
        object["evidence"] = json!(self.evidence);
        object["details"] = json!(self.details);
        object
    }
}

/// Lists the facts since the last turn, newest first.
fn list_turn_facts(before: &[WhyFact]) -> impl Iterator<Item = &WhyFact> {
    before.iter().rev().take_while(|fact| fact.record.kind() != EventType::TurnFinished)
}

/// Lists the runs of stop hooks with a verdict about the last turn, oldest first.
fn list_turn_judges(verdict: GateVerdict, before: &[WhyFact]) -> Vec<&WhyFact> {
    let mut judges: Vec<&WhyFact> = list_turn_facts(before).filter(|fact| fact.verdict == Some(verdict)).collect();
    judges.reverse();
    judges
}

/// Finds the runs of the hooks that a gate has followed, if its decision follows a run. Other decisions follow the answer of a
/// person.
fn find_judges(record: &EventRecord, before: &[WhyFact]) -> Vec<Seq> {
    let judges = match &record.envelope.event {
        Event::GateDecided(decided) => list_turn_judges(decided.verdict, before),
        Event::PipelineFailed(failed) => {
            let is_named =
                |fact: &&WhyFact| fact.run.as_ref().is_some_and(|run| run.hook.as_ref() == Some(&failed.hook));
            before.iter().rev().find(is_named).into_iter().collect()
        }
        _ => return Vec::new(),
    };
    let is_cause = |fact: &WhyFact| record.cause_position().is_some_and(|cause| fact.is_about(cause));
    let follows_run = before.iter().rev().any(|fact| fact.run.is_some() && is_cause(fact));
    judges.iter().filter(|_| follows_run).map(|fact| fact.record.seq).collect()
}

/// Collects the evidence of an event, line by line.
fn collect_evidence(event: &Event) -> Vec<String> {
    let results = |results: &[RuleResult]| -> Vec<String> {
        let word = |passed| if passed { "passed" } else { "failed" };
        results.iter().map(|rule| format!("{} {}: {}", rule.rule_name, word(rule.passed), rule.message)).collect()
    };
    match event {
        Event::TurnFinished(payload::TurnFinished { output, .. })
        | Event::DeliveryFinished(payload::DeliveryFinished { output, .. }) => split_lines(output),
        Event::HookRegistered(registered) => vec![json!(registered.hook).to_string()],
        Event::SeriesStarted(started) => started.validation_rules.iter().map(|rule| json!(rule).to_string()).collect(),
        Event::HookEvaluated(evaluated) => {
            [results(&evaluated.results), split_lines(evaluated.next_prompt.as_deref().unwrap_or_default())].concat()
        }
        Event::ValidationFinished(finished) => {
            let promises = (!finished.promises.is_empty())
                .then(|| format!("the agent promises {}", drive::format_promises(&finished.promises)));
            // The results of rules have the same text.
            let is_known = |line: &&String| {
                finished.results.iter().any(|rule| **line == format!("{}: {}", rule.rule_name, rule.message))
            };
            let feedback = finished.feedback.iter().filter(|line| !is_known(line)).cloned();
            results(&finished.results).into_iter().chain(promises).chain(feedback).collect()
        }
        Event::PipelineFailed(failed) => split_lines(failed.feedback.as_deref().unwrap_or_default()),
        Event::BridgeAnswered(answered) => {
            let texts = [&answered.reason, &answered.told].into_iter().flatten();
            texts.flat_map(|text| split_lines(text)).collect()
        }
        _ => Vec::new(),
    }
}

fn split_lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Returns the author of an event, except for judgements, which name their hook.
fn find_trigger(record: &EventRecord) -> Option<String> {
    let metadata = &record.envelope.metadata;
    let judgements = [EventType::BridgeCalled, EventType::HookEvaluated, EventType::ValidationFinished];
    let by = event_text::find_author(record).filter(|_| !judgements.contains(&record.kind()));
    match (metadata.depth > 0, record.cause_position(), by) {
        (false, _, by) => by.map(str::to_owned),
        (true, cause, by) => {
            let cause = cause.map(|cause| format!(" of {cause}")).unwrap_or_default();
            Some(format!("a hook{cause}{}", by.map(|by| format!(", for {by}")).unwrap_or_default()))
        }
    }
}

/// Returns the name of a verdict in the log.
fn verdict_name(verdict: GateVerdict) -> &'static str {
    match verdict {
        GateVerdict::Pass => "pass",
        GateVerdict::Fail => "fail",
        GateVerdict::Continue => "continue",
        GateVerdict::Block => "block",
        GateVerdict::Escalate => "escalate",
    }
}
