//! The request to start an agent, and the text of its refusals.

use std::time::Duration;

use serde_json::Value;
use windlass_engine::UsdCost;
use windlass_process::{OwnerLock, ProgramSpec, SupervisorLauncher};

use super::json_rpc::JsonRpcError;
use super::mcp_server::McpServer;
use super::permissions::AgentPermissions;

/// The time that an agent has for each answer before the first prompt.
pub const OPENING_ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How much of an error's data is shown.
const MAX_ERROR_DATA_LENGTH: usize = 400;

/// A request to start an agent.
pub struct AgentStartRequest<'a> {
    pub launcher: &'a SupervisorLauncher,
    pub owner_lock: &'a OwnerLock,
    pub spec: &'a ProgramSpec,
    pub permissions: &'a AgentPermissions,
    /// The MCP servers that are passed to the agent.
    pub servers: &'a [McpServer],
    /// The model to use. `None` leaves the choice to the agent.
    pub model: Option<&'a str>,
    /// The previous conversation to continue.
    pub before: Option<&'a str>,
    /// The known cost of that conversation.
    pub cost: UsdCost,
}

/// Describes an error response of an agent.
pub fn describe_rpc_error(refused: &JsonRpcError) -> String {
    let JsonRpcError { code, message, data } = refused;
    let data = match data {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => format!(": {text}"),
        Some(other) => format!(": {other}"),
    };
    let data = &data[..data.floor_char_boundary(MAX_ERROR_DATA_LENGTH)];
    format!("{message}{data} (error {code})")
}
