//! Sessions as rows.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{EventType, Session, StateView};
use windlass_store::{EventFilter, StoreSnapshot};

use super::usage::UsageTotals;
use crate::context::OpenedProject;
use crate::event_text::describe_session_state;
use crate::session_view::SessionView;
use crate::tone::Tone;
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
    pub tone: Tone,
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
    pub fn from_session(
        opened: &OpenedProject,
        snapshot: &StoreSnapshot<'_>,
        session: Session,
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
        let moment = |kind: EventType| -> Result<Option<i64>, Failure> {
            let filter =
                EventFilter { types: vec![kind], session: Some(session.name.clone()), ..EventFilter::default() };
            let found = opened.store.read_events_back(&filter, None, 1).map_err(hints::store_failure)?;
            Ok(found.first().map(|record| record.envelope.timestamp.millis()))
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
            started_at: moment(EventType::SessionStarted)?.unwrap_or_default(),
            ended_at: if session.is_over() { moment(EventType::SessionEnded)? } else { None },
            usage: UsageTotals::from_usage(session.watch.used, session.iteration.into()),
        })
    }
}

/// Lists the sessions that were started last, newest first.
pub fn list_session_summaries(opened: &OpenedProject, most: usize) -> Result<SessionPage, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let filter = EventFilter { types: vec![EventType::SessionStarted], ..EventFilter::default() };
    let (mut sessions, mut before) = (Vec::new(), None);
    loop {
        let page = opened.store.read_events_back(&filter, before, STARTS_PER_PAGE).map_err(hints::store_failure)?;
        let Some(oldest) = page.last() else { return Ok(SessionPage { sessions, has_more: false }) };
        before = Some(oldest.seq);
        for name in page.iter().filter_map(|record| record.envelope.session.as_ref()) {
            if sessions.len() == most {
                return Ok(SessionPage { sessions, has_more: true });
            }
            if let Some(session) = snapshot.find_session(name).map_err(hints::view_failure)? {
                sessions.push(SessionSummary::from_session(opened, &snapshot, session)?);
            }
        }
    }
}
