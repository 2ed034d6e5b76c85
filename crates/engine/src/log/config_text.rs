//! The text of a configuration, with its digest.

use std::ops::Deref;
use std::sync::Arc;

use crate::log::id::ConfigDigest;

/// The text of a configuration. The digest is computed once, because the text may be long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigText {
    text: Arc<String>,
    digest: ConfigDigest,
}

impl ConfigText {
    pub fn digest(&self) -> ConfigDigest {
        self.digest
    }
}

impl From<String> for ConfigText {
    fn from(text: String) -> Self {
        let digest = ConfigDigest::of_bytes(text.as_bytes());
        Self { text: text.into(), digest }
    }
}

impl From<&str> for ConfigText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Default for ConfigText {
    fn default() -> Self {
        String::new().into()
    }
}

impl Deref for ConfigText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}
