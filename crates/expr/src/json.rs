//! Deserialization of untrusted JSON, with errors that name the path of the faulty part.

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Maximum length of a cause, which may quote the input.
const MAX_CAUSE_CHARACTERS: usize = 300;

/// The reason why a value cannot be deserialized, and the path of the faulty part.
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

/// Returns the index of the first list among values that must be objects. serde would read the items of a list as the fields of a
/// struct, by their order.
pub fn find_list_value<'v>(values: impl IntoIterator<Item = &'v Value>) -> Option<usize> {
    values.into_iter().position(Value::is_array)
}

/// Deserializes a value. The error shows hostile text as one short line.
pub fn read_json<'de, T: Deserialize<'de>>(
    from: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(from).map_err(|error| {
        let shown = |text: String| -> String {
            text.chars()
                .take(MAX_CAUSE_CHARACTERS)
                .map(|letter| if letter.is_control() { ' ' } else { letter })
                .collect()
        };
        let path = Some(error.path().to_string()).filter(|path| path != ".").unwrap_or_default();
        FieldError { path: shown(path), cause: shown(error.into_inner().to_string()) }
    })
}
