//! Opens connections, and refuses files that SQLite must not touch.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::wal;
use crate::StoreError;
use crate::error::WRITE_TIMEOUT_SECONDS;

/// Capacity of the statement cache: more than there are different statements, so that none is prepared twice.
const STATEMENT_CACHE_CAPACITY: usize = 64;

/// Returns the length of a file that could be a store.
pub(super) fn store_file_length(path: &Path) -> Result<u64, StoreError> {
    match path.symlink_metadata() {
        // SQLite would look for the log beside the target of the link.
        Ok(found) if found.is_symlink() => Err(StoreError::Linked(path.to_owned())),
        // SQLite would take a file that is shorter than any database for an empty one.
        Ok(found) if found.is_file() && !(1..512).contains(&found.len()) => Ok(found.len()),
        Ok(_) => Err(StoreError::NotAStore(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::Missing(path.to_owned())),
        Err(error) => Err(StoreError::from_io_error(path, error)),
    }
}

/// Refuses links and irregular files in the place of SQLite's own files, which it would follow or wait for without end, and every
/// rollback journal. A store never has one, and SQLite would write its pages into the store, and remove a file that it names.
fn check_companion_files(path: &Path) -> Result<(), StoreError> {
    for end in [wal::LOG_SUFFIX, wal::INDEX_SUFFIX, wal::JOURNAL_SUFFIX] {
        let beside = wal::companion_path(path, end);
        match beside.symlink_metadata() {
            Ok(found) if found.is_symlink() => return Err(StoreError::Linked(beside)),
            Ok(found) if !found.is_file() => return Err(StoreError::NoFile(beside)),
            Ok(_) if end == wal::JOURNAL_SUFFIX => return Err(StoreError::StrayJournal(beside)),
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn wal_length(path: &Path) -> u64 {
    wal::wal_path(path).metadata().map_or(0, |found| found.len())
}

pub(super) fn open_connection(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    check_companion_files(path)?;
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    connection.and_then(configure_connection).map_err(|source| StoreError::from_sqlite_error(path, source))
}

/// Opens a file that no process can be writing to, without locks and without the files beside it.
pub(super) fn open_immutable_connection(path: &Path) -> Result<Connection, StoreError> {
    let absolute = std::path::absolute(path).map_err(|error| StoreError::from_io_error(path, error))?;
    let mut name = "file://".to_owned();
    for byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => name.push(char::from(*byte)),
            byte => write!(name, "%{byte:02x}").expect("a string takes everything"),
        }
    }
    name.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(name, flags);
    connection.and_then(configure_connection).map_err(|source| StoreError::from_sqlite_error(path, source))
}

fn configure_connection(mut connection: Connection) -> rusqlite::Result<Connection> {
    // A store may come from elsewhere: nothing in its schema runs, and no statement reaches SQLite's own tables.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_handler(Some(random_wait_handler(Duration::from_secs(WRITE_TIMEOUT_SECONDS))))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    Ok(connection)
}

/// Returns a busy handler that waits for the write lock. Short waits of random length are fair: the longest waiter has had the most
/// chances, while waits that grow with every try would favour newcomers.
pub(super) fn random_wait_handler(patience: Duration) -> impl FnMut(i32) -> bool + Send {
    let mut began = Instant::now();
    // One seed per connection: two with the same sequence would collide again and again.
    let mut random = RandomState::new().hash_one(()) | 1;
    move |tries| {
        if tries == 0 {
            began = Instant::now();
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        thread::sleep(Duration::from_micros(50 + random % 400));
        began.elapsed() < patience
    }
}
