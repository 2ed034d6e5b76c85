//! Server-sent events: the log as it grows, and the output of a turn in progress.
//!
//! Invariants:
//! - The id of an event is its position in the log, so a page that was away gets all it missed.
//! - A queue has a bound. A client that takes nothing for too long is dropped.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc::{self, Receiver, Sender};
use windlass_app::live_output::LiveOutputReader;
use windlass_app::views::LogEntry;
use windlass_engine::{EventRecord, Seq, SessionName};
use windlass_hooks::SecretMask;
use windlass_store::{EventFilter, Store};

use crate::error::RequestError;
use crate::read::{MaybeViewer, mask_strings, require_viewer};
use crate::state::{ServerState, SharedState};

/// The events that wait for a client, and how long a full queue is waited for.
const MAX_QUEUED_EVENTS: usize = 64;
const SLOW_CLIENT_TIMEOUT: Duration = Duration::from_secs(20);
/// The most events of the log that are read at a time, and that a page gets at its start.
const EVENTS_PER_READ: usize = 500;
const MAX_BACKLOG_EVENTS: u64 = 5000;
const BATCH_INTERVAL: Duration = Duration::from_millis(20);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The most lines of one message.
const MAX_LINES_PER_MESSAGE: usize = 500;

/// The message after which a stream of events is up to date.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct StreamReady {
    /// The position of the last event.
    pub head: u64,
}

/// The message that older events are left out, because too many happened meanwhile.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct StreamGap {
    /// The position after which the events follow.
    pub from: u64,
}

/// The message that a turn began; its lines follow.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct TurnStart {
    pub seq: u64,
}

/// Lines of the output of a turn in progress.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct OutputLines<'a> {
    pub lines: &'a [String],
}

/// A queue of events as a stream.
pub struct EventQueue(Receiver<Event>);

impl Stream for EventQueue {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}

pub type EventStream = Sse<axum::response::sse::KeepAliveStream<EventQueue>>;

pub fn open_stream(receiver: Receiver<Event>) -> EventStream {
    Sse::new(EventQueue(receiver)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL))
}

/// Sends an event. Returns false if the client is gone or too slow.
async fn send_event(queue: &Sender<Event>, event: Event) -> bool {
    matches!(tokio::time::timeout(SLOW_CLIENT_TIMEOUT, queue.send(event)).await, Ok(Ok(())))
}

/// Sends a message under a name. Returns false if the client is gone or too slow.
pub async fn send_message(queue: &Sender<Event>, name: &str, message: &impl Serialize) -> bool {
    let data = serde_json::to_string(message).unwrap_or_default();
    send_event(queue, Event::default().event(name).data(data)).await
}

/// Streams the events of the log after a position.
pub async fn stream_events(
    State(state): SharedState,
    viewer: MaybeViewer,
    headers: HeaderMap,
    Query(given): Query<HashMap<String, String>>,
) -> Result<EventStream, RequestError> {
    let secret = require_viewer(viewer)?.secret;
    let last =
        headers.get("last-event-id").and_then(|value| value.to_str().ok()).or(given.get("after").map(String::as_str));
    let after = last.and_then(|last| last.parse().ok());
    let (queue, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
    tokio::spawn(async move {
        // An error ends the stream; the page opens it again.
        let _ = send_log(&state, secret, after, &queue).await;
    });
    Ok(open_stream(receiver))
}

async fn send_log(
    state: &Arc<ServerState>,
    secret: String,
    after: Option<u64>,
    queue: &Sender<Event>,
) -> Result<(), RequestError> {
    let mut head = state.watch_head();
    let newest = head.borrow_and_update().0;
    // A page that was away for very long loads its views again anyway.
    let oldest = newest.saturating_sub(MAX_BACKLOG_EVENTS);
    let mut position = after.unwrap_or(newest).max(oldest).min(newest);
    if after.is_some_and(|after| after < oldest) && !send_message(queue, "gap", &StreamGap { from: oldest }).await {
        return Ok(());
    }
    let mut is_ready = false;
    loop {
        let (from, shared, secret) = (Seq(position), state.clone(), secret.clone());
        let entries = state
            .pool()
            .run(move |opened| {
                check_login(&shared, &secret)?;
                let filter = EventFilter::default();
                let records = opened
                    .store
                    .read_events(&filter, from, EVENTS_PER_READ)
                    .map_err(windlass_app::hints::store_failure)?;
                let mask = shared.mask();
                let entries = records.iter().map(|record| (record.seq.0, write_entry(record, &mask)));
                Ok(entries.collect::<Vec<_>>())
            })
            .await?;
        let is_full = entries.len() == EVENTS_PER_READ;
        for (seq, entry) in entries {
            position = seq;
            let event = Event::default().event("log").id(position.to_string()).data(entry);
            if !send_event(queue, event).await {
                return Ok(());
            }
        }
        if is_full {
            continue;
        }
        if !is_ready {
            is_ready = true;
            if !send_message(queue, "ready", &StreamReady { head: position }).await {
                return Ok(());
            }
        }
        tokio::select! {
            changed = head.changed() => if changed.is_err() { return Ok(()) },
            () = queue.closed() => return Ok(()),
        }
        // Events that follow each other closely are read together.
        tokio::time::sleep(BATCH_INTERVAL).await;
        if head.borrow_and_update().0 < position {
            // Another store was put in place.
            return Ok(());
        }
    }
}

/// Refuses to go on with the stream of a login that has ended.
fn check_login(state: &ServerState, secret: &str) -> Result<(), RequestError> {
    state.find_viewer(secret)?.map(drop).ok_or_else(RequestError::not_logged_in)
}

/// Writes an event as a message, without secrets.
fn write_entry(record: &EventRecord, mask: &SecretMask) -> String {
    let mut entry = serde_json::to_value(LogEntry::from_record(record)).unwrap_or_default();
    mask_strings(&mut entry, mask);
    entry.to_string()
}

/// Streams the output of a session's turns while they are in progress.
pub async fn stream_output(
    State(state): SharedState,
    viewer: MaybeViewer,
    Path(name): Path<String>,
) -> Result<EventStream, RequestError> {
    let secret = require_viewer(viewer)?.secret;
    let session = state.pool().run(move |opened| Ok(opened.find_referenced_session(&name)?.name)).await?;
    let (queue, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
    tokio::spawn(async move {
        let _ = send_output(&state, session, secret, &queue).await;
    });
    Ok(open_stream(receiver))
}

/// New output of a session.
struct OutputPiece {
    reader: Option<LiveOutputReader>,
    /// The position of the turn, if another one began.
    new_turn: Option<u64>,
    lines: Vec<String>,
    is_over: bool,
}

async fn send_output(
    state: &Arc<ServerState>,
    name: SessionName,
    secret: String,
    queue: &Sender<Event>,
) -> Result<(), RequestError> {
    let mut reader: Option<LiveOutputReader> = None;
    loop {
        let (name, secret, previous) = (name.clone(), secret.clone(), reader.take());
        let shared = state.clone();
        let piece = state
            .pool()
            .run(move |opened| {
                check_login(&shared, &secret)?;
                let session = opened.require_session(&name)?;
                let turn = session.current_turn().map(|turn| turn.effect);
                let (mut reader, mut new_turn, mut lines) = (previous, None, Vec::new());
                if reader.as_ref().map(LiveOutputReader::effect) != turn {
                    if let Some(mut ended) = reader.take() {
                        lines.extend(ended.read_last_lines().unwrap_or_default());
                    }
                    reader = LiveOutputReader::for_current_turn(opened, &session);
                    new_turn = reader.as_ref().map(|reader| reader.effect().seq.0);
                }
                if new_turn.is_none()
                    && let Some(reader) = &mut reader
                {
                    lines.extend(reader.read_new_lines().unwrap_or_default());
                }
                let lines = lines.iter().map(|line| shared.mask().mask_text(line).into_owned()).collect();
                Ok(OutputPiece { reader, new_turn, lines, is_over: session.is_over() })
            })
            .await?;
        reader = piece.reader;
        for lines in piece.lines.chunks(MAX_LINES_PER_MESSAGE) {
            if !send_message(queue, "lines", &OutputLines { lines }).await {
                return Ok(());
            }
        }
        if let Some(seq) = piece.new_turn {
            if !send_message(queue, "turn", &TurnStart { seq }).await {
                return Ok(());
            }
            continue;
        }
        if piece.is_over {
            send_event(queue, Event::default().event("end").data("{}")).await;
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(OUTPUT_POLL_INTERVAL) => {}
            () = queue.closed() => return Ok(()),
        }
    }
}
