//! The text of a configuration before parsing.

use std::path::{Path, PathBuf};

use windlass_engine::{ConfigText, Digest};

use super::error::ConfigError;
use super::source;

/// The directory of a project that holds the files of Windlass.
pub const PROJECT_DIRECTORY: &str = ".windlass";

/// Returns the configuration file of a project.
pub fn config_file_path(root: &Path) -> PathBuf {
    root.join(PROJECT_DIRECTORY).join("config.yaml")
}

/// The text of a configuration, with its file.
#[derive(Debug, Clone)]
pub struct ConfigSource {
    file: PathBuf,
    /// Digest of the bytes that were read; `None` if there is no file.
    digest: Option<Digest>,
    text: ConfigText,
}

impl ConfigSource {
    /// Loads the project's file. Without a file, the source is empty.
    pub fn load(root: &Path) -> Result<Self, ConfigError> {
        let file = config_file_path(root);
        match source::read_bytes_within(root, &file).and_then(|bytes| Self::from_bytes(&file, bytes)) {
            Err(error) if error.is_missing_file() => Ok(Self::for_missing_file(file)),
            other => other,
        }
    }

    /// Reads a file, which must exist.
    pub fn read_file(file: &Path) -> Result<Self, ConfigError> {
        Self::from_bytes(file, source::read_bytes(file)?)
    }

    fn from_bytes(file: &Path, bytes: Vec<u8>) -> Result<Self, ConfigError> {
        // The byte order mark is no part of the text, but people trust the bytes of the file.
        let marked = bytes.starts_with(source::BYTE_ORDER_MARK.as_bytes()).then(|| Digest::of_bytes(&bytes));
        let written = Self::from_text(file, source::decode_text(file, bytes)?);
        Ok(Self { digest: marked.or(written.digest), ..written })
    }

    /// Makes a source from text that a file holds or once held.
    pub fn from_text(file: &Path, text: impl Into<ConfigText>) -> Self {
        let text = text.into();
        Self { file: file.to_owned(), digest: Some(text.digest()), text }
    }

    pub fn for_missing_file(file: PathBuf) -> Self {
        Self { file, digest: None, text: ConfigText::default() }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the digest of the bytes that were read; `None` if there is no file.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns the text without a byte order mark.
    pub fn text(&self) -> &ConfigText {
        &self.text
    }
}
