//! The default store: one SQLite file.
//!
//! Invariants:
//! - WAL with `synchronous=FULL`: a commit is on the disk before it is acknowledged.
//! - Events and the rows folded from them are written in one transaction.
//! - A transaction is short: nothing outside the rules runs while it is open.
//!
//! The write-ahead log is kept between commands instead of being checkpointed at every close, and it is grown once when
//! the store is made: syncing a file that does not grow costs half.

mod backup;
mod commit_watch;
mod connection;
mod foreign_survey;
mod inspect;
mod log_connection;
mod queries;
mod rebuild;
mod replica;
mod rows;
mod salvage;
mod schema;
mod scopes;
mod transaction;
mod upload;
mod wal;

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use windlass_engine::{Command, CommandOrigin, EngineRules, EventRecord, Seq, StateView};

use crate::error::WRITE_TIMEOUT_SECONDS;
use crate::{AppendOutcome, EventFilter, ExecuteError, Store, StoreCommit, StoreError, decide_and_append, failpoint};

pub use backup::rename_new;
use connection::{open_connection, open_immutable_connection, random_wait_handler, store_file_length, wal_length};
pub use foreign_survey::StoreSurvey;
pub use inspect::{EventProblem, RowMismatch, StoreReport};
pub use queries::TaskFilter;
pub use rows::StoreSnapshot;
pub use salvage::SalvageReport;
pub use transaction::StoreTransaction;
pub use upload::RepairReport;
pub use wal::wal_path as log_path;

/// How long the process will use the store, which determines how often it checkpoints the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// One command. The next one has to read the rest of the write-ahead log, so that stays short.
    Command,
    /// A runner or a server. Rare checkpoints make commits cheaper.
    Service,
}

/// Pages in the write-ahead log at which a command checkpoints it before it writes.
const COMMAND_CHECKPOINT_PAGES: u64 = 64;
/// Pages at which a service checkpoints it after it wrote.
const SERVICE_CHECKPOINT_PAGES: u32 = 250;

/// The policy for a file that is no store yet.
enum IfMissing<'a> {
    /// Makes one, and calls this once its files exist and before the tables are written.
    Make(&'a mut dyn FnMut() -> io::Result<()>),
    Refuse,
}

/// The permitted access to an open store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreAccess {
    Write,
    Read,
    /// Read-only, because this machine did not make the store.
    Foreign,
}

/// Returns whether a store of this identity is known; a store without events has none.
type IdentityCheck<'a> = &'a dyn Fn(Option<&str>) -> bool;

/// An open store.
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    access: StoreAccess,
    /// Whether the next commit checkpoints the write-ahead log first.
    is_log_long: Cell<bool>,
    /// Watches for commits, from the first wait on.
    commit_watch: OnceCell<commit_watch::CommitWatch>,
    /// Number of open read transactions. They share one moment: a connection can be at one moment only.
    readers: Cell<u32>,
    /// The files as they were last seen, whatever their names are now.
    files: Cell<StoreFiles>,
    /// The fleet's log, if the store is a copy of it and a caller has connected it.
    log: Option<RefCell<log_connection::LogConnection>>,
}

/// The files of a store, as far as they exist.
#[derive(Clone, Copy, Default)]
struct StoreFiles {
    store: Option<FileIdentity>,
    log: Option<FileIdentity>,
    /// The shared index: the locks of the processes that have the store open, and the end of the log.
    index: Option<FileIdentity>,
}

impl StoreFiles {
    fn read_identities(path: &Path) -> Self {
        let beside = |end| FileIdentity::read_identity(&wal::companion_path(path, end));
        Self {
            store: FileIdentity::read_identity(path),
            log: beside(wal::LOG_SUFFIX),
            index: beside(wal::INDEX_SUFFIX),
        }
    }

    /// Returns whether these are the same files as `now`, and the store file was not cut.
    fn are_same_files(&self, now: &Self) -> bool {
        let same = |known: Option<FileIdentity>, now| known.is_none_or(|known| known.is_same_file(now));
        same(self.store, now.store)
            && same(self.log, now.log)
            && same(self.index, now.index)
            && !is_file_shorter(now.store, self.store)
    }
}

/// Returns whether a file is shorter than before.
fn is_file_shorter(now: Option<FileIdentity>, before: Option<FileIdentity>) -> bool {
    before.zip(now).is_some_and(|(before, now)| now.length < before.length)
}

/// The identity of a file, apart from its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    length: u64,
}

impl FileIdentity {
    /// Reads the identity of a file. A link has none.
    fn read_identity(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        Some(Self { device: found.dev(), inode: found.ino(), length: found.len() })
    }

    /// Returns whether `now` is the same file.
    fn is_same_file(self, now: Option<Self>) -> bool {
        now.is_some_and(|now| (now.device, now.inode) == (self.device, self.inode))
    }
}

/// Syncs the parent of the store's directory. SQLite makes the name of the store durable, but not the name of its directory, which
/// may be as new.
fn sync_directory_name(path: &Path) {
    let above = path.canonicalize().ok().and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    // Best effort: a process that may not read that directory has not made this one.
    #[expect(clippy::disallowed_methods, reason = "a directory is opened, to be synced")]
    let _ = above.and_then(|above| std::fs::File::open(above).ok()).map(|above| above.sync_all());
}

/// Limit for attempts at a commit whose outcome the disk does not report.
const MAX_COMMIT_ATTEMPTS: u32 = 3;

impl SqliteStore {
    /// Makes a store if there is none, or opens the existing one.
    pub fn create(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        Self::create_with_record(path, lifetime, || Ok(()))
    }

    /// Does the same for a caller that records the files that it makes: `record` is called when they exist, and before the tables are
    /// written.
    pub fn create_with_record(
        path: &Path,
        lifetime: Lifetime,
        mut record: impl FnMut() -> io::Result<()>,
    ) -> Result<Self, StoreError> {
        match store_file_length(path) {
            // SQLite would discard the write-ahead log, which may hold the only copy of commits.
            Ok(0) if wal_length(path) > 0 => Err(StoreError::NotAStore(path.to_owned())),
            Ok(_) | Err(StoreError::Missing(_)) => {
                let store = Self::open_with_best_access(path, lifetime, IfMissing::Make(&mut record), None)?;
                sync_directory_name(path);
                Ok(store)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether there is no store, or only the start of one whose maker was killed.
    pub fn is_missing_or_blank(path: &Path) -> bool {
        match store_file_length(path) {
            Err(StoreError::Missing(_)) => true,
            Ok(0) => wal_length(path) == 0,
            Ok(_) => open_connection(path, OpenFlags::SQLITE_OPEN_READ_ONLY).is_ok_and(|connection| {
                let store = Self::new(connection, path, StoreAccess::Read);
                // Commits in the log must be kept.
                schema::is_blank(&store).unwrap_or(false) && matches!(store.count_log_frames(), Ok(0))
            }),
            Err(_) => false,
        }
    }

    /// Opens a store that exists.
    pub fn open(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        Self::open_existing(path, lifetime, None)
    }

    /// Does the same, if `knows` accepts its identity. Any other store is [`StoreError::Foreign`].
    pub fn open_if_known(
        path: &Path,
        lifetime: Lifetime,
        knows: impl Fn(Option<&str>) -> bool,
    ) -> Result<Self, StoreError> {
        Self::open_existing(path, lifetime, Some(&knows))
    }

    fn open_existing(path: &Path, lifetime: Lifetime, knows: Option<IdentityCheck<'_>>) -> Result<Self, StoreError> {
        if store_file_length(path)? == 0 {
            // Not even SQLite may touch it: it would discard a write-ahead log beside an empty file.
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        Self::open_with_best_access(path, lifetime, IfMissing::Refuse, knows)
    }

    /// Opens a store that this machine did not make. It can be read; every write fails with [`StoreError::Foreign`].
    pub fn open_foreign(path: &Path) -> Result<Self, StoreError> {
        if store_file_length(path)? == 0 {
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        match Self::open_read_only(path, StoreAccess::Foreign, |store| {
            schema::check_schema(store, &schema::CURRENT_SCHEMA)
        }) {
            // A store of an older schema would need a migration.
            Err(StoreError::ReadOnly(path)) => Err(StoreError::Foreign(path)),
            opened => opened,
        }
    }

    /// Opens a file for writing if that is possible, for reading otherwise.
    fn open_with_best_access(
        path: &Path,
        lifetime: Lifetime,
        absent: IfMissing<'_>,
        knows: Option<IdentityCheck<'_>>,
    ) -> Result<Self, StoreError> {
        match Self::open_for_writing(path, lifetime, absent, knows) {
            Err(StoreError::ReadOnly(_) | StoreError::Open { .. }) if store_file_length(path).is_ok() => {
                Self::open_for_reading(path)
            }
            opened => opened,
        }
    }

    fn open_for_writing(
        path: &Path,
        lifetime: Lifetime,
        mut absent: IfMissing<'_>,
        knows: Option<IdentityCheck<'_>>,
    ) -> Result<Self, StoreError> {
        let create = match absent {
            IfMissing::Make(_) => OpenFlags::SQLITE_OPEN_CREATE,
            IfMissing::Refuse => OpenFlags::empty(),
        };
        let mut store =
            Self::new(open_connection(path, OpenFlags::SQLITE_OPEN_READ_WRITE | create)?, path, StoreAccess::Write);
        // SQLite calls no busy handler when it turns the write-ahead log on.
        let mut may_wait = random_wait_handler(Duration::from_secs(WRITE_TIMEOUT_SECONDS));
        loop {
            let known = store.check_identity(knows);
            match known.and_then(|()| schema::prepare_schema(&mut store, &schema::CURRENT_SCHEMA, &mut absent)) {
                Err(StoreError::Busy { .. }) if may_wait(1) => {}
                prepared => break prepared?,
            }
        }
        store.run_sql(|connection| {
            // Set explicitly: a linked library may have been built with weaker defaults.
            let synchronous = if failpoint::pass("store.full").is_ok() { "full" } else { "normal" };
            connection.pragma_update(None, "synchronous", synchronous)?;
            if cfg!(target_os = "macos") {
                connection.pragma_update(None, "fullfsync", true)?;
            }
            let pages = if lifetime == Lifetime::Service { SERVICE_CHECKPOINT_PAGES } else { 0 };
            connection.pragma_update(None, "wal_autocheckpoint", pages)
        })?;
        store.check_lost_commits()?;
        store.files.set(StoreFiles::read_identities(path));
        store.is_log_long.set(lifetime == Lifetime::Command && store.count_log_frames()? >= COMMAND_CHECKPOINT_PAGES);
        Ok(store)
    }

    /// Opens a store on a disk that cannot be written to.
    fn open_for_reading(path: &Path) -> Result<Self, StoreError> {
        Self::open_read_only(path, StoreAccess::Read, |store| schema::check_schema(store, &schema::CURRENT_SCHEMA))
    }

    /// Opens a file read-only, if it passes `check`.
    fn open_read_only(
        path: &Path,
        access: StoreAccess,
        check: impl Fn(&Self) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let checked = |connection| {
            let store = Self::new(connection, path, access);
            check(&store).map(|()| store)
        };
        match open_connection(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(checked) {
            // Without a write-ahead log all data is in the file, and no process is changing it.
            Err(StoreError::Open { .. } | StoreError::ReadOnly(_)) if wal_length(path) == 0 => {
                open_immutable_connection(path).and_then(checked)
            }
            opened => opened,
        }
    }

    fn new(connection: Connection, path: &Path, access: StoreAccess) -> Self {
        let is_log_long = Cell::new(false);
        let (commit_watch, readers) = (OnceCell::new(), Cell::new(0));
        let files = Cell::new(StoreFiles { store: FileIdentity::read_identity(path), ..StoreFiles::default() });
        Self { connection, path: path.to_owned(), access, is_log_long, commit_watch, readers, files, log: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the position of the last event.
    pub fn head(&self) -> Result<Seq, StoreError> {
        queries::read_head(self)
    }

    /// Reads the events before a position, or the last ones, that match the filter: newest first, at most `most`.
    pub fn read_events_back(
        &self,
        filter: &EventFilter,
        before: Option<Seq>,
        most: usize,
    ) -> Result<Vec<EventRecord>, StoreError> {
        queries::read_events_back(self, filter, before, most)
    }

    /// Returns the event at a position, if there is one.
    pub fn read_event(&self, at: Seq) -> Result<Option<EventRecord>, StoreError> {
        queries::read_event_at(self, at)
    }

    /// Returns the present state, with further queries for users.
    pub fn begin_snapshot(&self) -> Result<StoreSnapshot<'_>, StoreError> {
        StoreSnapshot::begin(self)
    }

    /// Runs several commands in one durable step.
    pub fn run_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut StoreTransaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_access()?;
        self.check_files()?;
        self.checkpoint_if_long()?;
        let mut transaction = StoreTransaction::begin(self)?;
        // The files may have changed during the wait for the write lock.
        if self.unchanged_files().is_none() {
            drop(transaction);
            return Err(self.replaced_error());
        }
        let result = work(&mut transaction)?;
        let wrote = transaction.has_written();
        transaction.commit()?;
        if wrote {
            self.finish_write()?;
        }
        Ok(result)
    }

    /// Checks that a commit went to the files that were opened, and notifies other processes of it.
    fn finish_write(&self) -> Result<(), StoreError> {
        self.files.set(self.unchanged_files().ok_or_else(|| self.replaced_error())?);
        commit_watch::notify_waiters(&self.path);
        Ok(())
    }

    /// Refuses writes to a read-only store.
    fn check_access(&self) -> Result<(), StoreError> {
        match self.access {
            StoreAccess::Write => Ok(()),
            StoreAccess::Read => Err(StoreError::ReadOnly(self.path.clone())),
            StoreAccess::Foreign => Err(StoreError::Foreign(self.path.clone())),
        }
    }

    /// Refuses writes that would be lost: the files are no longer those that were opened, or one was cut.
    fn check_files(&self) -> Result<(), StoreError> {
        let now = self.unchanged_files().ok_or_else(|| self.replaced_error())?;
        // A process that has checkpointed all of the log may empty it: then SQLite takes no frame of it.
        if is_file_shorter(now.log, self.files.get().log) && self.count_log_frames()? > 0 {
            return Err(self.replaced_error());
        }
        self.files.set(now);
        Ok(())
    }

    /// Returns the present files, if they are those that were opened.
    fn unchanged_files(&self) -> Option<StoreFiles> {
        let now = StoreFiles::read_identities(&self.path);
        self.files.get().are_same_files(&now).then_some(now)
    }

    /// Returns the error for changed files. A log that was only removed is still open here: a checkpoint saves its commits.
    fn replaced_error(&self) -> StoreError {
        let (store, now) = (self.files.get().store, StoreFiles::read_identities(&self.path));
        if now.log.is_none() && (StoreFiles { store, ..StoreFiles::default() }).are_same_files(&now) {
            let _ = self.checkpoint_log();
        }
        StoreError::Replaced(self.path.clone())
    }

    /// Checkpoints the write-ahead log. Only a later commit of the same process starts it anew: the progress of the checkpoint is
    /// forgotten with the last process that had the store open.
    fn checkpoint_if_long(&self) -> Result<(), StoreError> {
        if self.is_log_long.take() { self.checkpoint_log() } else { Ok(()) }
    }

    fn checkpoint_log(&self) -> Result<(), StoreError> {
        self.run_sql(|connection| connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
    }

    /// Returns how many frames of the write-ahead log SQLite takes.
    fn count_log_frames(&self) -> Result<u64, StoreError> {
        let frames = |connection: &Connection| {
            connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| row.get::<_, i64>(1))
        };
        Ok(u64::try_from(self.run_sql(frames)?).unwrap_or(0))
    }

    /// Refuses a store whose write-ahead log has lost acknowledged commits, before a write destroys the evidence.
    fn check_lost_commits(&self) -> Result<(), StoreError> {
        let suspicious = |store: &Self| {
            let frames = store.count_log_frames()?;
            wal::has_lost_commits(&self.path, frames).map_err(|error| StoreError::from_io_error(&self.path, error))
        };
        if !suspicious(self)? {
            return Ok(());
        }
        // Other processes may have written between the two checks. While this transaction is open, they cannot; and meanwhile SQLite
        // returns the length of the log only to another connection.
        let other =
            Self::new(open_connection(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, &self.path, StoreAccess::Write);
        schema::run_in_transaction(self, |_| match suspicious(&other)? {
            true => Err(StoreError::LostCommits { path: self.path.clone(), last: queries::read_head(self)? }),
            false => Ok(()),
        })
    }

    /// Does the same as [`Self::run_transaction`], and checks again if the disk does not report the outcome. Commands that became durable in an
    /// earlier attempt count as they are.
    pub(crate) fn run_transaction_until_known<T>(
        &mut self,
        mut work: impl FnMut(&mut StoreTransaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tried_after = None;
        let mut outcome = Err(StoreError::OutcomeUnknown { source: None });
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            outcome = self.run_transaction(|transaction| {
                transaction.check_earlier_attempt(tried_after);
                tried_after = tried_after.or(Some(transaction.head()));
                work(transaction)
            });
            if !matches!(outcome, Err(StoreError::OutcomeUnknown { .. })) {
                break;
            }
        }
        outcome
    }

    /// Runs a statement, and maps its error.
    fn run_sql<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        run(&self.connection).map_err(|error| StoreError::from_sqlite_error(&self.path, error))
    }
}

impl Store for SqliteStore {
    fn append_commit(&mut self, commit: &StoreCommit) -> Result<AppendOutcome, StoreError> {
        if self.log.is_some() {
            return self.publish_commit(commit);
        }
        match self.run_transaction(|transaction| transaction.append_commit(commit)) {
            Err(StoreError::OutcomeUnknown { .. }) => Ok(AppendOutcome::Unknown),
            outcome => outcome,
        }
    }

    fn read_events(&self, filter: &EventFilter, after: Seq, most: usize) -> Result<Vec<EventRecord>, StoreError> {
        queries::read_filtered_events(self, filter, after, most)
    }

    fn wait_for_events(&self, after: Seq, patience: Duration) -> Result<(), StoreError> {
        match self.log {
            Some(_) => self.wait_for_messages(after, patience),
            None => commit_watch::wait_for_commit(self, after, patience),
        }
    }

    fn open_view(&self) -> Result<Box<dyn StateView + '_>, StoreError> {
        Ok(Box::new(self.begin_snapshot()?))
    }

    /// Decides inside the write transaction: no other commit can come in between, so nothing has to be checked or repeated.
    fn execute_command(
        &mut self,
        rules: &EngineRules,
        origin: &CommandOrigin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<EventRecord>, ExecuteError> {
        if self.log.is_some() {
            self.refresh_patiently()?;
            return decide_and_append(self, rules, origin, command, nonce);
        }
        self.run_transaction_until_known(|transaction| {
            match transaction.execute_command(rules, origin, command, nonce) {
                Err(ExecuteError::Store(error)) => Err(error),
                answer => Ok(answer),
            }
        })?
    }
}

#[cfg(test)]
mod tests;
