//! Queries to the log and to the rows.

use std::collections::BTreeSet;
use std::ops::Range;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};
use windlass_engine::{
    ApplyError, BridgeConversation, CommitId, Digest, EdgeDirection, EventRecord, PendingEffect, Seq, Session,
    SessionName, StateView, Task, TaskEdge, TaskId, TaskPriority, TaskState, TypeName, decode_event,
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

/// Returns the link of the chain at an event.
pub(super) fn read_chain_at(store: &SqliteStore, at: Seq) -> Result<Option<Digest>, StoreError> {
    store.run_sql(|connection| {
        let mut query = connection.prepare_cached("SELECT chain FROM events WHERE seq = ?")?;
        query.query_row([to_signed(at.0)], |row| Ok(Digest(row.get(0)?))).optional()
    })
}

/// Reads the stored bytes of the events after a position: at least one if there are any, and about `most_bytes`.
pub(super) fn read_bodies(store: &SqliteStore, after: Seq, most_bytes: usize) -> Result<Vec<Vec<u8>>, StoreError> {
    let events = read_bodies_with_nonces(store, after, most_bytes)?;
    Ok(events.into_iter().map(|(body, _)| body).collect())
}

/// Does the same, with the nonce of each event's commit.
pub(super) fn read_bodies_with_nonces(
    store: &SqliteStore,
    after: Seq,
    most_bytes: usize,
) -> Result<Vec<(Vec<u8>, u128)>, StoreError> {
    store.run_sql(|connection| {
        let mut query = connection.prepare_cached("SELECT body, nonce FROM events WHERE seq > ? ORDER BY seq")?;
        let mut rows = query.query([to_signed(after.0)])?;
        let (mut bodies, mut size) = (Vec::new(), 0);
        while size < most_bytes
            && let Some(row) = rows.next()?
        {
            let (body, nonce): (Vec<u8>, [u8; 16]) = (row.get(0)?, row.get(1)?);
            size += body.len();
            bodies.push((body, u128::from_le_bytes(nonce)));
        }
        Ok(bodies)
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
    match filter.task {
        Some(task) => {
            let mut found = read_task_history(store, filter, task, after..MAX_POSITION, usize::MAX)?;
            found.reverse();
            found.truncate(most);
            Ok(found)
        }
        None if filter.session.is_none() && filter.types.is_empty() => read_verified_range(store, after, most),
        None => scan_log(store, filter, after..MAX_POSITION, ScanOrder::OldestFirst, most),
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
    let range = Seq::START..before.unwrap_or(MAX_POSITION);
    match filter.task {
        Some(task) => read_task_history(store, filter, task, range, most),
        None => scan_log(store, filter, range, ScanOrder::NewestFirst, most),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanOrder {
    OldestFirst,
    NewestFirst,
}

/// Scans the log between two positions, both excluded. The columns before the body decide first: SQLite reads no further in an
/// event that they exclude.
fn scan_log(
    store: &SqliteStore,
    filter: &EventFilter,
    between: Range<Seq>,
    order: ScanOrder,
    most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    let between = match &filter.session {
        Some(session) => narrow_to_session(store, session, between)?,
        None => between,
    };
    let names: Vec<&str> = filter.types.iter().map(|kind| kind.name()).collect();
    let kinds = match names.len() {
        0 => String::new(),
        several => format!("AND type IN ({})", vec!["?"; several].join(", ")),
    };
    let named = if filter.session.is_some() { "AND instr(body, ?)" } else { "" };
    let order = if order == ScanOrder::NewestFirst { "DESC" } else { "ASC" };
    let sql =
        format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? AND seq < ? {kinds} {named} ORDER BY seq {order}");
    let needle = filter.session.as_ref().map(|session| Value::Blob(format!(r#""session":"{session}""#).into_bytes()));
    let bounds = [between.start, between.end].map(|bound| Value::Integer(to_signed(bound.0)));
    let values = bounds.into_iter().chain(names.into_iter().map(|name| Value::Text(name.to_owned()))).chain(needle);
    let (mut found, mut failed) = (Vec::new(), None);
    store.run_sql(|connection| {
        let mut query = connection.prepare(&sql)?;
        let mut rows = query.query(params_from_iter(values))?;
        while found.len() < most
            && failed.is_none()
            && let Some(row) = rows.next()?
        {
            match read_stored_event(row)?.verify_event(store) {
                Ok(record) if filter.matches_record(&record) => found.push(record),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        Ok(())
    })?;
    failed.map_or(Ok(found), Err)
}

/// Narrows a range of positions, both excluded, to the events that may name a session.
fn narrow_to_session(
    store: &SqliteStore,
    session: &SessionName,
    between: Range<Seq>,
) -> Result<Range<Seq>, StoreError> {
    let snapshot = store.begin_snapshot()?;
    let row = snapshot.find_session(session).map_err(|error| StoreError::from_view_error(store.path(), error))?;
    let Some(session) = row else { return Ok(between) };
    let start = between.start.max(Seq(session.started.0.saturating_sub(1)));
    let end = if session.is_over() { between.end.min(session.version.next()) } else { between.end };
    Ok(start..end)
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

/// Returns the event at a position.
pub(super) fn read_event_at(store: &SqliteStore, at: Seq) -> Result<Option<EventRecord>, StoreError> {
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq = ?");
    let found: Option<StoredEvent> = store.run_sql(|connection| {
        connection.prepare_cached(&sql)?.query_row([to_signed(at.0)], read_stored_event).optional()
    })?;
    found.map(|event| event.verify_event(store)).transpose()
}

/// Reads the events of one task between two positions, both excluded, newest first. It follows the positions of the previous
/// events, and reads the bodies of the wanted types only.
fn read_task_history(
    store: &SqliteStore,
    filter: &EventFilter,
    task: TaskId,
    between: Range<Seq>,
    most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    let snapshot = store.begin_snapshot()?;
    let row = snapshot.find_task(task).map_err(|error| StoreError::from_view_error(store.path(), error))?;
    let is_wanted =
        |kind: &[u8]| filter.types.is_empty() || filter.types.iter().any(|wanted| wanted.name().as_bytes() == kind);
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE seq = ?");
    let (mut next, mut found) = (row.map_or(Seq::START, |task| task.last_event), Vec::new());
    while next > between.start && found.len() < most {
        let step = store.run_sql(|connection| {
            let read = |row: &Row<'_>| {
                let is_read = next < between.end && is_wanted(row.get_ref(1)?.as_bytes().unwrap_or_default());
                let event = is_read.then(|| read_stored_event(row)).transpose()?;
                Ok((read_seq(row, 2).unwrap_or_default(), event))
            };
            connection.prepare_cached(&sql)?.query_row([to_signed(next.0)], read).optional()
        })?;
        let (previous, event) = step.ok_or_else(|| StoreError::Damaged { path: store.path().to_owned(), seq: next })?;
        if let Some(event) = event {
            let record = event.verify_event(store)?;
            if previous >= next || record.envelope.node.task_id() != Some(task) {
                let why = format!("it is not where the history of {task} has it");
                return Err(misfiled_event_error(store, &record, why));
            }
            if filter.matches_record(&record) {
                found.push(record);
            }
        } else if previous >= next {
            return Err(StoreError::Damaged { path: store.path().to_owned(), seq: next });
        }
        next = previous;
    }
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

/// Selects the tasks after the first parameter, in any of so many states, oldest first. The states are merged one by one in the order
/// of an index: one search for all of them would read and sort every task first.
pub(super) fn select_tasks_sql(states: usize) -> String {
    if states == 0 {
        return "SELECT row, id FROM tasks WHERE id > ?1 ORDER BY id".to_owned();
    }
    let in_state = |number| format!("SELECT row, id FROM tasks WHERE id > ?1 AND state = ?{}", number + 2);
    let all: Vec<String> = (0..states).map(in_state).collect();
    format!("{} ORDER BY id", all.join(" UNION ALL "))
}

impl StoreSnapshot<'_> {
    /// Passes the tasks that match a filter to `take`, oldest first, until it returns `false`.
    pub fn visit_tasks(&self, filter: &TaskFilter, mut take: impl FnMut(Task) -> bool) -> Result<(), StoreError> {
        let states: BTreeSet<&str> = filter.states.iter().map(|state| state.name()).collect();
        self.store.run_sql(|connection| {
            let mut query = connection.prepare(&select_tasks_sql(states.len()))?;
            let after = Value::Integer(filter.after.map_or(0, |id| to_signed(id.0)));
            let states = states.iter().map(|state| Value::Text((*state).to_owned()));
            let mut rows = query.query(params_from_iter([after].into_iter().chain(states)))?;
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

    /// Returns the sessions that were started last, newest first.
    pub fn newest_sessions(&self, most: usize) -> Result<Vec<Session>, StoreError> {
        self.store.run_sql(|connection| {
            let mut query = connection.prepare_cached("SELECT row FROM sessions ORDER BY started DESC LIMIT ?")?;
            query.query_map([to_signed(most as u64)], parse_row)?.collect()
        })
    }

    /// Returns the sessions that are not over, newest first.
    pub fn open_sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.store.run_sql(|connection| {
            let mut query =
                connection.prepare_cached("SELECT row FROM sessions WHERE is_over = 0 ORDER BY started DESC")?;
            query.query_map([], parse_row)?.collect()
        })
    }

    /// Returns the tasks whose change is not merged, the change that was opened last first.
    pub fn tasks_with_open_change(&self) -> Result<Vec<Task>, StoreError> {
        self.store.run_sql(|connection| {
            let sql = "SELECT row FROM tasks WHERE open_change IS NOT NULL ORDER BY open_change DESC";
            connection.prepare_cached(sql)?.query_map([], parse_row)?.collect()
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
