//! The fingerprint of a hook's output: exact, and without numbers.

use serde::{Deserialize, Serialize};

use crate::log::id::Digest;

/// The fingerprint of a hook's own output, which the guards compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputFingerprint {
    /// The digest of the exact text.
    pub exact: Digest,
    /// The digest of the text with its numbers collapsed.
    pub loose: Digest,
}

impl OutputFingerprint {
    pub fn from_text(text: &str) -> Self {
        Self { exact: Digest::of_bytes(text.as_bytes()), loose: Digest::of_bytes(collapse_numbers(text).as_bytes()) }
    }
}

/// Replaces every number in a text by 0.
pub(super) fn collapse_numbers(text: &str) -> String {
    let mut loose = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if loose.ends_with('0') => {}
            true => loose.push('0'),
            false => loose.push(letter),
        }
    }
    loose
}
