//! The names of the protocol's methods, for both of its sides.

/// The version of the protocol that is spoken here.
pub const VERSION: u64 = 1;

/// What the agent is asked.
pub const INITIALIZE: &str = "initialize";
pub const NEW_SESSION: &str = "session/new";
pub const LOAD_SESSION: &str = "session/load";
pub const RESUME_SESSION: &str = "session/resume";
/// The question that begins a turn.
pub const PROMPT: &str = "session/prompt";
/// Asks the agent to give its turn up. It still answers.
pub const CANCEL: &str = "session/cancel";

/// What the agent says and asks.
pub const UPDATE: &str = "session/update";
pub const REQUEST_PERMISSION: &str = "session/request_permission";
