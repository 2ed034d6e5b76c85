//! A hook run from the log, and the event that it ran for.
//!
//! Not here: assembling runs (`collector`), displaying them (`history`), metrics (`metrics`), consequences (`why`).

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::str::FromStr;

use serde_json::{Value, json};
use windlass_engine::{
    ActionRequest, BridgeCaller, EffectId, Event, EventRecord, EventSubject, EventType, HookBatch, HookEffect,
    HookOutcome, Seq, SessionName, Timestamp, payload,
};
use windlass_store::SqliteStore;

use crate::project::PROJECT_DIRECTORY;
use crate::{Failure, conversations, hints};

/// The outcome of a run, or its state if it has none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRunOutcome {
    Ended(HookOutcome),
    /// A hook inside a commit failed, or an action was refused: the log has only this error.
    Error,
    Running,
    /// The process that ran it is dead, and no process has taken it over yet.
    Left,
}

impl HookRunOutcome {
    /// Returns the names for programs.
    pub fn list_names() -> Vec<&'static str> {
        let others = [Self::Error, Self::Running, Self::Left];
        HookOutcome::ALL.into_iter().map(Self::Ended).chain(others).map(Self::name).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ended(outcome) => outcome.name(),
            Self::Error => "error",
            Self::Running => "running",
            Self::Left => "left",
        }
    }
}

impl FromStr for HookRunOutcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "running" => Ok(Self::Running),
            "left" => Ok(Self::Left),
            ended => ended.parse().map(Self::Ended),
        }
    }
}

/// One run of a hook, or an error without a run.
#[derive(Debug, Clone)]
pub struct HookRunRecord {
    /// The position of its last event.
    pub at: Seq,
    /// The hook; none if an action was refused.
    pub hook: Option<String>,
    /// The action that was refused.
    pub action: Option<String>,
    pub effect: Option<EffectId>,
    /// The event that it ran for.
    pub event: Option<Seq>,
    pub node: EventSubject,
    pub session: Option<SessionName>,
    pub iteration: Option<u32>,
    pub attempt: u32,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub outcome: HookRunOutcome,
    /// Whether the hook could not be started.
    pub unstarted: bool,
    pub message: Option<String>,
    /// In milliseconds, if it was measured.
    pub took: Option<u64>,
    pub record: Option<String>,
    pub actions: Vec<ActionRequest>,
    /// The feedback for the agent, and the event that queued it.
    pub feedback: Option<(Seq, String)>,
}

impl HookRunRecord {
    pub(super) fn new(record: &EventRecord, outcome: HookRunOutcome) -> Self {
        let envelope = &record.envelope;
        Self {
            at: record.seq,
            hook: None,
            action: None,
            effect: None,
            event: record.cause_position(),
            node: envelope.node,
            session: envelope.session.clone(),
            iteration: envelope.iteration,
            attempt: 0,
            started: None,
            ended: None,
            outcome,
            unstarted: false,
            message: None,
            took: None,
            record: None,
            actions: Vec::new(),
            feedback: None,
        }
    }

    pub(super) fn from_finished_event(record: &EventRecord, finished: &payload::HookFinished) -> Self {
        Self {
            hook: Some(finished.hook.clone()),
            effect: Some(finished.effect),
            event: Some(finished.effect.seq),
            ended: Some(record.envelope.timestamp),
            unstarted: finished.unstarted,
            message: finished.message.clone(),
            took: finished.duration_ms,
            record: finished.record.clone(),
            actions: finished.actions.clone(),
            feedback: finished.feedback.clone().map(|text| (record.seq, text)),
            ..Self::new(record, HookRunOutcome::Ended(finished.outcome))
        }
    }

    pub(super) fn from_started_event(
        record: &EventRecord,
        started: &payload::HookStarted,
        outcome: HookRunOutcome,
    ) -> Self {
        Self {
            hook: Some(started.hook.clone()),
            effect: Some(started.effect),
            event: Some(started.effect.seq),
            attempt: started.attempt,
            started: Some(record.envelope.timestamp),
            ..Self::new(record, outcome)
        }
    }

    /// Returns whether the hook was started. A hook that was dropped before its start was not, and an error is no run.
    pub fn has_run(&self) -> bool {
        self.attempt > 0
    }

    pub fn start_or_end_time(&self) -> Option<Timestamp> {
        self.started.or(self.ended)
    }

    /// Returns the name to show.
    pub fn title(&self) -> String {
        match (&self.hook, &self.action) {
            (Some(hook), _) => hook.clone(),
            (None, Some(action)) => format!("action {action}"),
            (None, None) => String::new(),
        }
    }

    /// Returns the file with all of its output, relative to the project, and whether the file still exists. Paths in the log that
    /// leave the directory of records are not checked.
    pub fn find_output_file(&self, records: &Path) -> Option<(String, bool)> {
        let record = Path::new(self.record.as_deref()?);
        let within = record.components().all(|part| matches!(part, Component::Normal(_)));
        let there = within && records.join(record).symlink_metadata().is_ok_and(|found| found.is_file());
        let shown = Path::new(PROJECT_DIRECTORY).join("runs").join(record);
        Some((shown.to_string_lossy().into_owned(), there))
    }

    /// Returns the run as JSON.
    pub fn to_json(&self, cause: Option<&RunCause>, records: &Path) -> Value {
        let call = cause.and_then(|cause| cause.call.as_ref());
        json!({
            "hook": self.hook,
            "action": self.action,
            "point": cause.and_then(|cause| cause.find_hook_point(self)),
            "agent": call.map(|call| &call.agent),
            "conversation": call.map(|call| &call.conversation),
            "tool": call.and_then(|call| call.tool.as_ref()),
            "event": self.event.map(|seq| json!({"seq": seq, "type": cause.map(|cause| &cause.name)})),
            "nodeId": self.node,
            "session": self.session,
            "iteration": self.iteration,
            "attempt": self.attempt,
            "startedAt": self.started,
            "finishedAt": self.ended,
            "durationMs": self.took,
            "outcome": self.outcome.name(),
            "message": self.message,
            "actions": self.actions,
            "feedback": self.feedback.as_ref().map(|(seq, text)| json!({"seq": seq, "text": text})),
            "output": self.find_output_file(records).map(|(file, there)| json!({"file": file, "exists": there})),
        })
    }
}

/// The facts about an event that hooks ran for.
#[derive(Debug, Clone)]
pub struct RunCause {
    kind: EventType,
    /// The type of the event, as people see it.
    pub name: String,
    /// The call, if an agent's own hook system made it.
    pub call: Option<payload::BridgeCalled>,
    owes: Option<HookBatch>,
}

impl RunCause {
    pub fn from_event_record(record: &EventRecord) -> Self {
        let call = match &record.envelope.event {
            Event::BridgeCalled(called) => Some(called.clone()),
            _ => None,
        };
        let name = record.envelope.event.shown_type_name().to_owned();
        Self { kind: record.kind(), name, call, owes: record.envelope.metadata.owes.clone() }
    }

    /// Returns the effect of the run's hook.
    pub fn find_hook_effect(&self, run: &HookRunRecord) -> Option<&HookEffect> {
        // A turn is itself an effect of the event that starts it, and the first one.
        let first = u32::from(self.kind == EventType::TurnStarted);
        let place = usize::try_from(run.effect?.index.checked_sub(first)?).ok()?;
        self.owes.as_ref()?.hooks.get(place)
    }

    /// Returns the point at which the run's hook ran.
    pub fn find_hook_point(&self, run: &HookRunRecord) -> Option<String> {
        match (&run.hook, run.effect) {
            (_, Some(_)) => self.find_hook_effect(run).map(|owed| owed.point.to_string()),
            // Hooks inside a commit run at events.
            (Some(_), None) => Some(self.name.clone()),
            (None, None) => None,
        }
    }
}

/// The events that hooks ran for, each read once.
pub struct RunCauses<'s> {
    store: &'s SqliteStore,
    known: BTreeMap<Seq, Option<RunCause>>,
}

impl<'s> RunCauses<'s> {
    pub fn new(store: &'s SqliteStore) -> Self {
        Self { store, known: BTreeMap::new() }
    }

    pub fn find_cause(&mut self, run: &HookRunRecord) -> Result<Option<&RunCause>, Failure> {
        let Some(seq) = run.event else { return Ok(None) };
        if !self.known.contains_key(&seq) {
            let event = self.store.read_event(seq).map_err(hints::store_failure)?;
            self.known.insert(seq, event.as_ref().map(RunCause::from_event_record));
        }
        Ok(self.known.get(&seq).and_then(Option::as_ref))
    }
    /// Returns whether a call from this conversation caused the run.
    pub fn is_caused_by_caller(&mut self, run: &HookRunRecord, caller: &BridgeCaller) -> Result<bool, Failure> {
        let call = self.find_cause(run)?.and_then(|cause| cause.call.as_ref());
        Ok(call.is_some_and(|call| conversations::is_call_of_conversation(caller, call)))
    }
}
