//! What a hook asks the engine to do, as it was written and is logged.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action that was not looked at yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub payload: Value,
}
