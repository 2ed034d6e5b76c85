//! JSON that was written outside, read into a type; what does not fit is named with its place.

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Letters of a cause: it may quote what was given.
const MAX_CAUSE: usize = 300;

/// Why a value cannot be read, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// `actions[2].type`; empty for the whole value.
    pub path: String,
    pub cause: String,
}

impl Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.cause),
            path => write!(f, "`{path}`: {}", self.cause),
        }
    }
}

/// Returns the place of the first list among values that have to be objects. A struct would take the items of a list for its fields, by
/// their order.
pub fn find_list<'v>(values: impl IntoIterator<Item = &'v Value>) -> Option<usize> {
    values.into_iter().position(Value::is_array)
}

/// Reads a value. The error shows hostile text as one short line.
pub fn read_json<'de, T: Deserialize<'de>>(
    from: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(from).map_err(|error| {
        let shown = |text: String| -> String {
            text.chars().take(MAX_CAUSE).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
        };
        let path = Some(error.path().to_string()).filter(|path| path != ".").unwrap_or_default();
        FieldError { path: shown(path), cause: shown(error.into_inner().to_string()) }
    })
}
