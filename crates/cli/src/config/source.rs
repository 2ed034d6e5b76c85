//! The configuration file's bytes as text.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::error::{ConfigError, Problem};

/// No configuration that a person wrote is larger.
pub const SIZE: u64 = 1024 * 1024;

/// The bytes of a regular file of reasonable size.
pub fn read(file: &Path) -> Result<Vec<u8>, ConfigError> {
    let failed = |error: io::Error| {
        let message = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file",
            _ => "cannot be read",
        };
        ConfigError::of_file(file, message).caused_by(error)
    };
    let metadata = fs::metadata(file).map_err(failed)?;
    if metadata.is_dir() {
        return Err(ConfigError::of_file(file, "is a directory, not a file"));
    }
    if !metadata.is_file() {
        return Err(ConfigError::of_file(file, "is not a regular file"));
    }
    // Room for all of it: without, a file is read a few bytes at a time at first.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(SIZE)).unwrap_or(0));
    File::open(file).and_then(|file| file.take(SIZE + 1).read_to_end(&mut bytes)).map_err(failed)?;
    match bytes.len() as u64 > SIZE {
        true => Err(ConfigError::of_file(file, "is larger than 1 MiB")
            .suggest("a configuration is text that a person can read")),
        false => Ok(bytes),
    }
}

/// The text, without the mark that some editors put at its start.
pub fn decode<'a>(file: &Path, bytes: &'a [u8]) -> Result<&'a str, ConfigError> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let offset = error.valid_up_to();
            let byte = bytes.get(offset).copied().unwrap_or_default();
            let problem = Problem::new(format!("not UTF-8 text: byte {byte:#04x} at offset {offset}"))
                .suggest("save the file as UTF-8".to_owned())
                .at(offset..offset + char::REPLACEMENT_CHARACTER.len_utf8());
            Err(ConfigError::in_text(file, &String::from_utf8_lossy(bytes), problem))
        }
    }
}
