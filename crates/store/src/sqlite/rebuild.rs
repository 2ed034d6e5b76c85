//! Folds the rows anew from the log.
//!
//! Most rows are tasks, and most of those are right even in a damaged store. So they are compared first and only the others are
//! written, unless their table itself is damaged or of another schema: then it is made anew as well.

use std::iter::Peekable;

use rusqlite::{Connection, OptionalExtension, Row};
use windlass_engine::{MemoryView, RowChange, Task};

use super::SqliteStore;
use super::rows::{self, to_signed};
use super::schema::{INDEXES_SQL, PROJECTED_TABLES, PROJECTION_TABLES_SQL, run_in_transaction};
use super::scopes::REPLICA_TABLES_SQL;
use crate::StoreError;

impl SqliteStore {
    /// Folds the rows anew from the log.
    pub fn rebuild_rows(&mut self) -> Result<(), StoreError> {
        self.check_access()?;
        run_in_transaction(self, rebuild_projections)
    }
}

/// Folds the rows anew, within a transaction.
pub(super) fn rebuild_projections(store: &SqliteStore) -> Result<(), StoreError> {
    let mut memory = MemoryView::default();
    store.fold_events(&mut memory, |_, error| Err(error))?;
    let keep_tasks = store.run_sql(is_task_table_sound).unwrap_or(false);
    store.run_sql(|connection| {
        for table in PROJECTED_TABLES.iter().filter(|table| !(keep_tasks && **table == "tasks")) {
            connection.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        connection.execute_batch(DROP_TASK_INDEXES)?;
        for tables in [REPLICA_TABLES_SQL, PROJECTION_TABLES_SQL] {
            connection.execute_batch(&tables.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))?;
        }
        let mut rows = memory.into_rows().peekable();
        repair_tasks(connection, &mut rows)?;
        rows.try_for_each(|row| rows::apply_change(connection, &row))?;
        connection.execute_batch(INDEXES_SQL)
    })
}

const DROP_TASK_INDEXES: &str = "
    DROP INDEX IF EXISTS tasks_claimable;
    DROP INDEX IF EXISTS tasks_claimable_of_kind;
    DROP INDEX IF EXISTS tasks_leased;
    DROP INDEX IF EXISTS tasks_in_state;
    DROP INDEX IF EXISTS tasks_with_change;
";

/// Returns whether the table of tasks is the one of this schema, and undamaged.
fn is_task_table_sound(connection: &Connection) -> rusqlite::Result<bool> {
    let made = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'tasks'";
    let made: Option<String> = connection.query_row(made, [], |row| row.get(0)).optional()?;
    if !made.is_some_and(|sql| PROJECTION_TABLES_SQL.contains(&sql)) {
        return Ok(false);
    }
    connection.query_row("PRAGMA quick_check('tasks')", [], |row| Ok(row.get_ref(0)?.as_str()? == "ok"))
}

/// Makes the table hold the tasks at the head of `wanted`, which are in the order of their ids.
fn repair_tasks(
    connection: &Connection,
    wanted: &mut Peekable<impl Iterator<Item = RowChange>>,
) -> rusqlite::Result<()> {
    let mut put = Vec::new();
    let mut strangers = Vec::new();
    let mut query =
        connection.prepare("SELECT id, state, priority, lease_until, row, kind, open_change FROM tasks ORDER BY id")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        while let Some(missing) = wanted.next_if(|row| put_task(row).is_some_and(|task| to_signed(task.id.0) < id)) {
            put.push(missing);
        }
        match wanted.next_if(|row| put_task(row).is_some_and(|task| to_signed(task.id.0) == id)) {
            Some(change) if !put_task(&change).is_some_and(|task| matches_task_row(row, task)) => put.push(change),
            Some(_) => {}
            None => strangers.push(id),
        }
    }
    while let Some(missing) = wanted.next_if(|row| put_task(row).is_some()) {
        put.push(missing);
    }
    let mut remove = connection.prepare("DELETE FROM tasks WHERE id = ?")?;
    strangers.iter().try_for_each(|id| remove.execute([id]).map(drop))?;
    put.iter().try_for_each(|change| rows::apply_change(connection, change))
}

fn put_task(change: &RowChange) -> Option<&Task> {
    match change {
        RowChange::PutTask(task) => Some(task),
        _ => None,
    }
}

/// Returns whether a row holds exactly this task.
fn matches_task_row(row: &Row<'_>, task: &Task) -> bool {
    let text = |column, wanted: &str| row.get_ref(column).is_ok_and(|cell| cell.as_bytes() == Ok(wanted.as_bytes()));
    let lease_until = task.lease.as_ref().and_then(|lease| lease.until).map(|until| until.millis());
    text(1, task.state.name())
        && row.get(2) == Ok(u8::from(task.priority))
        && row.get(3) == Ok(lease_until)
        && text(4, &rows::serialize_row(task))
        && text(5, rows::task_kind_text(task))
        && row.get(6) == Ok(rows::open_change_position(task))
}
