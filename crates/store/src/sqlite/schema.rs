//! The tables, and how an older file becomes a present one.
//!
//! The log is what people own; the rest is folded from it. So a change of schema copies the file aside, changes the
//! log's table if it has to, throws the projections away and folds them anew, all in one transaction.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension};

use super::Sqlite;
use super::inspect;
use crate::StoreError;

/// "Wndl": so that a file can be told from any other SQLite database.
const APPLICATION: u32 = 0x576e_646c;

/// The schema that this version writes.
pub(super) const SCHEMA: u32 = 1;

/// The log. `previous` is the event before this one in the history of the same task, so that a history is read without
/// an index; `nonce` tells commits apart.
const LOG: &str = "
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        type TEXT NOT NULL,
        previous INTEGER NOT NULL,
        nonce BLOB NOT NULL,
        body BLOB NOT NULL,
        digest BLOB NOT NULL,
        chain BLOB NOT NULL
    ) STRICT;
";

/// What is folded from the log. `row` is the whole row; the columns beside it are there to be searched.
pub(super) const PROJECTIONS: &str = "
    CREATE TABLE tasks (
        id INTEGER PRIMARY KEY,
        state TEXT NOT NULL,
        priority INTEGER NOT NULL,
        lease_until INTEGER,
        row TEXT NOT NULL
    ) STRICT;
    CREATE INDEX tasks_claimable ON tasks (priority, id) WHERE state IN ('ready', 'needs_continuation');
    CREATE INDEX tasks_leased ON tasks (lease_until, id) WHERE lease_until IS NOT NULL;
    CREATE TABLE edges (
        id INTEGER PRIMARY KEY,
        from_id INTEGER NOT NULL,
        to_id INTEGER NOT NULL,
        kind TEXT NOT NULL
    ) STRICT;
    CREATE INDEX edges_from ON edges (from_id, id);
    CREATE INDEX edges_to ON edges (to_id, id);
    CREATE TABLE sessions (name TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE debts (seq INTEGER, place INTEGER, row TEXT NOT NULL, PRIMARY KEY (seq, place)) STRICT, WITHOUT ROWID;
    CREATE TABLE configs (digest TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// The tables of [`PROJECTIONS`].
pub(super) const PROJECTED: [&str; 5] = ["tasks", "edges", "sessions", "debts", "configs"];

/// How the log's table is brought from one schema to the next, counted from schema 1.
const LOG_CHANGES: &[&str] = &[];

/// How far the write-ahead log is grown when a store is made.
const GROWN_BYTES: u32 = 512 * 1024;

/// What the file says about itself.
fn version(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    Ok((number("application_id")?, number("user_version")?))
}

/// Makes sure that the file is a store of the present schema.
pub(super) fn prepare(store: &mut Sqlite) -> Result<(), StoreError> {
    match store.sql(version)? {
        (APPLICATION, SCHEMA) => Ok(()),
        (APPLICATION, older @ 0..SCHEMA) => migrate(store, older),
        (0, 0) if is_empty(store)? => create(store),
        _ => check(store),
    }
}

/// Refuses what is not a store of the present schema.
pub(super) fn check(store: &Sqlite) -> Result<(), StoreError> {
    match store.sql(version)? {
        (APPLICATION, SCHEMA) => Ok(()),
        (APPLICATION, newer) if newer > SCHEMA => {
            Err(StoreError::Newer { path: store.path.clone(), found: newer, known: SCHEMA })
        }
        (APPLICATION, _) => Err(StoreError::ReadOnly(store.path.clone())),
        _ => Err(StoreError::NotAStore(store.path.clone())),
    }
}

fn is_empty(store: &Sqlite) -> Result<bool, StoreError> {
    let tables = "SELECT 1 FROM sqlite_schema LIMIT 1";
    Ok(store.sql(|connection| connection.query_row(tables, [], |_| Ok(())).optional())?.is_none())
}

fn create(store: &mut Sqlite) -> Result<(), StoreError> {
    store.sql(|connection| connection.pragma_update(None, "journal_mode", "wal"))?;
    store.sql(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
    let made = store.sql(|connection| {
        // Another process may have been quicker.
        if version(connection)? != (0, 0) {
            return Ok(());
        }
        connection.execute_batch(LOG)?;
        connection.execute_batch(PROJECTIONS)?;
        grow(connection)?;
        stamp(connection)
    });
    finish(store, made)?;
    // Folding it back leaves the write-ahead log empty at its full length.
    store.sql(|connection| connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())))
}

/// Writes enough once that the write-ahead log never has to grow for ordinary commits.
fn grow(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE TABLE growth (filler BLOB); INSERT INTO growth VALUES (zeroblob({GROWN_BYTES})); DROP TABLE growth;"
    ))
}

fn stamp(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", SCHEMA)
}

fn migrate(store: &mut Sqlite, from: u32) -> Result<(), StoreError> {
    let copy = backup_path(store, from);
    if !copy.exists() {
        store.backup(&copy).map_err(|error| StoreError::Backup { path: copy, source: Box::new(error) })?;
    }
    store.sql(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
    let changed = (|| {
        if store.sql(version)?.1 == SCHEMA {
            return Ok(());
        }
        for change in LOG_CHANGES.iter().skip(from.saturating_sub(1) as usize) {
            store.sql(|connection| connection.execute_batch(change))?;
        }
        inspect::rebuild(store)?;
        store.sql(stamp)
    })();
    finish(store, changed)
}

/// Where the file is saved before its schema is changed.
fn backup_path(store: &Sqlite, schema: u32) -> PathBuf {
    let mut name = store.path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".schema-{schema}.bak"));
    store.path.with_file_name(name)
}

/// Ends a transaction: all of it, or none.
pub(super) fn finish<T>(store: &Sqlite, result: Result<T, StoreError>) -> Result<T, StoreError> {
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = store.sql(|connection| connection.execute_batch(end));
    result.and_then(|result| ended.map(|()| result))
}
