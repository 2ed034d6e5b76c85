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
mod connection;
mod follow;
mod inspect;
mod queries;
mod rebuild;
mod rows;
mod salvage;
mod schema;
mod survey;
mod transaction;
mod wal;

use std::cell::{Cell, OnceCell};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use windlass_engine::{Command, Origin, Record, Rules, Seq, View};

use crate::error::PATIENCE_SECONDS;
use crate::{Appended, Commit, ExecuteError, Filter, Store, StoreError, failpoint};

pub use backup::rename_new;
use connection::{connect, connect_unchanging, file_length, turns, wal_length};
pub use inspect::{Found, Mismatch, Report};
pub use queries::TaskFilter;
pub use rows::Snapshot;
pub use salvage::Salvage;
pub use survey::StoreSurvey;
pub use transaction::Transaction;
pub use wal::path_of as log_path;

/// How long the process will use the store, which determines how often it checkpoints the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// One command. The next one has to read the rest of the write-ahead log, so that stays short.
    Command,
    /// A runner or a server. Rare checkpoints make commits cheaper.
    Service,
}

/// Pages in the write-ahead log at which a command checkpoints it before it writes.
const LONG_FOR_A_COMMAND: u64 = 64;
/// Pages at which a service checkpoints it after it wrote.
const LONG_FOR_A_SERVICE: u32 = 250;

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
type Knows<'a> = &'a dyn Fn(Option<&str>) -> bool;

/// An open store.
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    access: StoreAccess,
    /// Whether the next commit checkpoints the write-ahead log first.
    long_log: Cell<bool>,
    /// Watches for commits, from the first wait on.
    bell: OnceCell<follow::Bell>,
    /// Number of open read transactions. They share one moment: a connection can be at one moment only.
    readers: Cell<u32>,
    /// The files as they were last seen, whatever their names are now.
    files: Cell<Files>,
}

/// The files of a store, as far as they exist.
#[derive(Clone, Copy, Default)]
struct Files {
    store: Option<Identity>,
    log: Option<Identity>,
    /// The shared index: the locks of the processes that have the store open, and the end of the log.
    index: Option<Identity>,
}

impl Files {
    fn of(path: &Path) -> Self {
        let beside = |end| Identity::of(&wal::beside(path, end));
        Self { store: Identity::of(path), log: beside(wal::LOG), index: beside(wal::INDEX) }
    }

    /// Returns whether these are the same files as `now`, and the store file was not cut.
    fn are_still(&self, now: &Self) -> bool {
        let same = |known: Option<Identity>, now| known.is_none_or(|known| known.is_still(now));
        same(self.store, now.store)
            && same(self.log, now.log)
            && same(self.index, now.index)
            && !is_shorter(now.store, self.store)
    }
}

/// Returns whether a file is shorter than before.
fn is_shorter(now: Option<Identity>, before: Option<Identity>) -> bool {
    before.zip(now).is_some_and(|(before, now)| now.length < before.length)
}

/// The identity of a file, apart from its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
}

impl Identity {
    /// Reads the identity of a file. A link has none.
    fn of(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        Some(Self { device: found.dev(), inode: found.ino(), length: found.len() })
    }

    /// Returns whether `now` is the same file.
    fn is_still(self, now: Option<Self>) -> bool {
        now.is_some_and(|now| (now.device, now.inode) == (self.device, self.inode))
    }
}

/// Syncs the parent of the store's directory. SQLite makes the name of the store durable, but not the name of its directory, which
/// may be as new.
fn keep_directory(path: &Path) {
    let above = path.canonicalize().ok().and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    // Best effort: a process that may not read that directory has not made this one.
    #[expect(clippy::disallowed_methods, reason = "a directory is opened, to be synced")]
    let _ = above.and_then(|above| std::fs::File::open(above).ok()).map(|above| above.sync_all());
}

/// Limit for attempts at a commit whose outcome the disk does not report.
const ATTEMPTS: u32 = 3;

impl Sqlite {
    /// Makes a store if there is none, or opens the existing one.
    pub fn create(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        Self::create_recorded(path, lifetime, || Ok(()))
    }

    /// Does the same for a caller that records the files that it makes: `record` is called when they exist, and before the tables are
    /// written.
    pub fn create_recorded(
        path: &Path,
        lifetime: Lifetime,
        mut record: impl FnMut() -> io::Result<()>,
    ) -> Result<Self, StoreError> {
        match file_length(path) {
            // SQLite would discard the write-ahead log, which may hold the only copy of commits.
            Ok(0) if wal_length(path) > 0 => Err(StoreError::NotAStore(path.to_owned())),
            Ok(_) | Err(StoreError::Missing(_)) => {
                let store = Self::open_if(path, lifetime, IfMissing::Make(&mut record), None)?;
                keep_directory(path);
                Ok(store)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether there is no store, or only the start of one whose maker was killed.
    pub fn is_unmade(path: &Path) -> bool {
        match file_length(path) {
            Err(StoreError::Missing(_)) => true,
            Ok(0) => wal_length(path) == 0,
            Ok(_) => connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).is_ok_and(|connection| {
                let store = Self::new(connection, path, StoreAccess::Read);
                // Commits in the log must be kept.
                schema::is_blank(&store).unwrap_or(false) && matches!(store.log_frames(), Ok(0))
            }),
            Err(_) => false,
        }
    }

    /// Opens a store that exists.
    pub fn open(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        Self::open_existing(path, lifetime, None)
    }

    /// Does the same, if `knows` accepts its identity. Any other store is [`StoreError::Foreign`].
    pub fn open_known(
        path: &Path,
        lifetime: Lifetime,
        knows: impl Fn(Option<&str>) -> bool,
    ) -> Result<Self, StoreError> {
        Self::open_existing(path, lifetime, Some(&knows))
    }

    fn open_existing(path: &Path, lifetime: Lifetime, knows: Option<Knows<'_>>) -> Result<Self, StoreError> {
        if file_length(path)? == 0 {
            // Not even SQLite may touch it: it would discard a write-ahead log beside an empty file.
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        Self::open_if(path, lifetime, IfMissing::Refuse, knows)
    }

    /// Opens a store that this machine did not make. It can be read; every write fails with [`StoreError::Foreign`].
    pub fn open_foreign(path: &Path) -> Result<Self, StoreError> {
        if file_length(path)? == 0 {
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        match Self::read_only(path, StoreAccess::Foreign, |store| schema::check(store, &schema::PRESENT)) {
            // A store of an older schema would need a migration.
            Err(StoreError::ReadOnly(path)) => Err(StoreError::Foreign(path)),
            opened => opened,
        }
    }

    /// Opens a file for writing if that is possible, for reading otherwise.
    fn open_if(
        path: &Path,
        lifetime: Lifetime,
        absent: IfMissing<'_>,
        knows: Option<Knows<'_>>,
    ) -> Result<Self, StoreError> {
        match Self::open_to_write(path, lifetime, absent, knows) {
            Err(StoreError::ReadOnly(_) | StoreError::Open { .. }) if file_length(path).is_ok() => {
                Self::open_to_read(path)
            }
            opened => opened,
        }
    }

    fn open_to_write(
        path: &Path,
        lifetime: Lifetime,
        mut absent: IfMissing<'_>,
        knows: Option<Knows<'_>>,
    ) -> Result<Self, StoreError> {
        let create = match absent {
            IfMissing::Make(_) => OpenFlags::SQLITE_OPEN_CREATE,
            IfMissing::Refuse => OpenFlags::empty(),
        };
        let mut store = Self::new(connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | create)?, path, StoreAccess::Write);
        // SQLite calls no busy handler when it turns the write-ahead log on.
        let mut may_wait = turns(Duration::from_secs(PATIENCE_SECONDS));
        loop {
            let known = store.check_identity(knows);
            match known.and_then(|()| schema::prepare(&mut store, &schema::PRESENT, &mut absent)) {
                Err(StoreError::Busy { .. }) if may_wait(1) => {}
                prepared => break prepared?,
            }
        }
        store.sql(|connection| {
            // Set explicitly: a linked library may have been built with weaker defaults.
            let synchronous = if failpoint::pass("store.full").is_ok() { "full" } else { "normal" };
            connection.pragma_update(None, "synchronous", synchronous)?;
            if cfg!(target_os = "macos") {
                connection.pragma_update(None, "fullfsync", true)?;
            }
            let pages = if lifetime == Lifetime::Service { LONG_FOR_A_SERVICE } else { 0 };
            connection.pragma_update(None, "wal_autocheckpoint", pages)
        })?;
        store.look_for_lost_commits()?;
        store.files.set(Files::of(path));
        store.long_log.set(lifetime == Lifetime::Command && store.log_frames()? >= LONG_FOR_A_COMMAND);
        Ok(store)
    }

    /// Opens a store on a disk that cannot be written to.
    fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        Self::read_only(path, StoreAccess::Read, |store| schema::check(store, &schema::PRESENT))
    }

    /// Opens a file read-only, if it passes `check`.
    fn read_only(
        path: &Path,
        access: StoreAccess,
        check: impl Fn(&Self) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let checked = |connection| {
            let store = Self::new(connection, path, access);
            check(&store).map(|()| store)
        };
        match connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(checked) {
            // Without a write-ahead log all data is in the file, and no process is changing it.
            Err(StoreError::Open { .. } | StoreError::ReadOnly(_)) if wal_length(path) == 0 => {
                connect_unchanging(path).and_then(checked)
            }
            opened => opened,
        }
    }

    fn new(connection: Connection, path: &Path, access: StoreAccess) -> Self {
        let long_log = Cell::new(false);
        let (bell, readers) = (OnceCell::new(), Cell::new(0));
        let files = Cell::new(Files { store: Identity::of(path), ..Files::default() });
        Self { connection, path: path.to_owned(), access, long_log, bell, readers, files }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the position of the last event.
    pub fn head(&self) -> Result<Seq, StoreError> {
        queries::head(self)
    }

    /// Reads the events before a position, or the last ones, that match the filter: newest first, at most `most`.
    pub fn read_back(&self, filter: &Filter, before: Option<Seq>, most: usize) -> Result<Vec<Record>, StoreError> {
        queries::events_back(self, filter, before, most)
    }

    /// Returns the event at a position, if there is one.
    pub fn event(&self, at: Seq) -> Result<Option<Record>, StoreError> {
        queries::event(self, at)
    }

    /// Returns the present state, with further queries for users.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        Snapshot::begin(self)
    }

    /// Runs several commands in one durable step.
    pub fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_access()?;
        self.check_files()?;
        self.fold_back_if_long()?;
        let mut transaction = Transaction::begin(self)?;
        // The files may have changed during the wait for the write lock.
        if self.own_files().is_none() {
            drop(transaction);
            return Err(self.replaced());
        }
        let result = work(&mut transaction)?;
        let wrote = transaction.wrote();
        transaction.commit()?;
        if wrote {
            self.files.set(self.own_files().ok_or_else(|| self.replaced())?);
            follow::wake(&self.path);
        }
        Ok(result)
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
        let now = self.own_files().ok_or_else(|| self.replaced())?;
        // A process that has checkpointed all of the log may empty it: then SQLite takes no frame of it.
        if is_shorter(now.log, self.files.get().log) && self.log_frames()? > 0 {
            return Err(self.replaced());
        }
        self.files.set(now);
        Ok(())
    }

    /// Returns the present files, if they are those that were opened.
    fn own_files(&self) -> Option<Files> {
        let now = Files::of(&self.path);
        self.files.get().are_still(&now).then_some(now)
    }

    /// Returns the error for changed files. A log that was only removed is still open here: a checkpoint saves its commits.
    fn replaced(&self) -> StoreError {
        let (store, now) = (self.files.get().store, Files::of(&self.path));
        if now.log.is_none() && (Files { store, ..Files::default() }).are_still(&now) {
            let _ = self.fold_back();
        }
        StoreError::Replaced(self.path.clone())
    }

    /// Checkpoints the write-ahead log. Only a later commit of the same process starts it anew: the progress of the checkpoint is
    /// forgotten with the last process that had the store open.
    fn fold_back_if_long(&self) -> Result<(), StoreError> {
        if self.long_log.take() { self.fold_back() } else { Ok(()) }
    }

    fn fold_back(&self) -> Result<(), StoreError> {
        self.sql(|connection| connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
    }

    /// Returns how many frames of the write-ahead log SQLite takes.
    fn log_frames(&self) -> Result<u64, StoreError> {
        let frames = |connection: &Connection| {
            connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| row.get::<_, i64>(1))
        };
        Ok(u64::try_from(self.sql(frames)?).unwrap_or(0))
    }

    /// Refuses a store whose write-ahead log has lost acknowledged commits, before a write destroys the evidence.
    fn look_for_lost_commits(&self) -> Result<(), StoreError> {
        let suspicious = |store: &Self| {
            let frames = store.log_frames()?;
            wal::has_lost_commits(&self.path, frames).map_err(|error| StoreError::io(&self.path, error))
        };
        if !suspicious(self)? {
            return Ok(());
        }
        // Other processes may have written between the two checks. While this transaction is open, they cannot; and meanwhile SQLite
        // returns the length of the log only to another connection.
        let other = Self::new(connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, &self.path, StoreAccess::Write);
        schema::within(self, |_| match suspicious(&other)? {
            true => Err(StoreError::LostCommits { path: self.path.clone(), last: queries::head(self)? }),
            false => Ok(()),
        })
    }

    /// Does the same as [`Self::transact`], and checks again if the disk does not report the outcome. Commands that became durable in an
    /// earlier attempt count as they are.
    pub(crate) fn transact_until_known<T>(
        &mut self,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tried_after = None;
        let mut outcome = Err(StoreError::OutcomeUnknown { source: None });
        for _ in 0..ATTEMPTS {
            outcome = self.transact(|transaction| {
                transaction.look_first_after(tried_after);
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
    fn sql<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        run(&self.connection).map_err(|error| StoreError::sqlite(&self.path, error))
    }
}

impl Store for Sqlite {
    fn append(&mut self, commit: &Commit) -> Result<Appended, StoreError> {
        match self.transact(|transaction| transaction.append(commit)) {
            Err(StoreError::OutcomeUnknown { .. }) => Ok(Appended::Unknown),
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

    /// Decides inside the write transaction: no other commit can come in between, so nothing has to be checked or repeated.
    fn execute(
        &mut self,
        rules: &Rules,
        origin: &Origin,
        command: &Command,
        nonce: u128,
    ) -> Result<Vec<Record>, ExecuteError> {
        self.transact_until_known(|transaction| match transaction.execute(rules, origin, command, nonce) {
            Err(ExecuteError::Store(error)) => Err(error),
            answer => Ok(answer),
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::{Authority, NewSession, NewTask, Terms, Timestamp};

    fn store() -> (tempfile::TempDir, Sqlite) {
        let directory = tempfile::tempdir().unwrap();
        let store = Sqlite::create(&directory.path().join("windlass.db"), Lifetime::Command).unwrap();
        (directory, store)
    }

    fn add(store: &mut Sqlite, goal: &str) -> Result<Vec<Record>, ExecuteError> {
        let at = Timestamp::from_millis(0);
        let origin = Origin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        let task = Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() });
        store.execute(&Rules::default(), &origin, &task, 7)
    }

    #[test]
    fn a_commit_is_synced_whatever_the_library_defaults_to() {
        let (_directory, store) = store();
        let ask = |name| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(ask("synchronous"), 2, "full");
        let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn a_full_file_is_named() {
        let (_directory, mut store) = store();
        add(&mut store, "fits").unwrap();
        let pages: u32 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        store.connection.pragma_update(None, "max_page_count", pages).unwrap();
        let long = "x".repeat(60_000);
        let refused = (0..100).find_map(|_| add(&mut store, &long).err()).unwrap();
        assert!(matches!(refused, ExecuteError::Store(StoreError::Full { .. })), "{refused:?}");
        assert!(store.inspect().unwrap().is_sound());
        store.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
        add(&mut store, &long).unwrap();
        assert!(store.inspect().unwrap().is_sound());
    }

    #[test]
    fn whoever_cannot_get_a_turn_says_so() {
        let (_directory, mut store) = store();
        let other = connect(&store.path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        store.connection.busy_handler(Some(turns(Duration::ZERO))).unwrap();
        let refused = add(&mut store, "no turn").unwrap_err();
        assert!(matches!(refused, ExecuteError::Store(StoreError::Busy { .. })), "{refused:?}");
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(add(&mut store, "its turn").unwrap().len(), 2);
    }

    #[test]
    fn a_store_that_goes_away_while_somebody_waits_takes_no_more() {
        let (_directory, mut store) = store();
        let other = connect(&store.path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let path = store.path.clone();
        let go_away = move |_| {
            std::fs::rename(&path, path.with_extension("away")).unwrap();
            other.execute_batch("ROLLBACK").is_ok()
        };
        store.connection.busy_handler(Some(go_away)).unwrap();
        let refused = add(&mut store, "late").unwrap_err();
        assert!(matches!(refused, ExecuteError::Store(StoreError::Replaced(_))), "{refused:?}");
        assert_eq!(queries::head(&store).unwrap(), Seq::START, "nothing was written");
    }

    /// A caller that ignores a failed write must not make half of it durable.
    #[test]
    fn a_torn_transaction_is_not_committed() {
        let (_directory, mut store) = store();
        add(&mut store, "whole").unwrap();
        // The events can be written, the rows cannot.
        let refusing = "DROP TABLE sessions; CREATE TABLE sessions (name TEXT, row TEXT CHECK (0))";
        store.connection.execute_batch(refusing).unwrap();
        let origin = Origin {
            by: "ada".to_owned(),
            at: Timestamp::from_millis(0),
            authority: Authority::Forced,
            run: None,
            via: None,
        };
        let start = Command::StartSession(NewSession {
            name: "main".parse().unwrap(),
            task: None,
            goal: None,
            work: windlass_engine::Work::Given,
            grounds: windlass_engine::Grounds::InPlace,
            config: "a: 1".to_owned(),
            protected: None,
            agent: "command:true".to_owned(),
            terms: Terms::default(),
            owner: "w1".parse().unwrap(),
            nonce: 7,
            fresh: false,
        });
        store
            .transact(|transaction| {
                transaction.execute(&Rules::default(), &origin, &start, 8).unwrap_err();
                Ok(())
            })
            .unwrap_err();
        assert_eq!(queries::head(&store).unwrap(), Seq(2));
    }
}
