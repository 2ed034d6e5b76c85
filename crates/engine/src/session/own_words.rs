//! What a hook has said by itself, as digests: to the letter, and without numbers.

use serde::{Deserialize, Serialize};

use crate::log::id::Digest;

/// What a hook has said by itself, as the guards compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnWords {
    /// To the letter.
    pub exact: Digest,
    /// Without its numbers.
    pub loose: Digest,
}

impl OwnWords {
    pub fn of(text: &str) -> Self {
        Self { exact: Digest::of(text.as_bytes()), loose: Digest::of(loose(text).as_bytes()) }
    }
}

/// A text without its numbers.
pub(super) fn loose(text: &str) -> String {
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
