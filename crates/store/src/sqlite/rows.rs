//! The projections as a view, and changes to them.

use std::collections::BTreeSet;

use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_engine::{
    Caller, Change, ConfigDigest, Conversation, Direction, Edge, EdgeId, EffectId, Looked, PendingEffect, Priority,
    Seq, Session, SessionName, Task, TaskId, Timestamp, TypeName, View, ViewError,
};

use super::{Sqlite, queries};
use crate::StoreError;

/// The rows at one moment.
pub struct Snapshot<'s> {
    pub(super) store: &'s Sqlite,
    head: Seq,
    _reading: Option<Reading<'s>>,
}

/// A read transaction. It sees one moment until it is dropped.
pub(super) struct Reading<'s>(&'s Sqlite);

impl<'s> Reading<'s> {
    /// Begins at the present moment, or joins an open read transaction.
    pub fn begin(store: &'s Sqlite) -> Result<Self, StoreError> {
        if store.readers.get() == 0 {
            store.sql(|connection| connection.prepare_cached("BEGIN")?.execute([]))?;
        }
        store.readers.set(store.readers.get() + 1);
        Ok(Self(store))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.readers.set(self.0.readers.get() - 1);
        if self.0.readers.get() == 0 {
            // Nothing was written, so there is nothing to lose.
            let _ = self.0.connection.prepare_cached("ROLLBACK").and_then(|mut end| end.execute([]));
        }
    }
}

impl<'s> Snapshot<'s> {
    pub(super) fn begin(store: &'s Sqlite) -> Result<Self, StoreError> {
        let reading = Reading::begin(store)?;
        Ok(Self { store, head: queries::head(store)?, _reading: Some(reading) })
    }

    /// Returns the rows within a write transaction whose last event is `head`.
    pub(super) fn within(store: &'s Sqlite, head: Seq) -> Self {
        Self { store, head, _reading: None }
    }
}

/// Parses a row that is stored as text.
fn parse<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))
}

pub(super) fn write(row: &impl Serialize) -> String {
    let mut text = Vec::with_capacity(512);
    serde_json::to_writer(&mut text, row).expect("a row has string keys");
    String::from_utf8(text).expect("JSON is UTF-8")
}

pub(super) fn parsed<T: DeserializeOwned>(row: &Row<'_>) -> rusqlite::Result<T> {
    parse(row.get_ref(0)?.as_str()?)
}

/// Converts a number for SQLite, whose integers are signed. Every number here is small enough.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(column)?.unsigned_abs()))
}

pub(super) fn edge(row: &Row<'_>) -> rusqlite::Result<Edge> {
    let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let kind = row.get_ref(3)?.as_str()?.parse().map_err(|error: String| {
        rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(Edge { id: EdgeId(number(0)?), from_id: TaskId(number(1)?), to_id: TaskId(number(2)?), kind })
}

fn priority_and_task(row: &Row<'_>) -> rusqlite::Result<(Priority, TaskId)> {
    let priority = Priority::try_from(row.get::<_, u8>(0)?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Integer, error.into()))?;
    Ok((priority, TaskId(row.get::<_, i64>(1)?.unsigned_abs())))
}

impl Snapshot<'_> {
    fn one<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Looked<Option<T>> {
        self.store
            .sql(|connection| connection.prepare_cached(sql)?.query_row(parameters, read).optional())
            .map_err(|error| ViewError(Box::new(error)))
    }

    fn number<T: FromSql>(&self, sql: &str) -> Looked<Option<T>> {
        Ok(self.one(sql, [], |row| row.get::<_, Option<T>>(0))?.flatten())
    }
}

impl View for Snapshot<'_> {
    fn head(&self) -> Looked<Seq> {
        Ok(self.head)
    }

    fn task(&self, id: TaskId) -> Looked<Option<Task>> {
        self.one("SELECT row FROM tasks WHERE id = ?", [signed(id.0)], parsed)
    }

    fn last_task(&self) -> Looked<Option<TaskId>> {
        Ok(self.number::<i64>("SELECT max(id) FROM tasks")?.map(|id| TaskId(id.unsigned_abs())))
    }

    fn edges(&self, id: TaskId, direction: Direction) -> Looked<Vec<Edge>> {
        // Sorted here: with an `ORDER BY` on the id, SQLite plans the query anew for every task.
        let sql = match direction {
            Direction::From => "SELECT id, from_id, to_id, kind FROM edges WHERE from_id = ?",
            Direction::To => "SELECT id, from_id, to_id, kind FROM edges WHERE to_id = ?",
        };
        let mut edges: Vec<Edge> = self
            .store
            .sql(|connection| connection.prepare_cached(sql)?.query_map([signed(id.0)], edge)?.collect())
            .map_err(|error| ViewError(Box::new(error)))?;
        edges.sort_unstable_by_key(|edge| edge.id);
        Ok(edges)
    }

    fn last_edge(&self) -> Looked<Option<EdgeId>> {
        Ok(self.number::<i64>("SELECT max(id) FROM edges")?.map(|id| EdgeId(id.unsigned_abs())))
    }

    fn claimable_except(
        &self,
        closed: &BTreeSet<TypeName>,
        after: Option<(Priority, TaskId)>,
    ) -> Looked<Option<(Priority, TaskId)>> {
        let (priority, id) = after.map_or((-1, 0), |(priority, id)| (i64::from(u8::from(priority)), signed(id.0)));
        if closed.is_empty() {
            let sql = "SELECT priority, id FROM tasks WHERE state IN ('ready', 'needs_continuation')
                       AND (priority, id) > (?, ?) ORDER BY priority, id LIMIT 1";
            return self.one(sql, params![priority, id], priority_and_task);
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
                let found = self.one(sql, params![current, priority, id], priority_and_task)?;
                first = [first, found].into_iter().flatten().min();
            }
            kind = self.one(next, [current], |row| row.get(0))?;
        }
        Ok(first)
    }

    fn expired(&self, before: Timestamp, after: Option<(Timestamp, TaskId)>) -> Looked<Option<(Timestamp, TaskId)>> {
        let sql = "SELECT lease_until, id FROM tasks WHERE lease_until IS NOT NULL AND lease_until < ?
                   AND (lease_until, id) > (?, ?) ORDER BY lease_until, id LIMIT 1";
        let (until, id) = after.map_or((i64::MIN, 0), |(until, id)| (until.millis(), signed(id.0)));
        self.one(sql, params![before.millis(), until, id], |row| {
            Ok((Timestamp::from_millis(row.get(0)?), TaskId(row.get::<_, i64>(1)?.unsigned_abs())))
        })
    }

    fn session(&self, name: &SessionName) -> Looked<Option<Session>> {
        self.one("SELECT row FROM sessions WHERE name = ?", [name.as_str()], parsed)
    }

    fn effect(&self, id: EffectId) -> Looked<Option<PendingEffect>> {
        self.one("SELECT row FROM debts WHERE seq = ? AND place = ?", params![signed(id.seq.0), id.index], parsed)
    }

    fn conversation(&self, caller: &Caller) -> Looked<Option<Conversation>> {
        let sql = "SELECT row FROM conversations WHERE agent = ? AND conversation = ?";
        self.one(sql, [&caller.agent, &caller.conversation], parsed)
    }

    fn next_effect(&self, after: Option<EffectId>) -> Looked<Option<PendingEffect>> {
        let sql = "SELECT row FROM debts WHERE (seq, place) > (?, ?) ORDER BY seq, place LIMIT 1";
        let (seq, place) = after.map_or((-1, 0), |id| (signed(id.seq.0), i64::from(id.index)));
        self.one(sql, params![seq, place], parsed)
    }

    fn config(&self, digest: ConfigDigest) -> Looked<Option<String>> {
        self.one("SELECT content FROM configs WHERE digest = ?", [digest.to_string()], |row| row.get(0))
    }

    fn has_config(&self, digest: ConfigDigest) -> Looked<bool> {
        let found =
            self.one("SELECT 1 FROM configs WHERE digest = ?", [digest.to_string()], |row| row.get::<_, i64>(0));
        Ok(found?.is_some())
    }
}

/// Returns a task's type as its column holds it.
pub(super) fn kind(task: &Task) -> &str {
    task.kind.as_ref().map_or("", TypeName::as_str)
}

/// Applies one change.
pub(super) fn execute(connection: &Connection, change: &Change) -> rusqlite::Result<()> {
    let run = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<()> {
        let mut statement: CachedStatement<'_> = connection.prepare_cached(sql)?;
        statement.execute(parameters).map(drop)
    };
    match change {
        Change::PutTask(task) => {
            let lease_until = task.lease.as_ref().and_then(|lease| lease.until).map(|until| until.millis());
            run(
                "INSERT INTO tasks (id, state, priority, kind, lease_until, row) VALUES (?, ?, ?, ?, ?, ?)
                 ON CONFLICT (id) DO UPDATE SET state = excluded.state, priority = excluded.priority,
                 kind = excluded.kind, lease_until = excluded.lease_until, row = excluded.row",
                params![
                    signed(task.id.0),
                    task.state.name(),
                    u8::from(task.priority),
                    kind(task),
                    lease_until,
                    write(task)
                ],
            )
        }
        Change::PutEdge(edge) => run(
            "INSERT INTO edges (id, from_id, to_id, kind) VALUES (?, ?, ?, ?)",
            params![signed(edge.id.0), signed(edge.from_id.0), signed(edge.to_id.0), edge.kind.name()],
        ),
        Change::DropEdge(id) => run("DELETE FROM edges WHERE id = ?", params![signed(id.0)]),
        Change::PutSession(session) => {
            run("REPLACE INTO sessions (name, row) VALUES (?, ?)", params![session.name.as_str(), write(session)])
        }
        Change::PutEffect(effect) => run(
            "REPLACE INTO debts (seq, place, row) VALUES (?, ?, ?)",
            params![signed(effect.id.seq.0), effect.id.index, write(effect)],
        ),
        Change::DropEffect(id) => {
            run("DELETE FROM debts WHERE seq = ? AND place = ?", params![signed(id.seq.0), id.index])
        }
        Change::PutConversation(row) => run(
            "REPLACE INTO conversations (agent, conversation, row) VALUES (?, ?, ?)",
            params![row.caller.agent, row.caller.conversation, write(row)],
        ),
        Change::DropConversation(caller) => run(
            "DELETE FROM conversations WHERE agent = ? AND conversation = ?",
            params![caller.agent, caller.conversation],
        ),
        Change::PutConfig { digest, text } => {
            run("REPLACE INTO configs (digest, content) VALUES (?, ?)", params![digest.to_string(), text])
        }
    }
}
