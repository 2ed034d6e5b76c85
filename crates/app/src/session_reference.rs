//! References to a session on a command line: its name, the start of its name, its task, or nothing for the newest session.

use windlass_engine::{Session, SessionName, StateView, TaskId};
use windlass_store::{EventFilter, SqliteStore};
use windlass_text as text;

use crate::context::OpenedProject;
use crate::{Failure, FailureCode, hints};

/// The number of events that are read at a time.
const EVENTS_PER_PAGE: usize = 64;
/// The number of sessions that an ambiguous reference names.
const MAX_NAMED_SESSIONS: usize = 8;
/// The columns of a reference in an error.
const MAX_REFERENCE_COLUMNS: usize = 60;

impl OpenedProject {
    /// Finds the session that a reference stands for: an exact name, else the last session of a task, else the only session whose
    /// name begins so.
    pub fn find_referenced_session(&self, reference: &str) -> Result<Session, Failure> {
        let snapshot = self.store.begin_snapshot().map_err(hints::store_failure)?;
        if let Ok(name) = reference.parse::<SessionName>()
            && let Some(session) = snapshot.find_session(&name).map_err(hints::view_failure)?
        {
            return Ok(session);
        }
        if let Ok(id) = reference.parse::<TaskId>() {
            return self.find_session_of_task(id);
        }
        let sessions = snapshot.all_sessions().map_err(hints::store_failure)?;
        let is_start = |session: &&Session| !reference.is_empty() && session.name.as_str().starts_with(reference);
        let found: Vec<&Session> = sessions.iter().filter(is_start).collect();
        let shown = text::fit_to_width(reference, MAX_REFERENCE_COLUMNS);
        match found[..] {
            [only] => Ok(only.clone()),
            [] => Err(Failure::new(FailureCode::NotFound, format!("there is no session `{shown}`"))
                .with_hint(hints::suggest_session(reference, &sessions))),
            [..] => {
                let names = found.iter().take(MAX_NAMED_SESSIONS).map(|session| session.name.as_str());
                Err(Failure::new(FailureCode::NotFound, format!("{} sessions begin with `{shown}`", found.len()))
                    .with_cause(names.collect::<Vec<_>>().join(", "))
                    .with_hint("add letters until only one is left"))
            }
        }
    }

    /// Finds the session of a reference, or the newest session if there is none.
    pub fn find_session_or_newest(&self, reference: Option<&str>) -> Result<Session, Failure> {
        match reference {
            Some(reference) => self.find_referenced_session(reference),
            None => self.find_newest_session(),
        }
    }

    /// Finds the session that was started last.
    fn find_newest_session(&self) -> Result<Session, Failure> {
        let snapshot = self.store.begin_snapshot().map_err(hints::store_failure)?;
        let newest = snapshot.newest_sessions(1).map_err(hints::store_failure)?;
        newest.into_iter().next().ok_or_else(|| {
            Failure::new(FailureCode::NotFound, "there are no sessions yet").with_hint("`windlass run GOAL` starts one")
        })
    }

    /// Finds the session that worked on a task last.
    fn find_session_of_task(&self, id: TaskId) -> Result<Session, Failure> {
        let task = self.require_task(id)?;
        let filter = EventFilter { task: Some(id), ..EventFilter::default() };
        let name = match task.lease.and_then(|lease| lease.session) {
            Some(holder) => Some(holder),
            None => find_last_session(&self.store, &filter)?,
        };
        name.map_or_else(
            || {
                Err(Failure::new(FailureCode::NotFound, format!("no session has worked on {id} yet"))
                    .with_hint(format!("`windlass run --task {id}` starts one")))
            },
            |name| self.require_session(&name),
        )
    }
}

/// Returns the session of the last matching event that has one.
fn find_last_session(store: &SqliteStore, filter: &EventFilter) -> Result<Option<SessionName>, Failure> {
    let mut before = None;
    loop {
        let page = store.read_events_back(filter, before, EVENTS_PER_PAGE).map_err(hints::store_failure)?;
        if let Some(name) = page.iter().find_map(|record| record.envelope.session.clone()) {
            return Ok(Some(name));
        }
        match page.last() {
            Some(oldest) => before = Some(oldest.seq),
            None => return Ok(None),
        }
    }
}
