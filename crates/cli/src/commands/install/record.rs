//! What settings files were like before we wrote into them: beside the trust decisions, outside every project.
//!
//! Invariants:
//! - A record is for one person's eyes: settings can hold secrets.
//! - A record that is damaged or gone costs exactness, and nothing else: our entries are known without it.

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

/// Twice what is read of a settings file: escapes take room.
const SIZE: u64 = 64 * 1024 * 1024;

/// What is known of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// For people who look at it; the record's name is what counts.
    file: String,
    /// Its text before; nothing where there was no file.
    pub before: Option<String>,
    /// Stands for its text after.
    after: String,
    /// The directories that were made for it, the outermost first.
    pub made: Vec<PathBuf>,
}

impl Record {
    pub fn new(file: &Path, before: Option<String>, after: &str, made: Vec<PathBuf>) -> Self {
        let file = file.to_string_lossy().into_owned();
        Self { version: 1, file, before, after: digest(after), made }
    }

    /// Whether the file is as we left it.
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
