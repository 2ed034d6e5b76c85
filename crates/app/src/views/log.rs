//! Events of the log as rows.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{EventRecord, EventType, Seq, SessionName, TaskId};
use windlass_store::EventFilter;

use super::excerpt;
use crate::context::OpenedProject;
use crate::event_text::{event_tone, find_author, summarize_event};
use crate::tone::TextTone;
use crate::{Failure, FailureCode, hints};

/// The most events of a page.
const MAX_PAGE_EVENTS: usize = 1000;
/// The most characters of a summary.
const MAX_SUMMARY_LENGTH: usize = 400;

/// An event as a row of the log.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub seq: u64,
    pub at: i64,
    #[serde(rename = "type")]
    pub kind: String,
    pub task: Option<String>,
    pub session: Option<String>,
    pub iteration: Option<u32>,
    /// The person or the agent who gave the command; empty for the runner of the session.
    pub triggered_by: String,
    /// How many hooks and actions stand between the event and a command.
    pub depth: u32,
    pub tone: TextTone,
    pub summary: String,
}

impl LogEntry {
    pub fn from_record(record: &EventRecord) -> Self {
        let envelope = &record.envelope;
        Self {
            seq: record.seq.0,
            at: envelope.timestamp.millis(),
            kind: envelope.event.shown_type_name().to_string(),
            task: envelope.node.task_id().map(|task| task.to_string()),
            session: envelope.session.as_ref().map(ToString::to_string),
            iteration: envelope.iteration,
            triggered_by: find_author(record).unwrap_or_default().to_owned(),
            depth: envelope.metadata.depth.into(),
            tone: event_tone(&envelope.event),
            summary: excerpt(&summarize_event(record), MAX_SUMMARY_LENGTH),
        }
    }
}

/// Events of the log, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPage {
    pub entries: Vec<LogEntry>,
    /// The position of the last event in the log.
    pub head: u64,
}

/// Which events a page has.
#[derive(Debug, Clone, Default)]
pub struct LogQuery {
    /// Only events before this position.
    pub before: Option<u64>,
    pub limit: usize,
    pub types: Vec<EventType>,
    pub task: Option<TaskId>,
    pub session: Option<SessionName>,
}

/// Reads the event at a position.
pub fn read_log_event(opened: &OpenedProject, seq: u64) -> Result<EventRecord, Failure> {
    let record = opened.store.read_event(Seq(seq)).map_err(hints::store_failure)?;
    record.ok_or_else(|| Failure::new(FailureCode::NotFound, format!("there is no event {seq}")))
}

/// Reads the last events that match a query.
pub fn read_log_page(opened: &OpenedProject, query: LogQuery) -> Result<LogPage, Failure> {
    let filter = EventFilter { types: query.types, task: query.task, session: query.session };
    let most = query.limit.clamp(1, MAX_PAGE_EVENTS);
    let mut records =
        opened.store.read_events_back(&filter, query.before.map(Seq), most).map_err(hints::store_failure)?;
    records.reverse();
    let head = opened.store.head().map_err(hints::store_failure)?.0;
    Ok(LogPage { entries: records.iter().map(LogEntry::from_record).collect(), head })
}
