//! The method names of the protocol, for both sides.

/// The version of the protocol.
pub const PROTOCOL_VERSION: u64 = 1;

/// Requests to the agent.
pub const INITIALIZE: &str = "initialize";
pub const NEW_SESSION: &str = "session/new";
pub const LOAD_SESSION: &str = "session/load";
pub const RESUME_SESSION: &str = "session/resume";
/// The request that begins a turn.
pub const PROMPT: &str = "session/prompt";
/// Asks the agent to cancel its turn. The agent still answers the prompt.
pub const CANCEL: &str = "session/cancel";

/// Notifications and requests of the agent.
pub const SESSION_UPDATE: &str = "session/update";
pub const REQUEST_PERMISSION: &str = "session/request_permission";
