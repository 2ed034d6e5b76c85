//! Sessions as rows.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{EventRecord, EventType, Seq, Session, StateView, Timestamp};
use windlass_store::{EventFilter, StoreSnapshot};

use super::usage::UsageTotals;
use crate::context::OpenedProject;
use crate::event_text::describe_session_state;
use crate::session_view::SessionView;
use crate::tone::TextTone;
use crate::{Failure, hints};

/// The number of session starts read at a time.
const STARTS_PER_PAGE: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub name: String,
    pub task: Option<String>,
    pub goal: String,
    pub agent: String,
    pub state: String,
    pub tone: TextTone,
    /// Whether a living process runs it.
    pub is_running: bool,
    pub iteration: u32,
    pub max_iterations: u32,
    pub sent_back: u32,
    pub max_send_backs: u32,
    pub waits_for: Option<String>,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub usage: UsageTotals,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    pub sessions: Vec<SessionSummary>,
    pub has_more: bool,
}

impl SessionSummary {
    /// Summarizes a session. The start time is read from the log unless it is given.
    pub fn from_session(
        opened: &OpenedProject,
        snapshot: &StoreSnapshot<'_>,
        session: Session,
        started_at: Option<Timestamp>,
    ) -> Result<Self, Failure> {
        let view = SessionView::from_session(opened, session);
        let session = &view.session;
        let goal = match (&session.goal, session.task) {
            (Some(goal), _) => goal.clone(),
            (None, Some(id)) => {
                let task = snapshot.find_task(id).map_err(hints::view_failure)?;
                task.map(|task| task.goal).unwrap_or_default()
            }
            (None, None) => "tasks of the graph".to_owned(),
        };
        let started_at = match started_at {
            Some(at) => Some(at),
            None => find_newest_time(opened, session, EventType::SessionStarted)?,
        };
        let ended_at = match session.is_over() {
            true => find_newest_time(opened, session, EventType::SessionEnded)?,
            false => None,
        };
        let (tone, state) = describe_session_state(&view);
        Ok(Self {
            name: session.name.to_string(),
            task: session.task.map(|task| task.to_string()),
            goal,
            agent: session.agent.clone(),
            state,
            tone,
            is_running: view.alive && !session.is_over(),
            iteration: session.iteration,
            max_iterations: session.terms.max_iterations,
            sent_back: session.retries,
            max_send_backs: session.terms.max_hook_retries,
            waits_for: view.describe_awaited(snapshot)?,
            started_at: started_at.map_or(0, Timestamp::millis),
            ended_at: ended_at.map(Timestamp::millis),
            // The row of a session counts no turns.
            usage: UsageTotals::from_usage(session.watch.used, session.iteration.into()),
        })
    }
}

/// Reads the newest events of some types of a session, newest first. The search begins at the last event that changed the session,
/// not at the end of the log.
pub(super) fn read_session_events_back(
    opened: &OpenedProject,
    session: &Session,
    types: &[EventType],
    most: usize,
) -> Result<Vec<EventRecord>, Failure> {
    let filter = EventFilter { types: types.to_vec(), session: Some(session.name.clone()), ..EventFilter::default() };
    let before = Seq(session.version.0 + 1);
    opened.store.read_events_back(&filter, Some(before), most).map_err(hints::store_failure)
}

fn find_newest_time(opened: &OpenedProject, session: &Session, kind: EventType) -> Result<Option<Timestamp>, Failure> {
    let newest = read_session_events_back(opened, session, &[kind], 1)?;
    Ok(newest.first().map(|record| record.envelope.timestamp))
}

/// Lists the sessions that were started last, newest first.
pub fn list_session_summaries(opened: &OpenedProject, most: usize) -> Result<SessionPage, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let (newest, has_more) = find_newest_sessions(opened, &snapshot, most)?;
    let summary = |(session, started_at)| SessionSummary::from_session(opened, &snapshot, session, Some(started_at));
    Ok(SessionPage { sessions: newest.into_iter().map(summary).collect::<Result<_, _>>()?, has_more })
}

/// Finds the sessions that were started last, newest first, with the times of their starts, and whether there are more.
pub(super) fn find_newest_sessions(
    opened: &OpenedProject,
    snapshot: &StoreSnapshot<'_>,
    most: usize,
) -> Result<(Vec<(Session, Timestamp)>, bool), Failure> {
    let filter = EventFilter { types: vec![EventType::SessionStarted], ..EventFilter::default() };
    let (mut sessions, mut before) = (Vec::new(), None);
    loop {
        let page = opened.store.read_events_back(&filter, before, STARTS_PER_PAGE).map_err(hints::store_failure)?;
        for record in &page {
            if sessions.len() == most {
                return Ok((sessions, true));
            }
            let Some(name) = &record.envelope.session else { continue };
            if let Some(session) = snapshot.find_session(name).map_err(hints::view_failure)? {
                sessions.push((session, record.envelope.timestamp));
            }
        }
        match page.last() {
            Some(oldest) if page.len() == STARTS_PER_PAGE => before = Some(oldest.seq),
            _ => return Ok((sessions, false)),
        }
    }
}
