//! The records of the stores that this machine made, kept outside every project, and the only functions that open stores.
//!
//! ```text
//! record of the project ─ knows the files? ─ yes ─► identity inside? ─ yes ─► open to write
//!                                  └───────── no ────────┴─ no ─► a foreign store: reading commands read it
//! ```
//!
//! Invariants:
//! - The content of a store counts only if this machine wrote it, or a person has looked at it (`windlass trust`).
//! - A file is identified by its birth time: a file that git, tar or rsync put in its place is another file. A copy written over
//!   it in place has another identity inside.
//! - A write-ahead log counts like the store: one that is neither empty nor recorded is foreign. It is recorded before SQLite
//!   writes to it, so a kill at any moment leaves no unknown Windlass log.
//!
//! Not here: the content of a foreign store (`commands::trust`); trust in configurations (`trust`).

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use windlass_engine::Digest;
use windlass_process::file;
use windlass_store::{Lifetime, SqliteStore, StoreError, log_path};

use crate::atomic_file::{self, FileReaders};
use crate::fleet;
use crate::project::Project;
use crate::{Failure, FailureCode, environment, hints};

/// The largest record that is read, in bytes. A usual one has a few hundred.
const MAX_RECORD_FILE: u64 = 64 * 1024;

/// The identity of a file, which distinguishes it from another one in its place: its birth time, or its inode number if the file
/// system has none. The device is left out, because its number changes with a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct FileMark(String);

impl FileMark {
    fn read_mark(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let born = found.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        Some(Self(match born {
            Some(born) => format!("born {}.{:09}", born.as_secs(), born.subsec_nanos()),
            None => format!("inode {}", found.ino()),
        }))
    }
}

/// The identities of a store's files at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreMarks {
    store: FileMark,
    log: Option<FileMark>,
}

impl StoreMarks {
    pub fn read_marks(project: &Project) -> Option<Self> {
        let file = project.store_file();
        Some(Self { store: FileMark::read_mark(&file)?, log: FileMark::read_mark(&log_path(&file)) })
    }

    /// Returns the token that tells the programs of a command that its `--trust` counts for them.
    pub fn trust_token(&self) -> String {
        let log = self.log.as_ref().map_or("", |log| log.0.as_str());
        format!("{}, {log}", self.store.0)
    }
}

/// The record of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreRecord {
    version: u32,
    /// For people who read the file; the name of the record file is what counts.
    project: String,
    store: FileMark,
    log: Option<FileMark>,
    /// None before the first event.
    identity: Option<String>,
    /// Whether a person has looked at the store and trusts it: this machine did not make it.
    trusted: bool,
}

/// The origin of a project's store, according to the records.
enum StoreOrigin {
    /// There is no store, or only a leftover of a killed creation.
    Missing,
    Known(StoreRecord),
    Foreign,
}

/// Opens the store of a project to write to it. A copy of a fleet's log is connected to that log.
pub fn open_store(project: &Project, lifetime: Lifetime, trust: bool) -> Result<SqliteStore, Failure> {
    let mut store = open_own_store(project, lifetime, trust)?;
    fleet::attach_log(project, &mut store)?;
    if lifetime == Lifetime::Service {
        store.subscribe_to_log();
    }
    Ok(store)
}

fn open_own_store(project: &Project, lifetime: Lifetime, trust: bool) -> Result<SqliteStore, Failure> {
    let file = project.store_file();
    if trust || is_trusted_by_caller(project) {
        return SqliteStore::open(&file, lifetime).map_err(hints::store_failure);
    }
    let records = StoreRecordDirectory::find_directory()?;
    match records.find_store_origin(project)? {
        StoreOrigin::Missing => SqliteStore::open(&file, lifetime).map_err(hints::store_failure),
        StoreOrigin::Known(record) => records.open_known_store(project, lifetime, record),
        StoreOrigin::Foreign => Err(hints::store_failure(StoreError::Foreign(file))),
    }
}

/// Opens the store of a project for a command that only reads. A foreign store comes with the reason why it is read-only.
pub fn open_store_to_read(
    project: &Project,
    lifetime: Lifetime,
    trust: bool,
) -> Result<(SqliteStore, Option<Failure>), Failure> {
    match open_store(project, lifetime, trust) {
        Ok(store) => Ok((store, None)),
        Err(failure) if matches!(failure.code, FailureCode::Trust | FailureCode::System) => {
            SqliteStore::open_foreign(&project.store_file())
                .map(|store| (store, Some(failure)))
                .map_err(hints::store_failure)
        }
        Err(failure) => Err(failure),
    }
}

/// Creates the store of a project, or opens the existing one.
pub fn open_or_create_store(project: &Project, lifetime: Lifetime, trust: bool) -> Result<SqliteStore, Failure> {
    project.write_gitignore();
    match open_store(project, lifetime, trust) {
        Err(failure) if failure.code == FailureCode::Store => {
            match SqliteStore::is_missing_or_blank(&project.store_file()) {
                true => StoreRecordDirectory::find_directory()?.create_store(project, lifetime),
                // Another process may have created it since the first attempt.
                false => open_store(project, lifetime, trust),
            }
        }
        opened => opened,
    }
}

/// Copies the whole store into the directory of backups, and removes it. Returns the copy.
pub fn put_store_away(project: &Project, store: SqliteStore) -> Result<PathBuf, Failure> {
    let directory = project.root.join(crate::project::PROJECT_DIRECTORY).join("backups");
    let failed = |error: io::Error| {
        Failure::new(FailureCode::System, format!("cannot write `{}`", directory.display())).with_cause(error)
    };
    atomic_file::make_directories(&directory, 0o777).map_err(failed)?;
    let failed_store = |error: StoreError| hints::store_failure(error);
    let head = store.head().map_err(failed_store)?;
    let file = (1_u32..)
        .map(|number| directory.join(format!("before-fleet-{}-{number}.db", head.0)))
        .find(|file| fs::symlink_metadata(file).is_err())
        .expect("there are fewer files than numbers");
    // While this handle writes, no other process does: nothing comes between the copy and the end of the file.
    let mut writer = open_own_store(project, Lifetime::Command, false)?;
    writer
        .run_transaction(|_| {
            store.backup_to(&file)?;
            remove_scratch_store(&project.store_file());
            Ok(())
        })
        .map_err(failed_store)?;
    if fs::symlink_metadata(project.store_file()).is_ok() {
        return Err(Failure::new(FailureCode::System, "cannot remove the store of this project")
            .with_cause(format!("a copy is in {}", file.display())));
    }
    StoreRecordDirectory::find_directory()?.remove_record(project)?;
    Ok(file)
}

/// Opens a store that [`put_store_away`] has written, to read it.
pub fn open_put_away_store(file: &Path) -> Result<SqliteStore, Failure> {
    SqliteStore::open_foreign(file).map_err(hints::store_failure)
}

/// Creates a store that is removed after its use, with [`remove_scratch_store`].
pub fn create_scratch_store(file: &Path) -> Result<SqliteStore, Failure> {
    remove_scratch_store(file);
    SqliteStore::create(file, Lifetime::Service).map_err(hints::store_failure)
}

/// Removes the files of a store that was made for one use.
pub fn remove_scratch_store(file: &Path) {
    for end in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        let _ = fs::remove_file(name);
    }
}

/// Returns whether this machine made a store for the project, or a person trusted one.
pub fn has_store_record(project: &Project) -> bool {
    StoreRecordDirectory::find_directory().is_ok_and(|records| records.read_record(project).is_some())
}

/// Opens the store of a project for an import from elsewhere, and makes it foreign from now on. Returns its previous record.
pub fn disown_store(project: &Project, trust: bool) -> Result<(SqliteStore, Option<StoreRecord>), Failure> {
    let store = open_or_create_store(project, Lifetime::Command, trust)?;
    let records = StoreRecordDirectory::find_directory()?;
    let record = records.read_record(project);
    records.remove_record(project)?;
    Ok((store, record))
}

/// Restores the record, if the import wrote nothing to the store.
pub fn restore_store_record(project: &Project, record: Option<StoreRecord>) -> Result<(), Failure> {
    let records = StoreRecordDirectory::find_directory()?;
    let written = record.map_or(Ok(()), |record| records.write_record(project, &record));
    written.map_err(|error| records.write_failure(project, &error))
}

/// Fails if records cannot be kept, before a caller creates a store that would need one.
pub fn check_record_directory() -> Result<(), Failure> {
    StoreRecordDirectory::find_directory().map(drop)
}

/// Returns whether the project has a store that is not this machine's own.
pub fn is_store_foreign(project: &Project) -> Result<bool, Failure> {
    match StoreRecordDirectory::find_directory() {
        Ok(records) => match records.find_store_origin(project)? {
            StoreOrigin::Foreign => Ok(true),
            StoreOrigin::Missing => Ok(false),
            StoreOrigin::Known(record) => {
                let opened = records.open_known_store(project, Lifetime::Command, record);
                Ok(opened.is_err_and(|failure| failure.code == FailureCode::Trust))
            }
        },
        // Without a directory for records, no store is known.
        Err(_) => Ok(!SqliteStore::is_missing_or_blank(&project.store_file())),
    }
}

/// Records a store that a person has looked at, if its files are still the ones that the person saw.
pub fn adopt_store(project: &Project, seen: &StoreMarks, identity: Option<String>) -> Result<(), Failure> {
    if StoreMarks::read_marks(project).as_ref() != Some(seen) {
        return Err(Failure::new(FailureCode::Trust, "the store stays untrusted")
            .with_cause("it was replaced during the check")
            .with_hint("look at it again: `windlass trust`"));
    }
    let records = StoreRecordDirectory::find_directory()?;
    let record = StoreRecord::new(project, seen.clone(), identity, true);
    records.write_record(project, &record).map_err(|error| records.write_failure(project, &error))
}

/// Forgets that a person has trusted a store. Returns whether one had.
pub fn revoke_store_trust(project: &Project) -> Result<bool, Failure> {
    let records = StoreRecordDirectory::find_directory()?;
    match records.read_record(project) {
        Some(record) if record.trusted => records.remove_record(project).map(|()| true),
        _ => Ok(false),
    }
}

/// Returns whether the command that started this process was told to trust exactly these files.
fn is_trusted_by_caller(project: &Project) -> bool {
    let Some(token) = environment::trusted_store_token() else { return false };
    StoreMarks::read_marks(project).is_some_and(|marks| marks.trust_token() == token)
}

/// The record files of one person.
struct StoreRecordDirectory {
    directory: PathBuf,
}

impl StoreRecordDirectory {
    fn find_directory() -> Result<Self, Failure> {
        let state = environment::state_directory().ok_or_else(|| {
            Failure::new(FailureCode::System, "there is no place to record which stores this machine made")
                .with_cause("`WINDLASS_STATE_DIR`, `XDG_STATE_HOME` and `HOME` are unset or not absolute")
                .with_hint("set `WINDLASS_STATE_DIR` to a directory of your own")
        })?;
        Ok(Self::in_state_directory(&state))
    }

    fn in_state_directory(state: &Path) -> Self {
        Self { directory: state.join("stores") }
    }

    fn record_file(&self, project: &Project) -> PathBuf {
        self.directory.join(format!("{}.json", Digest::of_bytes(project.root.as_os_str().as_bytes())))
    }

    fn read_record(&self, project: &Project) -> Option<StoreRecord> {
        let bytes = file::read_bounded(&self.record_file(project), MAX_RECORD_FILE).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &StoreRecord| record.version == 1)
    }

    fn write_record(&self, project: &Project, record: &StoreRecord) -> io::Result<()> {
        // The temporary file has the name of the process, which threads share.
        static WRITE_LOCK: Mutex<()> = Mutex::new(());
        let _writing = WRITE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_string(record).expect("a record is plain text");
        atomic_file::make_directories(&self.directory, 0o700)?;
        atomic_file::replace_file(&self.record_file(project), text.as_bytes(), FileReaders::Owner)
    }

    fn remove_record(&self, project: &Project) -> Result<(), Failure> {
        let file = self.record_file(project);
        match atomic_file::remove_file(&file) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(Failure::new(FailureCode::System, format!("cannot remove `{}`", file.display())).with_cause(error))
            }
            _ => Ok(()),
        }
    }

    fn write_failure(&self, project: &Project, error: &io::Error) -> Failure {
        let file = self.record_file(project);
        Failure::new(FailureCode::System, format!("cannot record whose store it is in `{}`", file.display()))
            .with_cause(error)
            .with_hint("set `WINDLASS_STATE_DIR` to a directory of your own; --trust uses it for one command alone")
    }

    fn find_store_origin(&self, project: &Project) -> Result<StoreOrigin, Failure> {
        if let Some(record) = self.find_matching_record(project)? {
            return Ok(StoreOrigin::Known(record));
        }
        if SqliteStore::is_missing_or_blank(&project.store_file()) {
            return Ok(StoreOrigin::Missing);
        }
        // Another process may have created and recorded the store between the two checks.
        Ok(self.find_matching_record(project)?.map_or(StoreOrigin::Foreign, StoreOrigin::Known))
    }

    /// Returns the record if it matches the files, and adds an empty log to it.
    fn find_matching_record(&self, project: &Project) -> Result<Option<StoreRecord>, Failure> {
        let file = project.store_file();
        let Some(record) =
            self.read_record(project).filter(|record| FileMark::read_mark(&file).as_ref() == Some(&record.store))
        else {
            return Ok(None);
        };
        let log = log_path(&file);
        if FileMark::read_mark(&log).is_none() && create_empty_log(&log, &file).is_err() {
            // On a read-only disk the store can still be read.
            return Ok(Some(record));
        }
        let mark = FileMark::read_mark(&log);
        if mark == record.log {
            return Ok(Some(record));
        }
        if fs::symlink_metadata(&log).is_ok_and(|found| found.is_file() && found.len() > 0) {
            return Ok(None);
        }
        let record = StoreRecord { log: mark, ..record };
        self.write_record(project, &record).map_err(|error| self.write_failure(project, &error))?;
        Ok(Some(record))
    }

    fn create_store(&self, project: &Project, lifetime: Lifetime) -> Result<SqliteStore, Failure> {
        let record = || match StoreMarks::read_marks(project) {
            Some(marks) => self.write_record(project, &StoreRecord::new(project, marks, None, false)),
            None => Err(ErrorKind::NotFound.into()),
        };
        SqliteStore::create_with_record(&project.store_file(), lifetime, record).map_err(hints::store_failure)
    }

    fn open_known_store(
        &self,
        project: &Project,
        lifetime: Lifetime,
        record: StoreRecord,
    ) -> Result<SqliteStore, Failure> {
        let knows = |found: Option<&str>| record.identity.is_none() || record.identity.as_deref() == found;
        let store = SqliteStore::open_if_known(&project.store_file(), lifetime, knows).map_err(hints::store_failure)?;
        if record.identity.is_none()
            && let Some(identity) = store.read_identity().map_err(hints::store_failure)?
        {
            let record = StoreRecord { identity: Some(identity), ..record };
            self.write_record(project, &record).map_err(|error| self.write_failure(project, &error))?;
        }
        Ok(store)
    }
}

impl StoreRecord {
    fn new(project: &Project, marks: StoreMarks, identity: Option<String>, trusted: bool) -> Self {
        let (project, StoreMarks { store, log }) = (project.root.to_string_lossy().into_owned(), marks);
        Self { version: 1, project, store, log, identity, trusted }
    }
}

/// Creates the file of a write-ahead log with the mode of the store, as SQLite does.
fn create_empty_log(log: &Path, store: &Path) -> io::Result<()> {
    let mode = fs::metadata(store)?.permissions().mode() & 0o666;
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(log) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}
