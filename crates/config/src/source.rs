//! Reads the configuration file and decodes it.

use std::io;
use std::path::Path;

use windlass_process::file::{self, UnreadableFile};

use super::error::{ConfigError, ConfigProblem};

/// The maximum size of a configuration file. Hand-written files are smaller.
pub const SIZE: u64 = 1024 * 1024;

/// The byte order mark that some editors write.
pub const MARK: &str = "\u{feff}";

/// Reads a regular file of limited size.
pub fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    file::read(path, SIZE).map_err(|error| unreadable(path, error))
}

/// Reads a file that lies in the project.
pub fn read_within(project: &Path, path: &Path) -> Result<Vec<u8>, ConfigError> {
    file::read_within(project, path, SIZE).map_err(|error| unreadable(path, error))
}

/// Explains why a file or a directory cannot be read.
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

/// Decodes UTF-8 text and removes a byte order mark.
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

/// Reads a text file: a regular one, of limited size, in UTF-8.
pub fn text_of(file: &Path) -> Result<String, ConfigError> {
    decode(file, read(file)?)
}
