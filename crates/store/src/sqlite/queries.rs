//! Queries to the log and to the rows.

use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};
use windlass_engine::{
    ApplyError, BridgeConversation, CommitId, Digest, EdgeDirection, EventRecord, EventType, PendingEffect, Seq,
    Session, StateView, Task, TaskEdge, TaskId, TaskPriority, TaskState, TypeName, decode_event,
};

use super::SqliteStore;
use super::rows::{StoreSnapshot, parse_row, read_edge, read_seq, to_signed};
use crate::{EventFilter, StoreError};

/// An event as the table holds it.
pub(super) struct StoredEvent {
    pub seq: Seq,
    kind: String,
    pub previous: Seq,
    body: Vec<u8>,
    digest: Digest,
    pub chain: Digest,
}

pub(super) const EVENT_COLUMNS: &str = "seq, type, previous, body, digest, chain";

/// Reads an event. A column of another type, which is damage, reads as empty, and no digest matches that.
pub(super) fn read_stored_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let digest = |column| Digest(row.get(column).unwrap_or_default());
    Ok(StoredEvent {
        seq: read_seq(row, 0)?,
        kind: row.get(1).unwrap_or_default(),
        previous: read_seq(row, 2).unwrap_or_default(),
        body: row.get(3).unwrap_or_default(),
        digest: digest(4),
        chain: digest(5),
    })
}

impl StoredEvent {
    /// Returns the event if it matches its digest and its type column.
    pub fn verify_event(&self, store: &SqliteStore) -> Result<EventRecord, StoreError> {
        let record = self.decode_record(store)?;
        if record.kind().name() != self.kind {
            return Err(misfiled_event_error(store, &record, format!("it is filed as `{}`", self.kind)));
        }
        Ok(record)
    }

    /// Returns the event if it matches its digest.
    pub fn decode_record(&self, store: &SqliteStore) -> Result<EventRecord, StoreError> {
        let path = || store.path().to_owned();
        if Digest::of_bytes(&self.body) != self.digest {
            return Err(StoreError::Damaged { path: path(), seq: self.seq });
        }
        let envelope = decode_event(&self.body).map_err(|source| StoreError::Undecodable {
            path: path(),
            seq: self.seq,
            source,
        })?;
        Ok(EventRecord { seq: self.seq, envelope })
    }

    pub fn verify_chain(&self, store: &SqliteStore, before: Digest) -> Result<(), StoreError> {
        if before.chain_with(self.digest) == self.chain {
            return Ok(());
        }
        Err(StoreError::BrokenChain { path: store.path().to_owned(), seq: self.seq })
    }
}

/// Returns the error for a valid event with a wrong column beside it.
pub(super) fn misfiled_event_error(store: &SqliteStore, record: &EventRecord, why: String) -> StoreError {
    let source = ApplyError::InvalidEvent { seq: record.seq, event: record.kind(), why };
    StoreError::InvalidEvent { path: store.path().to_owned(), source }
}

/// Returns the last position and its link of the chain.
pub(super) fn read_last_link(store: &SqliteStore) -> Result<Option<(Seq, Digest)>, StoreError> {
    store.run_sql(|connection| {
        let mut query = connection.prepare_cached("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1")?;
        query.query_row([], |row| Ok((read_seq(row, 0)?, Digest(row.get(1)?)))).optional()
    })
}

pub(super) fn read_head(store: &SqliteStore) -> Result<Seq, StoreError> {
    store.run_sql(|connection| {
        let mut query = connection.prepare_cached("SELECT max(seq) FROM events")?;
        query.query_row([], |row| Ok(Seq(row.get::<_, Option<i64>>(0)?.unwrap_or(0).unsigned_abs())))
    })
}

/// Returns the positions of a commit, if it was appended before. They can only follow the position in its own id.
pub(super) fn find_commit_positions(store: &SqliteStore, id: CommitId) -> Result<Vec<Seq>, StoreError> {
    store.run_sql(|connection| {
        let mut query = connection.prepare_cached("SELECT seq FROM events WHERE seq > ? AND nonce = ? ORDER BY seq")?;
        query.query_map(params![to_signed(id.after.0), id.nonce.to_le_bytes()], |row| read_seq(row, 0))?.collect()
    })
}

pub(super) fn read_filtered_events(
    store: &SqliteStore,
    filter: &EventFilter,
    after: Seq,
    most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    match (filter.task, &filter.session) {
        (Some(task), _) => read_task_history(store, filter, task, after, most),
        (None, Some(_)) => {
            let mut found = scan_log_back(store, filter, after, MAX_POSITION, usize::MAX)?;
            found.reverse();
            found.truncate(most);
            Ok(found)
        }
        (None, None) if filter.types.is_empty() => read_verified_range(store, after, most),
        (None, None) => read_events_of_types(store, filter, after, most),
    }
}

/// A position after every possible event.
const MAX_POSITION: Seq = Seq(i64::MAX.unsigned_abs());

/// Reads the events before a position that match the filter, newest first.
pub(super) fn read_events_back(
    store: &SqliteStore,
    filter: &EventFilter,
    before: Option<Seq>,
    most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    let before = before.unwrap_or(MAX_POSITION);
    let Some(task) = filter.task else { return scan_log_back(store, filter, Seq::START, before, most) };
    let mut found = read_task_history(store, filter, task, Seq::START, usize::MAX)?;
    found.retain(|record| record.seq < before);
    found.reverse();
    found.truncate(most);
    Ok(found)
}

/// Scans the log back between two positions. No event of a session is older than its start. A search for a session decodes no event
/// whose body lacks its name.
fn scan_log_back(
    store: &SqliteStore,
    filter: &EventFilter,
    after: Seq,
    before: Seq,
    most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    const START: &str = EventType::SessionStarted.name();
    let mut names: Vec<&str> = filter.types.iter().map(|kind| kind.name()).collect();
    if filter.session.is_some() && !names.is_empty() {
        names.push(START);
    }
    let kinds = match names.len() {
        0 => String::new(),
        several => format!("AND type IN ({})", vec!["?"; several].join(", ")),
    };
    let named = if filter.session.is_some() { "AND instr(body, ?)" } else { "" };
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? AND seq < ? {named} {kinds} ORDER BY seq DESC");
    let needle = filter.session.as_ref().map(|session| Value::Blob(format!(r#""session":"{session}""#).into_bytes()));
    let values = [Value::Integer(to_signed(after.0)), Value::Integer(to_signed(before.0))].into_iter().chain(needle);
    let values = values.chain(names.into_iter().map(|name| Value::Text(name.to_owned())));
    let (mut found, mut failed) = (Vec::new(), None);
    store.run_sql(|connection| {
        let mut query = connection.prepare(&sql)?;
        let mut rows = query.query(params_from_iter(values))?;
        while found.len() < most
            && let Some(row) = rows.next()?
        {
            let event = read_stored_event(row)?;
            match event.verify_event(store) {
                Ok(record) if filter.matches_record(&record) => found.push(record),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
            if failed.is_some() || (filter.session.is_some() && event.kind == START) {
                break;
            }
        }
        Ok(())
    })?;
    failed.map_or(Ok(found), Err)
}

/// Reads a range of the log, and verifies it link by link.
fn read_verified_range(store: &SqliteStore, after: Seq, most: usize) -> Result<Vec<EventRecord>, StoreError> {
    let chain = |connection: &rusqlite::Connection| {
        let mut query =
            connection.prepare_cached("SELECT chain FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1")?;
        query.query_row([to_signed(after.0)], |row| row.get(0)).optional()
    };
    let mut before = store.run_sql(chain)?.map_or(Digest::ZERO, Digest);
    // Limited here: SQLite plans a query anew for every value of a limit.
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? ORDER BY seq");
    let found: Vec<StoredEvent> = store.run_sql(|connection| {
        let mut query = connection.prepare_cached(&sql)?;
        query.query_map([to_signed(after.0)], read_stored_event)?.take(most).collect()
    })?;
    found
        .into_iter()
        .map(|event| {
            let record = event.verify_event(store)?;
            event.verify_chain(store, before)?;
            before = event.chain;
            Ok(record)
        })
        .collect()
}

fn read_events_of_types(
    store: &SqliteStore,
    filter: &EventFilter,
    after: Seq,
    most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    let marks = vec!["?"; filter.types.len()].join(", ");
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE type IN ({marks}) AND seq > {} ORDER BY seq LIMIT {}",
        to_signed(after.0),
        to_signed(most as u64)
    );
    let found: Vec<StoredEvent> = store.run_sql(|connection| {
        let names = filter.types.iter().map(|kind| kind.name());
        connection.prepare(&sql)?.query_map(params_from_iter(names), read_stored_event)?.collect()
    })?;
    found.iter().map(|event| event.verify_event(store)).collect()
}

/// Returns the event at a position.
pub(super) fn read_event_at(store: &SqliteStore, at: Seq) -> Result<Option<EventRecord>, StoreError> {
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq = ?");
    let found: Option<StoredEvent> = store.run_sql(|connection| {
        connection.prepare_cached(&sql)?.query_row([to_signed(at.0)], read_stored_event).optional()
    })?;
    found.map(|event| event.verify_event(store)).transpose()
}

/// Reads the events of one task, from the youngest back.
fn read_task_history(
    store: &SqliteStore,
    filter: &EventFilter,
    task: TaskId,
    after: Seq,
    most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    let snapshot = store.begin_snapshot()?;
    let row = snapshot.find_task(task).map_err(|error| StoreError::from_view_error(store.path(), error))?;
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq = ?");
    let mut next = row.map_or(Seq::START, |task| task.last_event);
    let mut found = Vec::new();
    while next > after {
        let event: Option<StoredEvent> = store.run_sql(|connection| {
            connection.prepare_cached(&sql)?.query_row([to_signed(next.0)], read_stored_event).optional()
        })?;
        let event = event.ok_or_else(|| StoreError::Damaged { path: store.path().to_owned(), seq: next })?;
        let record = event.verify_event(store)?;
        if event.previous >= next || record.envelope.node.task_id() != Some(task) {
            return Err(misfiled_event_error(store, &record, format!("it is not where the history of {task} has it")));
        }
        if filter.matches_record(&record) {
            found.push(record);
        }
        next = event.previous;
    }
    found.reverse();
    found.truncate(most);
    Ok(found)
}

/// Selects tasks for a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Any of these states; all if empty.
    pub states: Vec<TaskState>,
    /// All of these labels.
    pub labels: Vec<String>,
    pub kind: Option<String>,
    /// Only tasks that are younger than this one.
    pub after: Option<TaskId>,
}

impl TaskFilter {
    fn matches_task(&self, task: &Task) -> bool {
        self.labels.iter().all(|label| task.has_label(label))
            && self.kind.as_deref().is_none_or(|kind| task.kind.as_ref().is_some_and(|own| own.as_str() == kind))
    }
}

impl StoreSnapshot<'_> {
    /// Passes the tasks that match a filter to `take`, oldest first, until it returns `false`.
    pub fn visit_tasks(&self, filter: &TaskFilter, mut take: impl FnMut(Task) -> bool) -> Result<(), StoreError> {
        let marks = vec!["?"; filter.states.len()].join(", ");
        let mut wanted = if filter.states.is_empty() { String::new() } else { format!("WHERE state IN ({marks})") };
        if filter.after.is_some() {
            wanted.push_str(if filter.states.is_empty() { "WHERE id > ?" } else { " AND id > ?" });
        }
        self.store.run_sql(|connection| {
            let mut query = connection.prepare(&format!("SELECT row FROM tasks {wanted} ORDER BY id"))?;
            let after = filter.after.map(|id| Value::Integer(to_signed(id.0)));
            let states = filter.states.iter().map(|state| Value::Text(state.name().to_owned()));
            let mut rows = query.query(params_from_iter(states.chain(after)))?;
            while let Some(row) = rows.next()? {
                let task: Task = parse_row(row)?;
                if filter.matches_task(&task) && !take(task) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Returns the tasks that may be claimed, in the order of claims.
    pub fn ready_tasks(&self, most: usize) -> Result<Vec<Task>, StoreError> {
        self.ready_tasks_except(&BTreeSet::new(), most)
    }

    /// Returns the tasks that may be claimed and have none of these types, in the order of claims.
    pub fn ready_tasks_except(&self, closed: &BTreeSet<TypeName>, most: usize) -> Result<Vec<Task>, StoreError> {
        let fail = |error| StoreError::from_view_error(self.store.path(), error);
        let mut found = Vec::new();
        let mut after: Option<(TaskPriority, TaskId)> = None;
        while found.len() < most {
            let Some(next) = self.next_claimable_except(closed, after).map_err(fail)? else { break };
            found.extend(self.find_task(next.1).map_err(fail)?);
            after = Some(next);
        }
        Ok(found)
    }

    /// Returns the number of tasks in each state that has any.
    pub fn count_tasks_by_state(&self) -> Result<Vec<(TaskState, u64)>, StoreError> {
        let counts: Vec<(String, i64)> = self.store.run_sql(|connection| {
            let mut query = connection.prepare("SELECT state, count(*) FROM tasks GROUP BY state")?;
            query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })?;
        let count = |state: TaskState| counts.iter().find(|(name, _)| name == state.name());
        Ok(TaskState::ALL.into_iter().filter_map(|state| Some((state, count(state)?.1.unsigned_abs()))).collect())
    }

    pub fn all_edges(&self) -> Result<Vec<TaskEdge>, StoreError> {
        self.store.run_sql(|connection| {
            connection
                .prepare("SELECT id, from_id, to_id, kind FROM edges ORDER BY id")?
                .query_map([], read_edge)?
                .collect()
        })
    }

    pub fn all_sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.store.run_sql(|connection| {
            connection.prepare("SELECT row FROM sessions ORDER BY name")?.query_map([], parse_row)?.collect()
        })
    }

    pub fn pending_effects(&self) -> Result<Vec<PendingEffect>, StoreError> {
        self.store.run_sql(|connection| {
            connection.prepare("SELECT row FROM debts ORDER BY seq, place")?.query_map([], parse_row)?.collect()
        })
    }

    pub fn all_conversations(&self) -> Result<Vec<BridgeConversation>, StoreError> {
        self.store.run_sql(|connection| {
            let sql = "SELECT row FROM conversations ORDER BY agent, conversation";
            connection.prepare(sql)?.query_map([], parse_row)?.collect()
        })
    }

    pub fn edges_of_task(&self, id: TaskId) -> Result<Vec<TaskEdge>, StoreError> {
        let fail = |error| StoreError::from_view_error(self.store.path(), error);
        let mut edges = self.find_edges(id, EdgeDirection::From).map_err(fail)?;
        edges.extend(self.find_edges(id, EdgeDirection::To).map_err(fail)?);
        Ok(edges)
    }
}
