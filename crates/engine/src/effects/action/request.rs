//! Actions as a hook writes them and as the log keeps them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action that has not been checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub payload: Value,
}
