//! Reads the configuration file and decodes it.

use std::io;
use std::path::Path;

use windlass_process::file::{self, UnreadableFile};

use super::error::{ConfigError, ConfigProblem};

/// The maximum size of a configuration file. Hand-written files are smaller.
pub const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// The byte order mark that some editors write.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads a regular file of limited size.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ConfigError> {
    file::read_bounded(path, MAX_CONFIG_BYTES).map_err(|error| unreadable_error(path, error))
}

/// Reads a file that lies in the project.
pub fn read_bytes_within(project: &Path, path: &Path) -> Result<Vec<u8>, ConfigError> {
    file::read_within_directory(project, path, MAX_CONFIG_BYTES).map_err(|error| unreadable_error(path, error))
}

/// Explains why a file or a directory cannot be read.
pub fn unreadable_error(path: &Path, error: io::Error) -> ConfigError {
    match UnreadableFile::from_io_error(&error) {
        Some(reason @ UnreadableFile::TooLarge(_)) => ConfigError::for_file(path, reason.describe_cause())
            .with_suggestion("a configuration is text that a person can read"),
        Some(reason) => ConfigError::for_file(path, reason.describe_cause()).with_suggestion(reason.remedy_hint()),
        None if error.kind() == io::ErrorKind::NotFound => {
            ConfigError::for_file(path, "there is no such file").with_cause(error)
        }
        None => ConfigError::for_file(path, "cannot be read").with_cause(error),
    }
}

/// Decodes UTF-8 text and removes a byte order mark.
pub fn decode_text(file: &Path, bytes: Vec<u8>) -> Result<String, ConfigError> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text)),
        Err(error) => {
            let (offset, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
            let byte = bytes.get(offset).copied().unwrap_or_default();
            let problem = ConfigProblem::new(format!("not UTF-8 text: byte {byte:#04x} at offset {offset}"))
                .with_suggestion("save the file as UTF-8".to_owned())
                .with_range(offset..offset + char::REPLACEMENT_CHARACTER.len_utf8());
            Err(ConfigError::from_problem(file, &String::from_utf8_lossy(bytes), problem))
        }
    }
}

/// Reads a text file: a regular one, of limited size, in UTF-8.
pub fn read_text(file: &Path) -> Result<String, ConfigError> {
    decode_text(file, read_bytes(file)?)
}
