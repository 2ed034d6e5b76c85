//! Sessions as rows.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{EventRecord, EventType, Session, StateView, Timestamp};
use windlass_store::{EventFilter, StoreSnapshot};

use super::usage::UsageTotals;
use crate::context::OpenedProject;
use crate::event_text::describe_session_state;
use crate::session_view::SessionView;
use crate::tone::TextTone;
use crate::{Failure, hints};

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
    /// The command that goes on with it, if no process runs it.
    pub resume_command: Option<String>,
    /// A sentence that leads to this command.
    pub resume_note: Option<String>,
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
        let (tone, state) = describe_session_state(&view);
        let resume_command = view.find_resume_command(opened)?;
        Ok(Self {
            name: session.name.to_string(),
            task: session.task.map(|task| task.to_string()),
            goal,
            agent: session.agent.clone(),
            state,
            tone,
            is_running: view.alive && !session.is_over(),
            waits_for: if resume_command.is_none() { view.describe_awaited(snapshot)? } else { None },
            resume_note: resume_command.as_ref().and_then(|_| view.describe_desertion()).map(str::to_owned),
            resume_command,
            iteration: session.iteration,
            max_iterations: session.terms.max_iterations,
            sent_back: session.retries,
            max_send_backs: session.terms.max_hook_retries,
            started_at: session.started_at.millis(),
            ended_at: session.ended_at.map(Timestamp::millis),
            // The row of a session counts no turns.
            usage: UsageTotals::from_usage(session.watch.used, session.iteration.into()),
        })
    }
}

/// Reads the newest events of some types of a session, newest first.
pub(super) fn read_session_events_back(
    opened: &OpenedProject,
    session: &Session,
    types: &[EventType],
    most: usize,
) -> Result<Vec<EventRecord>, Failure> {
    let filter = EventFilter { types: types.to_vec(), session: Some(session.name.clone()), ..EventFilter::default() };
    opened.store.read_events_back(&filter, None, most).map_err(hints::store_failure)
}

/// Lists the sessions that were started last, newest first.
pub fn list_session_summaries(opened: &OpenedProject, most: usize) -> Result<SessionPage, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let mut newest = snapshot.newest_sessions(most.saturating_add(1)).map_err(hints::store_failure)?;
    let has_more = newest.len() > most;
    newest.truncate(most);
    let summary = |session| SessionSummary::from_session(opened, &snapshot, session);
    Ok(SessionPage { sessions: newest.into_iter().map(summary).collect::<Result<_, _>>()?, has_more })
}
