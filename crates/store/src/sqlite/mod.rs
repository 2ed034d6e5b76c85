//! The store that everybody has: one SQLite file.
//!
//! Invariants:
//! - WAL with `synchronous=FULL`: a commit is on the disk before it is acknowledged.
//! - Events and the rows folded from them are written in one transaction.
//! - A transaction is short: nothing outside the rules runs while it is open.
//!
//! The write-ahead log is kept between commands instead of being folded back at every close, and it is grown once when
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

/// How long the process means to use the store: it says how often the write-ahead log is folded back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// One command. The next one has to read what is left of the write-ahead log, so that stays short.
    Command,
    /// A runner or a server. Folding back rarely makes commits cheaper.
    Service,
}

/// Pages in the write-ahead log at which a command folds it back before it writes.
const LONG_FOR_A_COMMAND: u64 = 64;
/// Pages at which a service folds it back after it wrote.
const LONG_FOR_A_SERVICE: u32 = 250;

/// What to do about a file that is no store yet.
enum IfMissing<'a> {
    /// Makes one, and calls this once its files are there and before anything is written that counts.
    Make(&'a mut dyn FnMut() -> io::Result<()>),
    Refuse,
}

/// What may be done with an open store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreAccess {
    Write,
    Read,
    /// Only reading, because this machine did not make it.
    Foreign,
}

/// Whether a store of this identity is known; one without events has none.
type Knows<'a> = &'a dyn Fn(Option<&str>) -> bool;

/// An open store.
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    access: StoreAccess,
    /// Whether the write-ahead log is to be folded back before the next commit.
    long_log: Cell<bool>,
    /// Tells of commits, once somebody has waited for one.
    bell: OnceCell<follow::Bell>,
    /// How many hold the present moment still. They share it: a connection can be at one moment only.
    readers: Cell<u32>,
    /// The files as they were last seen, whatever becomes of their names.
    files: Cell<Files>,
}

/// What a store consists of, as far as it is there.
#[derive(Clone, Copy, Default)]
struct Files {
    store: Option<Identity>,
    log: Option<Identity>,
    /// What the processes share that have it open: their locks, and how far the log goes.
    index: Option<Identity>,
}

impl Files {
    fn of(path: &Path) -> Self {
        let beside = |end| Identity::of(&wal::beside(path, end));
        Self { store: Identity::of(path), log: beside(wal::LOG), index: beside(wal::INDEX) }
    }

    /// Whether these are those files still, and nothing was cut from the first.
    fn are_still(&self, now: &Self) -> bool {
        let same = |known: Option<Identity>, now| known.is_none_or(|known| known.is_still(now));
        same(self.store, now.store)
            && same(self.log, now.log)
            && same(self.index, now.index)
            && !is_shorter(now.store, self.store)
    }
}

/// Whether a file is shorter than before.
fn is_shorter(now: Option<Identity>, before: Option<Identity>) -> bool {
    before.zip(now).is_some_and(|(before, now)| now.length < before.length)
}

/// What a file is, apart from its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
}

impl Identity {
    /// A link is no file.
    fn of(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        Some(Self { device: found.dev(), inode: found.ino(), length: found.len() })
    }

    /// Whether it is this file still.
    fn is_still(self, now: Option<Self>) -> bool {
        now.is_some_and(|now| (now.device, now.inode) == (self.device, self.inode))
    }
}

/// SQLite sees to it that a store's name outlasts the power, but not to the name of the directory, which may be as new.
fn keep_directory(path: &Path) {
    let above = path.canonicalize().ok().and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    // Best effort: whoever may not look at that directory has not made this one.
    #[expect(clippy::disallowed_methods, reason = "a directory is opened, to be synced")]
    let _ = above.and_then(|above| std::fs::File::open(above).ok()).map(|above| above.sync_all());
}

/// How often a commit is tried whose outcome the disk does not tell.
const ATTEMPTS: u32 = 3;

impl Sqlite {
    /// Makes a store where there is none, or opens the one that is there.
    pub fn create(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        Self::create_recorded(path, lifetime, || Ok(()))
    }

    /// The same, for a caller that records which files it makes: `record` is called when they are there, and before anything
    /// is written to them that counts.
    pub fn create_recorded(
        path: &Path,
        lifetime: Lifetime,
        mut record: impl FnMut() -> io::Result<()>,
    ) -> Result<Self, StoreError> {
        match file_length(path) {
            // SQLite would throw the write-ahead log away, and that may be all that is left of somebody's work.
            Ok(0) if wal_length(path) > 0 => Err(StoreError::NotAStore(path.to_owned())),
            Ok(_) | Err(StoreError::Missing(_)) => {
                let store = Self::open_if(path, lifetime, IfMissing::Make(&mut record), None)?;
                keep_directory(path);
                Ok(store)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether there is none, or no more of one than somebody has left who was killed while making it.
    pub fn is_unmade(path: &Path) -> bool {
        match file_length(path) {
            Err(StoreError::Missing(_)) => true,
            Ok(0) => wal_length(path) == 0,
            Ok(_) => connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).is_ok_and(|connection| {
                let store = Self::new(connection, path, StoreAccess::Read);
                // Commits in the log are somebody's work.
                schema::is_blank(&store).unwrap_or(false) && matches!(store.log_frames(), Ok(0))
            }),
            Err(_) => false,
        }
    }

    /// Opens a store that exists.
    pub fn open(path: &Path, lifetime: Lifetime) -> Result<Self, StoreError> {
        Self::open_existing(path, lifetime, None)
    }

    /// The same, if `knows` says so of its identity. A store that it does not know is [`StoreError::Foreign`].
    pub fn open_known(
        path: &Path,
        lifetime: Lifetime,
        knows: impl Fn(Option<&str>) -> bool,
    ) -> Result<Self, StoreError> {
        Self::open_existing(path, lifetime, Some(&knows))
    }

    fn open_existing(path: &Path, lifetime: Lifetime, knows: Option<Knows<'_>>) -> Result<Self, StoreError> {
        if file_length(path)? == 0 {
            // Not even SQLite may touch it: a write-ahead log beside an empty file would be thrown away.
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        Self::open_if(path, lifetime, IfMissing::Refuse, knows)
    }

    /// Opens a store that this machine did not make: it can be read, and everything else is [`StoreError::Foreign`].
    pub fn open_foreign(path: &Path) -> Result<Self, StoreError> {
        if file_length(path)? == 0 {
            return Err(StoreError::NotAStore(path.to_owned()));
        }
        match Self::read_only(path, StoreAccess::Foreign, |store| schema::check(store, &schema::PRESENT)) {
            // One of an older schema would have to be brought forward.
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
        // SQLite does not wait for its turn where it turns the write-ahead log on.
        let mut may_wait = turns(Duration::from_secs(PATIENCE_SECONDS));
        loop {
            let known = store.check_identity(knows);
            match known.and_then(|()| schema::prepare(&mut store, &schema::PRESENT, &mut absent)) {
                Err(StoreError::Busy { .. }) if may_wait(1) => {}
                prepared => break prepared?,
            }
        }
        store.sql(|connection| {
            // Said rather than hoped: a library that is linked in may have been built with weaker defaults.
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

    /// A store on a disk that cannot be written to can still be read.
    fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        Self::read_only(path, StoreAccess::Read, |store| schema::check(store, &schema::PRESENT))
    }

    /// A file that is only looked at, if it is what `check` says it is.
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
            // Without a write-ahead log everything is in the file, and nobody is changing it.
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

    /// The position of the last event.
    pub fn head(&self) -> Result<Seq, StoreError> {
        queries::head(self)
    }

    /// The events before a position, or the last ones, that the filter wants: newest first, at most so many.
    pub fn read_back(&self, filter: &Filter, before: Option<Seq>, most: usize) -> Result<Vec<Record>, StoreError> {
        queries::events_back(self, filter, before, most)
    }

    /// The event at a position, if there is one.
    pub fn event(&self, at: Seq) -> Result<Option<Record>, StoreError> {
        queries::event(self, at)
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
        self.check_access()?;
        self.check_files()?;
        self.fold_back_if_long()?;
        let mut transaction = Transaction::begin(self)?;
        // Its turn may have been long in coming.
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

    /// Refuses to write to a store that is only read.
    fn check_access(&self) -> Result<(), StoreError> {
        match self.access {
            StoreAccess::Write => Ok(()),
            StoreAccess::Read => Err(StoreError::ReadOnly(self.path.clone())),
            StoreAccess::Foreign => Err(StoreError::Foreign(self.path.clone())),
        }
    }

    /// Refuses to write where nobody would find it: the files are not those that were opened any more, or one was cut.
    fn check_files(&self) -> Result<(), StoreError> {
        let now = self.own_files().ok_or_else(|| self.replaced())?;
        // Whoever has folded all of the log back may empty it: then nothing of it is taken.
        if is_shorter(now.log, self.files.get().log) && self.log_frames()? > 0 {
            return Err(self.replaced());
        }
        self.files.set(now);
        Ok(())
    }

    /// The files as they are now, if they are those that were opened.
    fn own_files(&self) -> Option<Files> {
        let now = Files::of(&self.path);
        self.files.get().are_still(&now).then_some(now)
    }

    /// The files are others. A log that was only removed is open here still: what it has would be gone with it.
    fn replaced(&self) -> StoreError {
        let (store, now) = (self.files.get().store, Files::of(&self.path));
        if now.log.is_none() && (Files { store, ..Files::default() }).are_still(&now) {
            let _ = self.fold_back();
        }
        StoreError::Replaced(self.path.clone())
    }

    /// Folds the write-ahead log back. Only a commit that follows in the same process begins it anew at its start: what
    /// has been folded back is forgotten with the last process that had the store open.
    fn fold_back_if_long(&self) -> Result<(), StoreError> {
        if self.long_log.take() { self.fold_back() } else { Ok(()) }
    }

    fn fold_back(&self) -> Result<(), StoreError> {
        self.sql(|connection| connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
    }

    /// How many frames of the write-ahead log SQLite takes.
    fn log_frames(&self) -> Result<u64, StoreError> {
        let frames = |connection: &Connection| {
            connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| row.get::<_, i64>(1))
        };
        Ok(u64::try_from(self.sql(frames)?).unwrap_or(0))
    }

    /// Refuses a store whose write-ahead log has lost what was acknowledged, before anything overwrites the evidence.
    fn look_for_lost_commits(&self) -> Result<(), StoreError> {
        let suspicious = |store: &Self| {
            let frames = store.log_frames()?;
            wal::has_lost_commits(&self.path, frames).map_err(|error| StoreError::io(&self.path, error))
        };
        if !suspicious(self)? {
            return Ok(());
        }
        // Others may have been writing between the two looks. While this one may write, they cannot; and while it may
        // write, SQLite answers only another connection how long the log is.
        let other = Self::new(connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, &self.path, StoreAccess::Write);
        schema::within(self, |_| match suspicious(&other)? {
            true => Err(StoreError::LostCommits { path: self.path.clone(), last: queries::head(self)? }),
            false => Ok(()),
        })
    }

    /// As [`Self::transact`], but looks again if the disk does not say whether the commit is durable. Commands that have
    /// become durable in an attempt before count as they are.
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

    /// Runs a statement, and names what goes wrong with it.
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

    /// Decides inside the write transaction: nobody can come in between, so nothing has to be checked or repeated.
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

    /// A caller who shrugs at a failed write must not make half of it durable.
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
