//! What an agent is started with, and what it says when it refuses.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::Cost;
use windlass_process::{Launcher, Roster, Spec};

use super::permissions::Permissions;
use super::servers::McpServer;
use super::wire::Refused;

/// How long it may take over each question before the first prompt.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How much of an error's data is told.
const DATA: usize = 400;

/// What an agent is started with.
pub struct Start<'a> {
    pub launcher: &'a Launcher,
    pub roster: &'a Roster,
    pub spec: &'a Spec,
    pub permissions: &'a Permissions,
    /// Servers of tools that it is handed.
    pub servers: &'a [McpServer],
    /// The model that it is to use, if not its own choice.
    pub model: Option<&'a str>,
    /// The conversation that is to be taken up again.
    pub before: Option<&'a str>,
    /// What that has cost, as far as it was told.
    pub cost: Cost,
}

/// What an agent says instead of an answer.
pub fn words(refused: &Refused) -> String {
    let Refused { code, message, data } = refused;
    let data = match data {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => format!(": {text}"),
        Some(other) => format!(": {other}"),
    };
    let data = &data[..data.floor_char_boundary(DATA)];
    format!("{message}{data} (error {code})")
}
