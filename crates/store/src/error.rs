//! Errors of a store. Each case with a remedy of its own is a variant of its own.

use std::io;
use std::path::{Path, PathBuf};

use crate::sequencer::{MessageError, SequencerError};
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use windlass_engine::{ApplyError, DecodeError, Refusal, Seq, ViewError};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    #[error("cannot open the store {}", path.display())]
    Open { path: PathBuf, source: rusqlite::Error },
    /// A commit into a removed file would be lost.
    #[error("the store {} was removed or replaced while it was in use", .0.display())]
    Replaced(PathBuf),
    #[error("cannot open the store {}: it is a symbolic link", .0.display())]
    Linked(PathBuf),
    #[error("{} is not a regular file, as every file of a store is", .0.display())]
    NoFile(PathBuf),
    #[error("{} is a rollback journal, and no store of Windlass has one", .0.display())]
    StrayJournal(PathBuf),
    #[error("{} is not a store of Windlass", .0.display())]
    NotAStore(PathBuf),
    /// A store can come from elsewhere, with views, triggers or columns that are computed when they are read.
    #[error("{} is not a store of Windlass: {what} of it is not as Windlass makes it", path.display())]
    OtherSchema { path: PathBuf, what: String },
    #[error("the store {} was not made on this machine, or was replaced", .0.display())]
    Foreign(PathBuf),
    #[error("the store {} is not sound: {what}", path.display())]
    Unsound { path: PathBuf, what: String },
    #[error("cannot record that the store {} is this machine's own", path.display())]
    Record { path: PathBuf, source: io::Error },
    #[error("the store {} has schema {found}, and this version of Windlass knows up to {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("cannot save the store to {} before its schema is changed", path.display())]
    Backup { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    #[error("event {seq} of {} does not match its digest", path.display())]
    Damaged { path: PathBuf, seq: Seq },
    #[error("event {seq} of {} does not match the chain", path.display())]
    BrokenChain { path: PathBuf, seq: Seq },
    #[error("cannot read event {seq} of {}", path.display())]
    Undecodable { path: PathBuf, seq: Seq, source: DecodeError },
    #[error("cannot replay the log {}", path.display())]
    InvalidEvent { path: PathBuf, source: ApplyError },
    #[error("the store {} is damaged", path.display())]
    Corrupt { path: PathBuf, source: rusqlite::Error },
    #[error("the write-ahead log of {} is damaged: commits after event {last} cannot be read", path.display())]
    LostCommits { path: PathBuf, last: Seq },
    #[error("cannot write the store {}: the disk is full", path.display())]
    Full { path: PathBuf, source: rusqlite::Error },
    #[error("cannot write the store {}", .0.display())]
    ReadOnly(PathBuf),
    #[error("cannot write the store {}: another process has been writing for {seconds} s", path.display())]
    Busy { path: PathBuf, seconds: u64 },
    /// The log decides: the rows can be folded from it anew.
    #[error("cannot read a row of the store {}", path.display())]
    BadRow { path: PathBuf, source: rusqlite::Error },
    /// Only messages of the fleet's log change a copy of it.
    #[error("the store {} is a copy of a fleet's log, and no connection to this log is open", .0.display())]
    Replica(PathBuf),
    #[error("the store {} has left its fleet", .0.display())]
    NoReplica(PathBuf),
    #[error("the store {} has a log of its own", .0.display())]
    HasOwnLog(PathBuf),
    #[error(transparent)]
    Unreachable(SequencerError),
    #[error("cannot commit: other machines changed the same for {seconds} s")]
    Contended { seconds: u64 },
    #[error("the fleet's log has other events up to event {after} than the copy {}", path.display())]
    Forked { path: PathBuf, after: Seq },
    #[error(transparent)]
    TooOld(MessageError),
    #[error("a message of the fleet's log has an event that this version of Windlass does not know")]
    UnknownEvent { source: DecodeError },
    #[error("cannot tell whether the commit is durable: the disk reported an error")]
    OutcomeUnknown { source: Option<Box<dyn std::error::Error + Send + Sync>> },
    #[error("cannot use the store {}", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("cannot use {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn extended_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code)
}

/// How long a writer waits for the write lock.
pub(crate) const WRITE_TIMEOUT_SECONDS: u64 = 30;

impl StoreError {
    /// Maps an error of SQLite to a case.
    pub(crate) fn from_sqlite_error(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        let path = path.to_owned();
        match source.sqlite_error_code() {
            // The index of the write-ahead log could not get its space.
            Some(ErrorCode::SystemIoFailure) if extended_code(&source) == SQLITE_IOERR_SHMSIZE => {
                Self::Full { path, source }
            }
            None if matches!(
                source,
                E::FromSqlConversionFailure(..)
                    | E::InvalidColumnType(..)
                    | E::IntegralValueOutOfRange(..)
                    | E::Utf8Error(..)
            ) =>
            {
                Self::BadRow { path, source }
            }
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, source },
            Some(ErrorCode::NotADatabase) => Self::NotAStore(path),
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { path, seconds: WRITE_TIMEOUT_SECONDS }
            }
            Some(ErrorCode::CannotOpen) => Self::Open { path, source },
            _ => Self::Sqlite { path, source },
        }
    }

    pub(crate) fn from_io_error(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn from_apply_error(path: &Path, error: ApplyError) -> Self {
        match error {
            ApplyError::View(error) => Self::from_view_error(path, error),
            source => Self::InvalidEvent { path: path.to_owned(), source },
        }
    }

    /// Unwraps the store's own error from an error of a look-up.
    pub(crate) fn from_view_error(path: &Path, error: ViewError) -> Self {
        match error.0.downcast::<Self>() {
            Ok(error) => *error,
            Err(other) => Self::from_io_error(path, io::Error::other(other)),
        }
    }
}

/// A command that was not carried out: the rules refused it, or the store failed.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Refusal> for ExecuteError {
    /// Turns a refusal that only passes on a failure of the store into that failure.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::View(error) => Self::Store(StoreError::from_view_error(Path::new("the store"), error)),
            refusal => Self::Refused(refusal),
        }
    }
}
