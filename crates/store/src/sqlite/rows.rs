//! The projections as a view, and changes to them.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_engine::{
    BridgeCaller, BridgeConversation, ConfigDigest, DecisionScope, EdgeDirection, EdgeId, EffectId, PendingEffect,
    RowChange, Seq, Session, SessionName, StateView, Task, TaskEdge, TaskId, TaskPriority, Timestamp, TypeName,
    ViewError, ViewResult,
};

use super::{SqliteStore, queries};
use crate::StoreError;

/// The rows at one moment.
pub struct StoreSnapshot<'s> {
    pub(super) store: &'s SqliteStore,
    head: Seq,
    _reading: Option<ReadTransaction<'s>>,
}

/// A read transaction. It sees one moment until it is dropped.
pub(super) struct ReadTransaction<'s>(&'s SqliteStore);

impl<'s> ReadTransaction<'s> {
    /// Begins at the present moment, or joins an open read transaction.
    pub fn begin(store: &'s SqliteStore) -> Result<Self, StoreError> {
        if store.readers.get() == 0 {
            store.run_sql(|connection| connection.prepare_cached("BEGIN")?.execute([]))?;
        }
        store.readers.set(store.readers.get() + 1);
        Ok(Self(store))
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        self.0.readers.set(self.0.readers.get() - 1);
        if self.0.readers.get() == 0 {
            // Nothing was written, so there is nothing to lose.
            let _ = self.0.connection.prepare_cached("ROLLBACK").and_then(|mut end| end.execute([]));
        }
    }
}

impl<'s> StoreSnapshot<'s> {
    pub(super) fn begin(store: &'s SqliteStore) -> Result<Self, StoreError> {
        let reading = ReadTransaction::begin(store)?;
        Ok(Self { store, head: queries::read_head(store)?, _reading: Some(reading) })
    }

    /// Returns the rows within a write transaction whose last event is `head`.
    pub(super) fn inside_transaction(store: &'s SqliteStore, head: Seq) -> Self {
        Self { store, head, _reading: None }
    }
}

/// Parses a row that is stored as text.
fn parse_row_text<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))
}

pub(super) fn serialize_row(row: &impl Serialize) -> String {
    let mut text = Vec::with_capacity(512);
    serde_json::to_writer(&mut text, row).expect("a row has string keys");
    String::from_utf8(text).expect("JSON is UTF-8")
}

pub(super) fn parse_row<T: DeserializeOwned>(row: &Row<'_>) -> rusqlite::Result<T> {
    parse_row_text(row.get_ref(0)?.as_str()?)
}

/// Converts a number for SQLite, whose integers are signed. Every number here is small enough.
pub(super) fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn read_seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(column)?.unsigned_abs()))
}

pub(super) fn read_edge(row: &Row<'_>) -> rusqlite::Result<TaskEdge> {
    let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let kind = row.get_ref(3)?.as_str()?.parse().map_err(|error: String| {
        rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(TaskEdge { id: EdgeId(number(0)?), from_id: TaskId(number(1)?), to_id: TaskId(number(2)?), kind })
}

fn read_priority_and_task(row: &Row<'_>) -> rusqlite::Result<(TaskPriority, TaskId)> {
    let priority = TaskPriority::try_from(row.get::<_, u8>(0)?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Integer, error.into()))?;
    Ok((priority, TaskId(row.get::<_, i64>(1)?.unsigned_abs())))
}

impl StoreSnapshot<'_> {
    fn query_one<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> ViewResult<Option<T>> {
        self.store
            .run_sql(|connection| connection.prepare_cached(sql)?.query_row(parameters, read).optional())
            .map_err(|error| ViewError(Box::new(error)))
    }

    fn query_number<T: FromSql>(&self, sql: &str) -> ViewResult<Option<T>> {
        Ok(self.query_one(sql, [], |row| row.get::<_, Option<T>>(0))?.flatten())
    }
}

/// Finds the next task for a claim. The index is named: SQLite would choose the one of states, and sort the tasks.
pub(super) const NEXT_CLAIMABLE_SQL: &str = "SELECT priority, id FROM tasks INDEXED BY tasks_claimable
    WHERE state IN ('ready', 'needs_continuation') AND (priority, id) > (?, ?) ORDER BY priority, id LIMIT 1";

impl StateView for StoreSnapshot<'_> {
    fn head_position(&self) -> ViewResult<Seq> {
        Ok(self.head)
    }

    fn find_task(&self, id: TaskId) -> ViewResult<Option<Task>> {
        self.query_one("SELECT row FROM tasks WHERE id = ?", [to_signed(id.0)], parse_row)
    }

    fn last_task_id(&self) -> ViewResult<Option<TaskId>> {
        Ok(self.query_number::<i64>("SELECT max(id) FROM tasks")?.map(|id| TaskId(id.unsigned_abs())))
    }

    fn find_edges(&self, id: TaskId, direction: EdgeDirection) -> ViewResult<Vec<TaskEdge>> {
        // Sorted here: with an `ORDER BY` on the id, SQLite plans the query anew for every task.
        let sql = match direction {
            EdgeDirection::From => "SELECT id, from_id, to_id, kind FROM edges WHERE from_id = ?",
            EdgeDirection::To => "SELECT id, from_id, to_id, kind FROM edges WHERE to_id = ?",
        };
        let mut edges: Vec<TaskEdge> = self
            .store
            .run_sql(|connection| connection.prepare_cached(sql)?.query_map([to_signed(id.0)], read_edge)?.collect())
            .map_err(|error| ViewError(Box::new(error)))?;
        edges.sort_unstable_by_key(|edge| edge.id);
        Ok(edges)
    }

    fn last_edge_id(&self) -> ViewResult<Option<EdgeId>> {
        Ok(self.query_number::<i64>("SELECT max(id) FROM edges")?.map(|id| EdgeId(id.unsigned_abs())))
    }

    fn next_claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(TaskPriority, TaskId)>,
    ) -> ViewResult<Option<(TaskPriority, TaskId)>> {
        let (priority, id) = after.map_or((-1, 0), |(priority, id)| (i64::from(u8::from(priority)), to_signed(id.0)));
        if closed.is_empty() {
            return self.query_one(NEXT_CLAIMABLE_SQL, params![priority, id], read_priority_and_task);
        }
        // One query per type: there are few types, and any number of tasks may have a closed one.
        let sql = "SELECT priority, id FROM tasks INDEXED BY tasks_claimable_of_kind
                   WHERE state IN ('ready', 'needs_continuation') AND kind = ?
                   AND (priority, id) > (?, ?) ORDER BY priority, id LIMIT 1";
        let next = "SELECT kind FROM tasks INDEXED BY tasks_claimable_of_kind
                    WHERE state IN ('ready', 'needs_continuation') AND kind > ? ORDER BY kind LIMIT 1";
        let (mut first, mut kind) = (None, Some(String::new()));
        while let Some(current) = kind {
            if !closed.iter().any(|closed| closed.as_str() == current) {
                let found = self.query_one(sql, params![current, priority, id], read_priority_and_task)?;
                first = [first, found].into_iter().flatten().min();
            }
            kind = self.query_one(next, [current], |row| row.get(0))?;
        }
        Ok(first)
    }

    fn next_expired_lease(
        &self,
        before: Timestamp,
        after: Option<(Timestamp, TaskId)>,
    ) -> ViewResult<Option<(Timestamp, TaskId)>> {
        let sql = "SELECT lease_until, id FROM tasks WHERE lease_until IS NOT NULL AND lease_until < ?
                   AND (lease_until, id) > (?, ?) ORDER BY lease_until, id LIMIT 1";
        let (until, id) = after.map_or((i64::MIN, 0), |(until, id)| (until.millis(), to_signed(id.0)));
        self.query_one(sql, params![before.millis(), until, id], |row| {
            Ok((Timestamp::from_millis(row.get(0)?), TaskId(row.get::<_, i64>(1)?.unsigned_abs())))
        })
    }

    fn find_session(&self, name: &SessionName) -> ViewResult<Option<Session>> {
        self.query_one("SELECT row FROM sessions WHERE name = ?", [name.as_str()], parse_row)
    }

    fn find_effect(&self, id: EffectId) -> ViewResult<Option<PendingEffect>> {
        self.query_one(
            "SELECT row FROM debts WHERE seq = ? AND place = ?",
            params![to_signed(id.seq.0), id.index],
            parse_row,
        )
    }

    fn find_conversation(&self, caller: &BridgeCaller) -> ViewResult<Option<BridgeConversation>> {
        let sql = "SELECT row FROM conversations WHERE agent = ? AND conversation = ?";
        self.query_one(sql, [&caller.agent, &caller.conversation], parse_row)
    }

    fn next_pending_effect(&self, after: Option<EffectId>) -> ViewResult<Option<PendingEffect>> {
        let sql = "SELECT row FROM debts WHERE (seq, place) > (?, ?) ORDER BY seq, place LIMIT 1";
        let (seq, place) = after.map_or((-1, 0), |id| (to_signed(id.seq.0), i64::from(id.index)));
        self.query_one(sql, params![seq, place], parse_row)
    }

    fn find_config_text(&self, digest: ConfigDigest) -> ViewResult<Option<String>> {
        self.query_one("SELECT content FROM configs WHERE digest = ?", [digest.to_string()], |row| row.get(0))
    }

    fn has_config(&self, digest: ConfigDigest) -> ViewResult<bool> {
        let found =
            self.query_one("SELECT 1 FROM configs WHERE digest = ?", [digest.to_string()], |row| row.get::<_, i64>(0));
        Ok(found?.is_some())
    }
}

impl StoreSnapshot<'_> {
    /// Returns the scope and the version of every row that has one.
    pub(super) fn list_row_versions(&self) -> Result<BTreeMap<DecisionScope, u64>, StoreError> {
        self.store.run_sql(|connection| {
            let mut versions = BTreeMap::new();
            let mut tasks = connection.prepare("SELECT row FROM tasks")?;
            for task in tasks.query_map([], parse_row::<Task>)? {
                let task = task?;
                versions.insert(DecisionScope::Task(task.id), task.version.0);
            }
            let mut sessions = connection.prepare("SELECT row FROM sessions")?;
            for session in sessions.query_map([], parse_row::<Session>)? {
                let session = session?;
                versions.insert(DecisionScope::Session(session.name), session.version.0);
            }
            let mut effects = connection.prepare("SELECT row FROM debts")?;
            for effect in effects.query_map([], parse_row::<PendingEffect>)? {
                let effect = effect?;
                versions.insert(DecisionScope::PendingEffect(effect.id), effect.version.0);
            }
            let mut conversations = connection.prepare("SELECT row FROM conversations")?;
            for conversation in conversations.query_map([], parse_row::<BridgeConversation>)? {
                let conversation = conversation?;
                versions.insert(DecisionScope::Conversation(conversation.caller), conversation.version.0);
            }
            Ok(versions)
        })
    }
}

/// Returns a task's type as its column holds it.
pub(super) fn task_kind_text(task: &Task) -> &str {
    task.kind.as_ref().map_or("", TypeName::as_str)
}

/// Returns the event that opened the change of a task, while the change is not merged.
pub(super) fn open_change_position(task: &Task) -> Option<i64> {
    task.open_change().map(|change| to_signed(change.opened.0))
}

/// Writes the row of a task. Most changes leave the searched columns as they are: then the indexes are not written.
fn put_task(connection: &Connection, task: &Task) -> rusqlite::Result<()> {
    let lease_until = task.lease.as_ref().and_then(|lease| lease.until).map(|until| until.millis());
    let values = params![
        to_signed(task.id.0),
        task.state.name(),
        u8::from(task.priority),
        task_kind_text(task),
        lease_until,
        open_change_position(task),
        serialize_row(task)
    ];
    let update = "UPDATE tasks SET row = ?7 WHERE id = ?1 AND state = ?2 AND priority = ?3 AND kind = ?4
                  AND lease_until IS ?5 AND open_change IS ?6";
    if connection.prepare_cached(update)?.execute(values)? > 0 {
        return Ok(());
    }
    let put = "INSERT INTO tasks (id, state, priority, kind, lease_until, open_change, row) VALUES (?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (id) DO UPDATE SET state = excluded.state, priority = excluded.priority, kind = excluded.kind,
               lease_until = excluded.lease_until, open_change = excluded.open_change, row = excluded.row";
    connection.prepare_cached(put)?.execute(values).map(drop)
}

/// Applies one change.
pub(super) fn apply_change(connection: &Connection, change: &RowChange) -> rusqlite::Result<()> {
    let run = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<()> {
        let mut statement: CachedStatement<'_> = connection.prepare_cached(sql)?;
        statement.execute(parameters).map(drop)
    };
    match change {
        RowChange::PutTask(task) => put_task(connection, task),
        RowChange::PutEdge(edge) => run(
            "INSERT INTO edges (id, from_id, to_id, kind) VALUES (?, ?, ?, ?)",
            params![to_signed(edge.id.0), to_signed(edge.from_id.0), to_signed(edge.to_id.0), edge.kind.name()],
        ),
        RowChange::DropEdge(id) => run("DELETE FROM edges WHERE id = ?", params![to_signed(id.0)]),
        RowChange::PutSession(session) => {
            run(
                "INSERT INTO sessions (name, started, is_over, row) VALUES (?, ?, ?, ?)
                 ON CONFLICT (name) DO UPDATE SET row = excluded.row",
                params![session.name.as_str(), to_signed(session.started.0), session.is_over(), serialize_row(session)],
            )?;
            // Apart from the row: naming the column there would write the entries of the indexes anew at each change.
            run(
                "UPDATE sessions SET is_over = ?2 WHERE name = ?1 AND is_over <> ?2",
                params![session.name.as_str(), session.is_over()],
            )
        }
        RowChange::PutEffect(effect) => run(
            "REPLACE INTO debts (seq, place, row) VALUES (?, ?, ?)",
            params![to_signed(effect.id.seq.0), effect.id.index, serialize_row(effect)],
        ),
        RowChange::DropEffect(id) => {
            run("DELETE FROM debts WHERE seq = ? AND place = ?", params![to_signed(id.seq.0), id.index])
        }
        RowChange::PutConversation(row) => run(
            "REPLACE INTO conversations (agent, conversation, row) VALUES (?, ?, ?)",
            params![row.caller.agent, row.caller.conversation, serialize_row(row)],
        ),
        RowChange::DropConversation(caller) => run(
            "DELETE FROM conversations WHERE agent = ? AND conversation = ?",
            params![caller.agent, caller.conversation],
        ),
        RowChange::PutConfig { digest, text } => {
            run("REPLACE INTO configs (digest, content) VALUES (?, ?)", params![digest.to_string(), text])
        }
    }
}
