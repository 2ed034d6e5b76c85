//! The configuration file's bytes as text.

use std::io;
use std::path::Path;

use windlass_process::file::{self, UnreadableFile};

use super::error::{ConfigError, ConfigProblem};

/// No configuration that a person wrote is larger.
pub const SIZE: u64 = 1024 * 1024;

/// What some editors put at the start of a text.
pub const MARK: &str = "\u{feff}";

/// The bytes of a regular file of reasonable size.
pub fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    file::read(path, SIZE).map_err(|error| unreadable(path, error))
}

/// The same of a file that lies in the project.
pub fn read_within(project: &Path, path: &Path) -> Result<Vec<u8>, ConfigError> {
    file::read_within(project, path, SIZE).map_err(|error| unreadable(path, error))
}

/// Why a file or a directory cannot be used.
pub fn unreadable(path: &Path, error: io::Error) -> ConfigError {
    match UnreadableFile::of(&error) {
        Some(reason @ UnreadableFile::TooLarge(_)) => {
            ConfigError::of_file(path, reason.cause()).suggest("a configuration is text that a person can read")
        }
        Some(reason) => ConfigError::of_file(path, reason.cause()).suggest(reason.remedy()),
        None if error.kind() == io::ErrorKind::NotFound => {
            ConfigError::of_file(path, "there is no such file").caused_by(error)
        }
        None => ConfigError::of_file(path, "cannot be read").caused_by(error),
    }
}

/// The text, without the mark that some editors put at its start.
pub fn decode(file: &Path, bytes: Vec<u8>) -> Result<String, ConfigError> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text)),
        Err(error) => {
            let (offset, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
            let byte = bytes.get(offset).copied().unwrap_or_default();
            let problem = ConfigProblem::new(format!("not UTF-8 text: byte {byte:#04x} at offset {offset}"))
                .suggest("save the file as UTF-8".to_owned())
                .at(offset..offset + char::REPLACEMENT_CHARACTER.len_utf8());
            Err(ConfigError::in_text(file, &String::from_utf8_lossy(bytes), problem))
        }
    }
}

/// The text of a file that a person wrote: a regular one, of reasonable size, in UTF-8.
pub fn text_of(file: &Path) -> Result<String, ConfigError> {
    decode(file, read(file)?)
}
