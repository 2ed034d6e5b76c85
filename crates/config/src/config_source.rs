//! A configuration as it is written, before anybody has tried to understand it.

use std::path::{Path, PathBuf};

use windlass_engine::{ConfigText, Digest};

use super::error::ConfigError;
use super::source;

/// The directory of a project that Windlass keeps its files in.
pub const PROJECT_DIRECTORY: &str = ".windlass";

/// Returns the configuration file of a project.
pub fn config_file(root: &Path) -> PathBuf {
    root.join(PROJECT_DIRECTORY).join("config.yaml")
}

/// The text of a configuration, and where it comes from.
#[derive(Debug, Clone)]
pub struct ConfigSource {
    file: PathBuf,
    /// Of the bytes that were read; `None` where there is no file.
    digest: Option<Digest>,
    text: ConfigText,
}

impl ConfigSource {
    /// What the project's file holds; without a file, nothing.
    pub fn load(root: &Path) -> Result<Self, ConfigError> {
        let file = config_file(root);
        match source::read_within(root, &file).and_then(|bytes| Self::of_bytes(&file, bytes)) {
            Err(error) if error.is_missing() => Ok(Self::missing(file)),
            other => other,
        }
    }

    /// What a file holds, which must exist.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        Self::of_bytes(file, source::read(file)?)
    }

    fn of_bytes(file: &Path, bytes: Vec<u8>) -> Result<Self, ConfigError> {
        // The mark at its start is no part of the text, but of what people trust.
        let marked = bytes.starts_with(source::MARK.as_bytes()).then(|| Digest::of(&bytes));
        let written = Self::of(file, source::decode(file, bytes)?);
        Ok(Self { digest: marked.or(written.digest), ..written })
    }

    /// What a file once held.
    pub fn of(file: &Path, text: impl Into<ConfigText>) -> Self {
        let text = text.into();
        Self { file: file.to_owned(), digest: Some(text.digest()), text }
    }

    pub fn missing(file: PathBuf) -> Self {
        Self { file, digest: None, text: ConfigText::default() }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Stands for the bytes that were read; `None` where there is no file.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Without the mark that some editors put at its start.
    pub fn text(&self) -> &ConfigText {
        &self.text
    }
}
