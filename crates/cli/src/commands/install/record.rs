//! Records of settings files from before an installation. They are beside the trust decisions, outside of every project.
//!
//! Invariants:
//! - Only their owner can read records, because settings can hold secrets.
//! - Without a record, or with a damaged one, a removal is less exact and still finds our entries.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_app::atomic_file::{self, Readers};
use windlass_app::{Code, Failure, environment};
use windlass_engine::Digest;
use windlass_process::file;

/// Twice the limit of a settings file, because JSON escapes take room.
const SIZE: u64 = 64 * 1024 * 1024;

/// The record of one settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// The path, for people who read the record. The name of the record's file identifies the settings file.
    file: String,
    /// The text before the installation; `None` if there was no file.
    pub before: Option<String>,
    /// The digest of the text after the installation.
    after: String,
    /// The directories that the installation created, the outermost first.
    pub made: Vec<PathBuf>,
}

impl Record {
    pub fn new(file: &Path, before: Option<String>, after: &str, made: Vec<PathBuf>) -> Self {
        let file = file.to_string_lossy().into_owned();
        Self { version: 1, file, before, after: digest(after), made }
    }

    /// Returns whether the file is as the installation left it.
    pub fn is_for(&self, text: &str) -> bool {
        self.after == digest(text)
    }
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

fn directory() -> Option<PathBuf> {
    environment::state_directory().map(|state| state.join("settings"))
}

fn record_file(directory: &Path, file: &Path) -> PathBuf {
    directory.join(format!("{}.json", Digest::of(file.as_os_str().as_bytes())))
}

pub fn find(file: &Path) -> Option<Record> {
    let bytes = file::read(&record_file(&directory()?, file), SIZE).ok()?;
    serde_json::from_slice(&bytes).ok().filter(|record: &Record| record.version == 1)
}

pub fn keep(file: &Path, record: &Record) -> Result<(), Failure> {
    let directory = directory().ok_or_else(|| {
        Failure::new(Code::System, "there is no place to remember in what the settings were")
            .caused_by("`WINDLASS_STATE_DIR`, `XDG_STATE_HOME` and `HOME` are unset or not absolute")
            .hint("set `WINDLASS_STATE_DIR` to a directory of your own")
    })?;
    let text = serde_json::to_string(record).expect("a record is plain text");
    let to = record_file(&directory, file);
    atomic_file::make_directories(&directory, 0o700)
        .and_then(|()| fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)))
        .and_then(|()| atomic_file::replace(&to, text.as_bytes(), Readers::Owner))
        .map_err(|error| Failure::new(Code::System, format!("cannot write `{}`", to.display())).caused_by(error))
}

pub fn forget(file: &Path) -> Result<(), Failure> {
    let Some(directory) = directory() else { return Ok(()) };
    let record = record_file(&directory, file);
    match atomic_file::remove(&record) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Failure::new(Code::System, format!("cannot remove `{}`", record.display())).caused_by(error))
        }
        _ => Ok(()),
    }
}
