//! The store that everybody has: one SQLite file.
//!
//! Invariants:
//! - WAL with `synchronous=FULL`: a commit is on the disk before it is acknowledged.
//! - Events and the rows folded from them are written in one transaction.
//! - A transaction is short: nothing outside the rules runs while it is open.
//!
//! The write-ahead log is kept between commands instead of being folded back at every close, and it is grown once when
//! the store is made: syncing a file that does not grow costs half.

mod follow;
mod inspect;
mod queries;
mod rows;
mod schema;
mod transaction;

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use windlass_engine::{Command, Origin, Record, Rules, Seq, View};

use crate::error::PATIENCE_SECONDS;
use crate::{Appended, Commit, ExecuteError, Filter, Store, StoreError};

pub use inspect::{Found, Mismatch, Report, Salvage};
pub use queries::TaskFilter;
pub use rows::Snapshot;
pub use transaction::Transaction;

/// How long the process means to use the store: it says how often the write-ahead log is folded back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// One command. The next one has to read what is left of the write-ahead log, so that stays short.
    Command,
    /// A runner or a server. Folding back rarely makes commits cheaper.
    Service,
}

impl Lifetime {
    /// Pages in the write-ahead log at which a commit folds it back.
    fn checkpoint_pages(self) -> u32 {
        match self {
            Self::Command => 64,
            Self::Service => 1000,
        }
    }
}

/// An open store.
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    read_only: bool,
}

impl Sqlite {
    /// Makes a store where there is none, or opens the one that is there.
    pub fn create(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        Self::open_with(path, lifetime, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a store that exists.
    pub fn open(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        match path.metadata() {
            Ok(found) if found.is_file() => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(StoreError::io(path, error)),
            Ok(_) => return Err(StoreError::NotAStore(path.to_owned())),
            Err(_) => return Err(StoreError::Missing(path.to_owned())),
        }
        match Self::open_with(path, lifetime, OpenFlags::empty()) {
            Err(StoreError::ReadOnly(_) | StoreError::Open { .. }) => Self::open_to_read(path),
            opened => opened,
        }
    }

    fn open_with(path: &Path, lifetime: Lifetime, flags: OpenFlags) -> Result<Self, StoreError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(path, flags)?;
        let mut store = Self { connection, path: path.to_owned(), read_only: false };
        schema::prepare(&mut store)?;
        let pages = lifetime.checkpoint_pages();
        store.sql(|connection| connection.pragma_update(None, "wal_autocheckpoint", pages))?;
        Ok(store)
    }

    /// A store on a disk that cannot be written to can still be read.
    fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        let store = Self { connection, path: path.to_owned(), read_only: true };
        schema::check(&store)?;
        Ok(store)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present state, with the questions that only people ask.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        Snapshot::begin(self)
    }

    /// Runs several commands in one durable step.
    pub fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.read_only {
            return Err(StoreError::ReadOnly(self.path.clone()));
        }
        let mut transaction = Transaction::begin(self)?;
        let result = work(&mut transaction)?;
        let wrote = transaction.wrote();
        transaction.commit()?;
        if wrote {
            follow::wake(&self.path);
        }
        Ok(result)
    }

    /// Runs a statement, and names what goes wrong with it.
    fn sql<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        run(&self.connection).map_err(|error| StoreError::sqlite(&self.path, error))
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let fail = |source| StoreError::sqlite(path, source);
    let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
    connection.busy_handler(Some(turns())).map_err(fail)?;
    Ok(connection)
}

/// Waits for the writer's turn. Short waits of random length are fair: whoever waits longest has had the most chances,
/// while waits that grow with every try would favour newcomers.
fn turns() -> impl FnMut(i32) -> bool + Send {
    let mut began = Instant::now();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(std::process::id());
    move |tries| {
        if tries == 0 {
            began = Instant::now();
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        thread::sleep(Duration::from_micros(50 + random % 400));
        began.elapsed() < Duration::from_secs(PATIENCE_SECONDS)
    }
}

impl Store for Sqlite {
    fn append(&mut self, commit: &Commit) -> Result<Appended, StoreError> {
        let outcome = self.transact(|transaction| transaction.append(commit));
        match outcome {
            // The sync itself failed: what is on the disk is known only after looking again.
            Err(StoreError::Sqlite { source, .. })
                if source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) =>
            {
                Ok(Appended::Unknown)
            }
            outcome => outcome,
        }
    }

    fn read(&self, filter: &Filter, after: Seq, most: usize) -> Result<Vec<Record>, StoreError> {
        queries::events(self, filter, after, most)
    }

    fn wait(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        follow::wait(self, after, patience)
    }

    fn view(&self) -> Result<Box<dyn View + '_>, StoreError> {
        Ok(Box::new(self.snapshot()?))
    }

    /// Decides inside the write transaction: nobody can come in between, so nothing has to be checked or repeated.
    fn execute(
        &mut self,
        rules: &Rules,
        origin: &Origin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<Record>, ExecuteError> {
        self.transact(|transaction| match transaction.execute(rules, origin, command, nonce) {
            Err(ExecuteError::Store(error)) => Err(error),
            answer => Ok(answer),
        })?
    }
}
