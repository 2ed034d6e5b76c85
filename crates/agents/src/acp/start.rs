//! The request to start an agent, and the text of its refusals.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::Cost;
use windlass_process::{Launcher, Roster, Spec};

use super::permissions::Permissions;
use super::servers::McpServer;
use super::wire::Refused;

/// The time that an agent has for each answer before the first prompt.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How much of an error's data is shown.
const DATA: usize = 400;

/// A request to start an agent.
pub struct Start<'a> {
    pub launcher: &'a Launcher,
    pub roster: &'a Roster,
    pub spec: &'a Spec,
    pub permissions: &'a Permissions,
    /// The MCP servers that are passed to the agent.
    pub servers: &'a [McpServer],
    /// The model to use. `None` leaves the choice to the agent.
    pub model: Option<&'a str>,
    /// The previous conversation to continue.
    pub before: Option<&'a str>,
    /// The known cost of that conversation.
    pub cost: Cost,
}

/// Describes an error response of an agent.
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
