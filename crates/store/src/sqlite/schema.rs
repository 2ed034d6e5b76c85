//! The tables, and the migration of an older file.
//!
//! The log holds the user's data; the rest is folded from it. So a migration copies the file aside, changes the log's table if
//! necessary, drops the projections and folds them anew, all in one transaction.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::scopes::REPLICA_TABLES_SQL;
use super::{IfMissing, SqliteStore, StoreAccess, open_connection, rebuild};
use crate::{StoreError, failpoint};

/// "Wndl", which distinguishes the file from any other SQLite database.
const APPLICATION_ID: u32 = 0x576e_646c;

/// A schema, and the changes that lead to it from earlier ones.
pub(super) struct StoreSchema {
    /// Counted from 1.
    pub number: u32,
    /// The changes to the log's table from each schema to the next. Most migrations change only the projections: then the step is
    /// empty.
    pub log_changes: &'static [&'static str],
    /// The log's table.
    pub log: &'static str,
}

/// The schema that this version writes. The second has other rows of sessions and tasks: they hold the usage of turns.
/// The third has rows of conversations. The fourth finds claimable tasks by their type. The fifth has other rows of tasks: they
/// hold whose work lies in place. The sixth has other rows of sessions and tasks: they hold whether anything checked the work,
/// why and until when an agent is left alone after a failure, and the last conversation about a task. The seventh finds tasks by
/// their state and by their open change, and sessions by their start. The eighth has the tables of a copy of a fleet's log, and the
/// ninth finds the last folded message in this log again.
pub(super) const CURRENT_SCHEMA: StoreSchema =
    StoreSchema { number: 9, log_changes: &["", "", "", "", "", "", "", DROP_COPY_CURSOR_SQL], log: LOG_TABLE_SQL };

/// No command could fill this table before the ninth schema. The rebuild of the rows makes it anew.
const DROP_COPY_CURSOR_SQL: &str = "DROP TABLE IF EXISTS copied_to;";

/// The bit of the schema number that marks a copy of a fleet's log. A program that does not know fleets takes the number for a newer
/// schema, and leaves the file alone.
const REPLICA_FLAG: u32 = 1 << 16;

/// The log. `previous` is the event before this one in the history of the same task, so that a history is read without
/// an index; `nonce` distinguishes commits.
const LOG_TABLE_SQL: &str = "
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

/// The projections. `row` is the whole row; the columns beside it are there for searches. A task without a type has an empty
/// `kind`; `open_change` is the event that opened a change of the task that is not merged.
pub(super) const PROJECTION_TABLES_SQL: &str = "
    CREATE TABLE tasks (
        id INTEGER PRIMARY KEY,
        state TEXT NOT NULL,
        priority INTEGER NOT NULL,
        kind TEXT NOT NULL,
        lease_until INTEGER,
        open_change INTEGER,
        row TEXT NOT NULL
    ) STRICT;
    CREATE TABLE edges (
        id INTEGER PRIMARY KEY,
        from_id INTEGER NOT NULL,
        to_id INTEGER NOT NULL,
        kind TEXT NOT NULL
    ) STRICT;
    CREATE TABLE sessions (
        name TEXT PRIMARY KEY,
        started INTEGER NOT NULL,
        is_over INTEGER NOT NULL,
        row TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE debts (seq INTEGER, place INTEGER, row TEXT NOT NULL, PRIMARY KEY (seq, place)) STRICT, WITHOUT ROWID;
    CREATE TABLE conversations (
        agent TEXT NOT NULL,
        conversation TEXT NOT NULL,
        row TEXT NOT NULL,
        PRIMARY KEY (agent, conversation)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE configs (digest TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// Indexes of the projections. Creating them last is quicker when there are rows already.
pub(super) const INDEXES_SQL: &str = "
    CREATE INDEX tasks_claimable ON tasks (priority, id) WHERE state IN ('ready', 'needs_continuation');
    CREATE INDEX tasks_claimable_of_kind ON tasks (kind, priority, id) WHERE state IN ('ready', 'needs_continuation');
    CREATE INDEX tasks_leased ON tasks (lease_until, id) WHERE lease_until IS NOT NULL;
    CREATE INDEX tasks_in_state ON tasks (state, id);
    CREATE INDEX tasks_with_change ON tasks (open_change) WHERE open_change IS NOT NULL;
    CREATE INDEX sessions_started ON sessions (started);
    CREATE INDEX sessions_open ON sessions (started) WHERE is_over = 0;
    CREATE INDEX edges_from ON edges (from_id, id);
    CREATE INDEX edges_to ON edges (to_id, id);
";

/// The tables of [`PROJECTION_TABLES_SQL`].
pub(super) const PROJECTED_TABLES: [&str; 6] = ["tasks", "edges", "sessions", "debts", "conversations", "configs"];

/// Initial length of the write-ahead log: more than it holds when it is checkpointed.
const PREALLOCATED_LOG_BYTES: u32 = 1200 * 1024;

/// Returns the application id and the schema number in the file.
fn read_version(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    Ok((number("application_id")?, number("user_version")? & !REPLICA_FLAG))
}

/// Returns whether the file is a copy of a fleet's log.
pub(super) fn read_replica_flag(store: &SqliteStore) -> Result<bool, StoreError> {
    Ok(read_user_version(store)? & REPLICA_FLAG != 0)
}

/// Marks the file as a copy of a fleet's log, or as a store of its own.
pub(super) fn write_replica_flag(store: &SqliteStore, is_replica: bool) -> Result<(), StoreError> {
    let flag = if is_replica { REPLICA_FLAG } else { 0 };
    store.run_sql(|connection| connection.pragma_update(None, "user_version", CURRENT_SCHEMA.number | flag))
}

fn read_user_version(store: &SqliteStore) -> Result<u32, StoreError> {
    store.run_sql(|connection| connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0)))
}

/// Refuses a file that is neither a store of this schema nor one that can be migrated to it. Returns whether it is the former.
pub(super) fn check_readable(store: &SqliteStore, schema: &StoreSchema) -> Result<bool, StoreError> {
    match store.run_sql(read_version)? {
        (APPLICATION_ID, older) if (1..schema.number).contains(&older) => check_older_schema(store).map(|()| false),
        _ => check_schema(store, schema).map(|()| true),
    }
}

/// Makes sure that the file is a store of this schema.
pub(super) fn prepare_schema(
    store: &mut SqliteStore,
    schema: &StoreSchema,
    absent: &mut IfMissing<'_>,
) -> Result<(), StoreError> {
    match store.run_sql(read_version)? {
        (APPLICATION_ID, older) if (1..schema.number).contains(&older) => migrate_schema(store, schema),
        (0, 0) if is_blank(store)? => match absent {
            IfMissing::Make(record) => create_tables(store, record),
            // The process that made it ran out of space.
            IfMissing::Refuse => Err(StoreError::Missing(store.path.clone())),
        },
        _ => check_schema(store, schema),
    }
}

/// Refuses a file that is not a store of this schema.
pub(super) fn check_schema(store: &SqliteStore, schema: &StoreSchema) -> Result<(), StoreError> {
    match store.run_sql(read_version)? {
        (APPLICATION_ID, found) if found == schema.number => check_tables(store, schema),
        (APPLICATION_ID, found) if found > schema.number => {
            Err(StoreError::Newer { path: store.path.clone(), found, known: schema.number })
        }
        // It would need a migration first.
        (APPLICATION_ID, 1..) => Err(StoreError::ReadOnly(store.path.clone())),
        _ => Err(StoreError::NotAStore(store.path.clone())),
    }
}

/// Refuses every object that this schema does not create exactly so: an object beside our tables may run when they are used.
fn check_tables(store: &SqliteStore, schema: &StoreSchema) -> Result<(), StoreError> {
    let mut expected: BTreeMap<String, String> = [schema.log, REPLICA_TABLES_SQL, PROJECTION_TABLES_SQL, INDEXES_SQL]
        .into_iter()
        .flat_map(split_statements)
        .collect();
    for (name, kind, made) in read_schema_objects(store)? {
        match expected.remove(&name) {
            Some(wanted) if wanted == made => {}
            _ => return Err(other_schema_error(store, format!("the {kind} `{name}`"))),
        }
    }
    match expected.into_keys().next() {
        Some(missing) => Err(other_schema_error(store, format!("`{missing}`"))),
        None => Ok(()),
    }
}

/// Does the same for an older schema: its log must be as it always was, and the migration makes the rest anew.
fn check_older_schema(store: &SqliteStore) -> Result<(), StoreError> {
    let (_, log) = split_statements(LOG_TABLE_SQL).next().expect("it is one statement");
    for (name, kind, made) in read_schema_objects(store)? {
        if !matches!(kind.as_str(), "table" | "index") || (name == "events" && made != log) {
            return Err(other_schema_error(store, format!("the {kind} `{name}`")));
        }
    }
    Ok(())
}

fn other_schema_error(store: &SqliteStore, what: String) -> StoreError {
    StoreError::OtherSchema { path: store.path.clone(), what }
}

/// Returns the objects that a text of SQL creates: each name with its statement.
fn split_statements(text: &str) -> impl Iterator<Item = (String, String)> {
    let name = |statement: &str| statement.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let all = text.split(';').filter(|statement| !statement.trim().is_empty());
    all.map(move |statement| (name(statement), normalize_statement(statement)))
}

/// Returns the name, the kind and the statement of every object in the file.
fn read_schema_objects(store: &SqliteStore) -> Result<Vec<(String, String, String)>, StoreError> {
    store.run_sql(|connection| {
        let mut query = connection.prepare("SELECT name, type, ifnull(sql, '') FROM sqlite_schema")?;
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, normalize_statement(&row.get::<_, String>(2)?))))?;
        rows.collect()
    })
}

/// Returns a statement without insignificant blanks.
fn normalize_statement(statement: &str) -> String {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let signs = ["(", ")", ","];
    signs
        .iter()
        .fold(words.join(" "), |text, sign| text.replace(&format!(" {sign}"), sign).replace(&format!("{sign} "), sign))
}

/// Refuses a file that a newer program has migrated since it was opened. Returns whether it is a copy of a fleet's log.
pub(super) fn check_not_newer(store: &SqliteStore, schema: &StoreSchema) -> Result<bool, StoreError> {
    let version = read_user_version(store)?;
    let found = version & !REPLICA_FLAG;
    if found <= schema.number {
        return Ok(version != found);
    }
    Err(StoreError::Newer { path: store.path.clone(), found, known: schema.number })
}

/// Returns whether the file has no tables and no version yet.
pub(super) fn is_blank(store: &SqliteStore) -> Result<bool, StoreError> {
    let tables = "SELECT 1 FROM sqlite_schema LIMIT 1";
    let has_tables = store.run_sql(|connection| connection.query_row(tables, [], |_| Ok(())).optional())?.is_some();
    Ok(!has_tables && store.run_sql(read_version)? == (0, 0))
}

/// Creates the tables.
fn create_tables(store: &mut SqliteStore, record: &mut dyn FnMut() -> io::Result<()>) -> Result<(), StoreError> {
    store.run_sql(|connection| {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        // Another process may have been quicker.
        if mode != "wal" {
            // Without a journal file: there is nothing to roll back to, and a journal beside a store is always refused.
            connection.pragma_update(None, "journal_mode", "memory")?;
        }
        connection.pragma_update(None, "journal_mode", "wal")?;
        // This read creates the log's file.
        read_version(connection)
    })?;
    record().map_err(|error| StoreError::Record { path: store.path.clone(), source: error })?;
    run_in_transaction(store, |store| {
        store.run_sql(|connection| {
            // Another process may have been quicker.
            if read_version(connection)? != (0, 0) {
                return Ok(());
            }
            connection.execute_batch(LOG_TABLE_SQL)?;
            connection.execute_batch(REPLICA_TABLES_SQL)?;
            connection.execute_batch(PROJECTION_TABLES_SQL)?;
            connection.execute_batch(INDEXES_SQL)?;
            preallocate_log(connection)?;
            write_version(connection, &CURRENT_SCHEMA)
        })
    })?;
    // The checkpoint leaves the write-ahead log empty at its full length. It waits for no reader.
    store.run_sql(|connection| connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
}

/// Writes enough once that the write-ahead log never has to grow for ordinary commits.
fn preallocate_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE TABLE growth (filler BLOB); INSERT INTO growth VALUES (zeroblob({PREALLOCATED_LOG_BYTES})); DROP TABLE growth;"
    ))
}

fn write_version(connection: &Connection, schema: &StoreSchema) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", schema.number)
}

fn migrate_schema(store: &mut SqliteStore, schema: &StoreSchema) -> Result<(), StoreError> {
    run_in_transaction(store, |store| {
        let from = store.run_sql(read_version)?.1;
        // Another process may have been quicker.
        if from >= schema.number {
            return check_schema(store, schema);
        }
        check_older_schema(store)?;
        // Through a connection of its own, while this one keeps all writers away: the copy holds exactly the data that is migrated next.
        let copy = backup_path(store, from);
        let before = SqliteStore::new(
            open_connection(&store.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
            &store.path,
            StoreAccess::Read,
        );
        before.replace_backup(&copy).map_err(|error| StoreError::Backup { path: copy, source: Box::new(error) })?;
        for change in schema.log_changes.iter().skip(from as usize - 1) {
            store.run_sql(|connection| connection.execute_batch(change))?;
        }
        rebuild::rebuild_projections(store)?;
        check_tables(store, schema)?;
        store.run_sql(|connection| write_version(connection, schema))?;
        failpoint::pass("store.before_migrated").map_err(|error| StoreError::from_io_error(&store.path, error))
    })
}

/// Returns the path of the copy before a migration.
fn backup_path(store: &SqliteStore, schema: u32) -> PathBuf {
    let mut name = store.path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".schema-{schema}.bak"));
    store.path.with_file_name(name)
}

/// Runs `work` in one transaction: all of it takes effect, or nothing.
pub(super) fn run_in_transaction<T>(
    store: &SqliteStore,
    work: impl FnOnce(&SqliteStore) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    store.run_sql(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
    let result =
        work(store).and_then(|done| store.run_sql(|connection| connection.execute_batch("COMMIT")).map(|()| done));
    if result.is_err() {
        // SQLite may have rolled back by itself already; the first error shows the cause.
        let _ = store.connection.execute_batch("ROLLBACK");
    }
    result
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a program that dies in the middle is a child of the test")]
mod tests {
    use std::path::Path;
    use std::process::Command as Program;

    use rusqlite::types::Value;
    use windlass_engine::{Authority, Command, CommandOrigin, EngineRules, NewTask, Timestamp};

    use super::*;
    use crate::{Lifetime, Store};

    /// A hypothetical next schema, with one more column in the log.
    const NEXT: StoreSchema = StoreSchema {
        number: 10,
        log_changes: &[
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "ALTER TABLE events ADD COLUMN noted TEXT NOT NULL DEFAULT 'nothing'",
        ],
        log: "CREATE TABLE events (seq INTEGER PRIMARY KEY, type TEXT NOT NULL, previous INTEGER NOT NULL,
            nonce BLOB NOT NULL, body BLOB NOT NULL, digest BLOB NOT NULL, chain BLOB NOT NULL,
            noted TEXT NOT NULL DEFAULT 'nothing') STRICT;",
    };

    /// A hypothetical schema after that, whose migration fails.
    const BROKEN: StoreSchema = StoreSchema {
        number: 10,
        log_changes: &[
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            NEXT.log_changes[6],
            "DELETE FROM events; ALTER TABLE events ADD COLUMN noted TEXT",
        ],
        log: NEXT.log,
    };

    /// Makes a store of schema 1 with a few tasks and outdated projections.
    fn older(directory: &Path) -> PathBuf {
        let path = directory.join("windlass.db");
        let mut store = SqliteStore::create(&path, Lifetime::Command).unwrap();
        add(&mut store, 3);
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("DROP TABLE debts; ALTER TABLE tasks RENAME COLUMN row TO content").unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        path
    }

    fn add(store: &mut SqliteStore, tasks: u128) {
        let at = Timestamp::from_millis(0);
        let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        for number in 0..tasks {
            let task = Command::CreateTask(NewTask { goal: format!("task {number}"), ..NewTask::default() });
            store.execute_command(&EngineRules::default(), &origin, &task, number).unwrap();
        }
    }

    fn opened(path: &Path, schema: &StoreSchema) -> Result<SqliteStore, StoreError> {
        let mut store =
            SqliteStore::new(open_connection(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, path, StoreAccess::Write);
        prepare_schema(&mut store, schema, &mut IfMissing::Refuse).map(|()| store)
    }

    /// Returns all data of the log, byte for byte.
    fn log(path: &Path) -> Vec<Vec<Value>> {
        let connection = Connection::open(path).unwrap();
        let columns = "seq, type, previous, nonce, body, digest, chain";
        let mut query = connection.prepare(&format!("SELECT {columns} FROM events ORDER BY seq")).unwrap();
        let rows = query.query_map([], |row| (0..7).map(|column| row.get(column)).collect());
        rows.unwrap().map(Result::unwrap).collect()
    }

    fn numbers(path: &Path) -> (u32, u32) {
        read_version(&Connection::open(path).unwrap()).unwrap()
    }

    fn copy_of(path: &Path) -> PathBuf {
        path.with_file_name("windlass.db.schema-1.bak")
    }

    #[test]
    fn older_store_is_migrated_after_backup() {
        let directory = tempfile::tempdir().unwrap();
        let path = older(directory.path());
        let before = log(&path);
        let store = opened(&path, &NEXT).unwrap();
        assert_eq!(numbers(&path), (APPLICATION_ID, NEXT.number));
        assert_eq!(log(&path), before);
        assert!(store.inspect_store().unwrap().is_sound(), "the projections were folded anew");
        let noted = "SELECT count(*) FROM events WHERE noted = 'nothing'";
        assert_eq!(store.connection.query_row(noted, [], |row| row.get(0)), Ok(before.len() as i64));
        assert_eq!(numbers(&copy_of(&path)), (APPLICATION_ID, 1));
        assert_eq!(log(&copy_of(&path)), before);
        // A second migration is not needed, and the older program is kept out.
        drop(opened(&path, &NEXT).unwrap());
        let refused = SqliteStore::open(&path, Lifetime::Command).err().unwrap();
        assert!(matches!(refused, StoreError::Newer { found: 10, known: 9, .. }), "{refused}");
    }

    #[test]
    fn every_schema_version_has_a_migration() {
        assert_eq!(CURRENT_SCHEMA.log_changes.len() + 1, CURRENT_SCHEMA.number as usize);
        let directory = tempfile::tempdir().unwrap();
        let path = older(directory.path());
        let before = log(&path);
        let store = SqliteStore::open(&path, Lifetime::Command).unwrap();
        assert!(store.inspect_store().unwrap().is_sound());
        assert_eq!((numbers(&path), log(&path)), ((APPLICATION_ID, CURRENT_SCHEMA.number), before));
    }

    #[test]
    fn many_programs_at_once_bring_it_forward_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = older(directory.path());
        let before = log(&path);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| opened(&path, &NEXT).unwrap());
            }
        });
        assert_eq!((numbers(&path), log(&path)), ((APPLICATION_ID, NEXT.number), before.clone()));
        assert_eq!((numbers(&copy_of(&path)), log(&copy_of(&path))), ((APPLICATION_ID, 1), before));
    }

    #[test]
    fn failed_migration_leaves_old_store_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = older(directory.path());
        let before = log(&path);
        opened(&path, &BROKEN).err().unwrap();
        assert_eq!((numbers(&path), log(&path)), ((APPLICATION_ID, 1), before.clone()));
        // The copy of the next attempt includes later events.
        Connection::open(&path)
            .unwrap()
            .execute("INSERT INTO events SELECT seq + 100, type, previous, nonce, body, digest, chain FROM events", [])
            .unwrap();
        opened(&path, &BROKEN).err().unwrap();
        assert_eq!(log(&copy_of(&path)).len(), 2 * before.len());
    }

    #[test]
    fn store_with_damaged_log_is_not_migrated() {
        let directory = tempfile::tempdir().unwrap();
        let path = older(directory.path());
        Connection::open(&path).unwrap().execute("UPDATE events SET body = x'00' WHERE seq = 3", []).unwrap();
        let refused = opened(&path, &NEXT).err().unwrap();
        assert!(matches!(refused, StoreError::Damaged { seq: windlass_engine::Seq(3), .. }), "{refused}");
        assert_eq!(numbers(&path), (APPLICATION_ID, 1));
    }

    #[test]
    fn store_is_not_migrated_if_backup_fails() {
        let directory = tempfile::tempdir().unwrap();
        let path = older(directory.path());
        // A directory takes the name of the copy.
        std::fs::create_dir_all(copy_of(&path).join("occupied")).unwrap();
        let refused = opened(&path, &NEXT).err().unwrap();
        assert!(matches!(refused, StoreError::Backup { .. }), "{refused}");
        assert_eq!(numbers(&path), (APPLICATION_ID, 1));
    }

    /// Tells a child which store to migrate, and where to die.
    const STORE: &str = "WINDLASS_TEST_MIGRATE";
    const KILL_POINT_VARIABLE: &str = "WINDLASS_TEST_MOMENT";

    /// Run in a child, which dies during the migration.
    #[test]
    fn child_dies_on_the_way() {
        let Some(path) = std::env::var_os(STORE) else { return };
        failpoint::arm_failpoint(&std::env::var(KILL_POINT_VARIABLE).unwrap());
        let _ = opened(Path::new(&path), &NEXT);
        unreachable!("it was killed");
    }

    #[test]
    fn migration_killed_midway_leaves_store_intact_for_retry() {
        for moment in ["store.before_copied=kill", "store.before_migrated=kill"] {
            let directory = tempfile::tempdir().unwrap();
            let path = older(directory.path());
            let before = log(&path);
            let mut child = Program::new(std::env::current_exe().unwrap());
            let test = "sqlite::schema::tests::child_dies_on_the_way";
            child.args(["--exact", test]).env(STORE, &path).env(KILL_POINT_VARIABLE, moment);
            let status = child.output().unwrap().status;
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
            assert_eq!((numbers(&path), log(&path)), ((APPLICATION_ID, 1), before.clone()));
            drop(opened(&path, &NEXT).unwrap());
            assert_eq!((numbers(&path), log(&path)), ((APPLICATION_ID, NEXT.number), before));
            let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".part")).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}
