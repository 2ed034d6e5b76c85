//! A session's events, told as people would: iterations, and in each of them turns, hooks and the gate's decisions.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_engine::{
    Decision, Event, HookClass, Opening, Promise, Purpose, Record, Seq, Timestamp, Verdict, Work, payload,
};

use crate::commands::hooks::runs::{Cause, Outcome, Run};
use crate::show;

/// A stretch of a session.
pub struct Part {
    /// The iteration; nothing before the first, and after the end.
    pub iteration: Option<u32>,
    pub started: Timestamp,
    pub steps: Vec<Step>,
    /// How the iteration ended.
    pub end: Option<&'static str>,
}

pub enum Step {
    Turn(Box<Turn>),
    Hook(Box<Run>),
    Gate(Gate),
    /// Somebody else took the session up, or asked for its end.
    Note(Seq, String),
}

/// The agent's word, from when it got it.
pub struct Turn {
    /// Counted through the whole session.
    pub number: u32,
    pub seq: Seq,
    pub purpose: Purpose,
    pub started: Timestamp,
    pub ended: Option<Timestamp>,
    /// The pieces of feedback that it was told and has answered.
    pub feedback: Vec<Seq>,
    /// How many pieces it was told.
    pub told: u32,
    pub promise: Option<Promise>,
    pub end: TurnEnd,
    pub record: Option<String>,
}

pub enum TurnEnd {
    Open,
    Said(String),
    Failed(String),
    Interrupted,
}

/// What became of a turn, by the stop hooks.
pub struct Gate {
    pub seq: Seq,
    pub decided: payload::GateDecided,
    /// The decision in words.
    pub words: String,
    /// The hooks whose outcome is the verdict.
    pub by: Vec<String>,
}

/// A whole session.
#[derive(Default)]
pub struct Story {
    pub parts: Vec<Part>,
    /// The events that hooks ran for.
    pub causes: BTreeMap<Seq, Cause>,
    /// The pieces of feedback that were queued for more than one iteration.
    queued: Vec<Seq>,
    /// Which turn each piece of feedback was delivered in.
    pub delivered: BTreeMap<Seq, u32>,
    pub sent_back: u32,
    pub interrupted: u32,
    turns: u32,
    last_turn: Option<Seq>,
    of_graph: bool,
}

impl Story {
    /// Tells the events of a session, oldest first, with the runs that they tell of.
    pub fn new(records: &[Record], runs: Vec<Run>) -> Self {
        let mut story = Self::default();
        let mut runs: BTreeMap<Seq, Run> = runs.into_iter().map(|run| (run.at, run)).collect();
        for record in records {
            if record.envelope.metadata.owes.is_some() {
                story.causes.insert(record.seq, Cause::of(record));
            }
            if let Some(run) = runs.remove(&record.seq) {
                story.step(record, Step::Hook(Box::new(run)));
            } else {
                story.take(record);
            }
        }
        story
    }

    /// The pieces of feedback that no finished turn has heard.
    pub fn unheard(&self) -> Vec<Seq> {
        self.queued.iter().copied().filter(|piece| !self.delivered.contains_key(piece)).collect()
    }

    fn take(&mut self, record: &Record) {
        let at = record.envelope.timestamp;
        if let Event::FeedbackQueued(queued) = &record.envelope.event
            && !queued.passing
        {
            self.queued.push(record.seq);
        }
        match &record.envelope.event {
            Event::SessionStarted(started) => {
                self.of_graph = started.work == Work::Graph;
                self.begin(None, at);
            }
            Event::IterationStarted(started) => self.begin(Some(started.run.iteration), at),
            Event::TurnStarted(started) => self.turn(record, started),
            Event::FeedbackDelivered(delivered) => {
                let number = self.turns;
                self.delivered.extend(delivered.feedback.iter().map(|piece| (*piece, number)));
                self.with_turn(|turn| turn.feedback.clone_from(&delivered.feedback));
            }
            Event::ConversationOpened(opened) if opened.opening != Opening::New => {
                self.step(record, Step::Note(record.seq, format!("conversation {}", show::summary(record))));
            }
            Event::TurnFinished(finished) => {
                self.last_turn = Some(record.seq);
                self.end_turn(at, TurnEnd::Said(finished.output.clone()));
                self.with_turn(|turn| turn.record.clone_from(&finished.record));
            }
            Event::DeliveryFinished(finished) => self.end_turn(at, TurnEnd::Said(finished.output.clone())),
            Event::PromiseDetected(detected) => self.with_turn(|turn| turn.promise = Some(detected.promise)),
            Event::GateDecided(decided) => self.gate(record, decided),
            Event::IterationCompleted(_) => self.end_part("completed"),
            Event::IterationFailed(failed) => {
                self.end_turn(at, TurnEnd::Failed(failed.error.clone()));
                self.end_part("failed");
                if let Some(until) = show::retry_moment(record) {
                    self.step(record, Step::Note(record.seq, format!("tried again at {}", show::moment(until))));
                }
            }
            Event::DeliveryFailed(failed) => self.end_turn(at, TurnEnd::Failed(failed.error.clone())),
            Event::IterationInterrupted(_) => {
                self.interrupted += 1;
                self.end_turn(at, TurnEnd::Interrupted);
                self.end_part("interrupted");
            }
            Event::IterationPostponed(postponed) => {
                self.end_turn(at, TurnEnd::Failed(postponed.error.clone()));
                self.end_part("postponed");
                let until = show::moment(postponed.until);
                self.step(record, Step::Note(record.seq, format!("rate limited: left alone until {until}")));
            }
            Event::GateAnswered(_) => {
                let by = &record.envelope.metadata.triggered_by;
                self.step(record, Step::Note(record.seq, format!("{by} answers {}", show::summary(record))));
            }
            Event::DeliveryInterrupted(_) => self.end_turn(at, TurnEnd::Interrupted),
            Event::SessionResumed(resumed) => {
                self.step(record, Step::Note(record.seq, format!("taken up again by {}", resumed.owner)));
            }
            Event::SessionStopping(_) => {
                self.step(record, Step::Note(record.seq, format!("asked to end: {}", show::summary(record))));
            }
            Event::FeedbackQueued(queued) if !queued.voice.is_hook() => {
                let said = format!("{} says, feedback {}: {}", queued.source, record.seq, queued.text.trim());
                self.step(record, Step::Note(record.seq, said));
            }
            Event::SessionEnded(_) => self.begin(None, at),
            Event::NoteAdded(_) => self.step(record, Step::Note(record.seq, show::summary(record))),
            // A session that takes what there is says what it takes, and what became of it.
            _ if self.of_graph => {
                if let Some((_, note)) = show::of_task(record) {
                    self.step(record, Step::Note(record.seq, note));
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, iteration: Option<u32>, started: Timestamp) {
        self.parts.push(Part { iteration, started, steps: Vec::new(), end: None });
    }

    fn step(&mut self, record: &Record, step: Step) {
        if self.parts.is_empty() {
            self.begin(None, record.envelope.timestamp);
        }
        if let Some(part) = self.parts.last_mut() {
            part.steps.push(step);
        }
    }

    fn end_part(&mut self, end: &'static str) {
        if let Some(part) = self.parts.last_mut() {
            part.end = Some(end);
        }
    }

    fn turn(&mut self, record: &Record, started: &payload::TurnStarted) {
        self.turns += 1;
        let turn = Turn {
            number: self.turns,
            seq: record.seq,
            purpose: started.purpose.clone(),
            started: record.envelope.timestamp,
            ended: None,
            feedback: Vec::new(),
            told: started.feedback,
            promise: None,
            end: TurnEnd::Open,
            record: None,
        };
        self.step(record, Step::Turn(Box::new(turn)));
    }

    /// Changes the last turn.
    fn with_turn(&mut self, change: impl FnOnce(&mut Turn)) {
        let steps = self.parts.iter_mut().rev().flat_map(|part| part.steps.iter_mut().rev());
        let mut turns = steps.filter_map(|step| match step {
            Step::Turn(turn) => Some(turn),
            _ => None,
        });
        if let Some(turn) = turns.next() {
            change(turn);
        }
    }

    fn end_turn(&mut self, at: Timestamp, end: TurnEnd) {
        self.with_turn(|turn| {
            // An iteration may also end between two turns.
            if turn.ended.is_none() {
                (turn.ended, turn.end) = (Some(at), end);
            }
        });
    }

    fn gate(&mut self, record: &Record, decided: &payload::GateDecided) {
        if decided.decision == Decision::SendBack {
            self.sent_back += 1;
        }
        let steps = self.parts.last().map(|part| part.steps.as_slice()).unwrap_or_default();
        let by = steps.iter().filter_map(|step| match step {
            Step::Hook(run) if self.verdict(run) == Some(decided.verdict) => Some(run.title()),
            _ => None,
        });
        let (seq, words, by) = (record.seq, show::summary(record), by.collect());
        self.step(record, Step::Gate(Gate { seq, decided: decided.clone(), words, by }));
    }

    /// What a hook says about the last turn, if it is a gate of it.
    fn verdict(&self, run: &Run) -> Option<Verdict> {
        let last_turn = self.last_turn.filter(|seq| run.event == Some(*seq))?;
        let owed = self.causes.get(&last_turn)?.owed(run).filter(|owed| owed.class == HookClass::Gate)?;
        match run.outcome {
            Outcome::Ended(outcome) => Some(Verdict::of_stop_hook(outcome, owed.on_failure, run.unstarted)),
            Outcome::Error | Outcome::Running | Outcome::Left => None,
        }
    }
}

/// A verdict as it is named in the log.
pub fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Continue => "continue",
        Verdict::Block => "block",
        Verdict::Escalate => "escalate",
    }
}

impl Turn {
    pub fn to_json(&self) -> Value {
        let (outcome, said) = match &self.end {
            TurnEnd::Open => ("open", None),
            TurnEnd::Said(output) => ("finished", Some(output)),
            TurnEnd::Failed(error) => ("failed", Some(error)),
            TurnEnd::Interrupted => ("interrupted", None),
        };
        json!({
            "type": "turn",
            "turn": self.number,
            "seq": self.seq,
            "purpose": match self.purpose {
                Purpose::Work => "work",
                Purpose::SendBack => "send_back",
                Purpose::Recovery => "recovery",
                Purpose::Delivery | Purpose::UnjudgedDelivery(_) => "delivery",
            },
            "startedAt": self.started,
            "finishedAt": self.ended,
            "outcome": outcome,
            "said": said,
            "promise": self.promise,
            "feedbackTold": self.told,
            "feedbackDelivered": self.feedback,
            "record": self.record,
        })
    }
}

impl Gate {
    pub fn to_json(&self) -> Value {
        json!({
            "type": "gate",
            "seq": self.seq,
            "verdict": self.decided.verdict,
            "decision": self.decided.decision,
            "sentBack": self.decided.retries,
            "decidedBy": self.by,
            "words": self.words,
        })
    }
}
