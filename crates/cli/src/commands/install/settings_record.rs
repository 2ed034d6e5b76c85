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
use windlass_app::atomic_file::{self, FileReaders};
use windlass_app::{Failure, FailureCode, environment};
use windlass_engine::Digest;
use windlass_process::file;

/// Twice the limit of a settings file, because JSON escapes take room.
const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// The record of one settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsRecord {
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

impl SettingsRecord {
    pub fn new(file: &Path, before: Option<String>, after: &str, made: Vec<PathBuf>) -> Self {
        let file = file.to_string_lossy().into_owned();
        Self { version: 1, file, before, after: text_digest(after), made }
    }

    /// Returns whether the file is as the installation left it.
    pub fn matches_text(&self, text: &str) -> bool {
        self.after == text_digest(text)
    }
}

fn text_digest(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).to_string()
}

fn records_directory() -> Option<PathBuf> {
    environment::state_directory().map(|state| state.join("settings"))
}

fn record_file_path(directory: &Path, file: &Path) -> PathBuf {
    directory.join(format!("{}.json", Digest::of_bytes(file.as_os_str().as_bytes())))
}

pub fn find_record(file: &Path) -> Option<SettingsRecord> {
    let bytes = file::read_bounded(&record_file_path(&records_directory()?, file), MAX_RECORD_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok().filter(|record: &SettingsRecord| record.version == 1)
}

pub fn store_record(file: &Path, record: &SettingsRecord) -> Result<(), Failure> {
    let directory = records_directory().ok_or_else(|| {
        Failure::new(FailureCode::System, "cannot record the former settings")
            .with_cause("`WINDLASS_STATE_DIR`, `XDG_STATE_HOME` and `HOME` are unset or not absolute")
            .with_hint("set `WINDLASS_STATE_DIR` to a directory of your own")
    })?;
    let text = serde_json::to_string(record).expect("a record is plain text");
    let to = record_file_path(&directory, file);
    atomic_file::make_directories(&directory, 0o700)
        .and_then(|()| fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)))
        .and_then(|()| atomic_file::replace_file(&to, text.as_bytes(), FileReaders::Owner))
        .map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot write `{}`", to.display())).with_cause(error)
        })
}

pub fn remove_record(file: &Path) -> Result<(), Failure> {
    let Some(directory) = records_directory() else { return Ok(()) };
    let record = record_file_path(&directory, file);
    match atomic_file::remove_file(&record) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Failure::new(FailureCode::System, format!("cannot remove `{}`", record.display())).with_cause(error))
        }
        _ => Ok(()),
    }
}
