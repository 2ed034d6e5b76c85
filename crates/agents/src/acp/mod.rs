//! Agents that speak the Agent Client Protocol: JSON-RPC over their standard input and output, one message a line.
//!
//! The agent process stays from turn to turn and remembers. Windlass serves its requests (files, commands) during the turn;
//! a policy answers its permission requests at once, without asking a person.
//!
//! ```text
//!   json_rpc ─► client ─► AcpEvent ─► channel ─► client_services: files, programs beside the agent
//!                                         └──► transcript: what observers see, and the record of the turn
//!   driver ─► handshake: up to a conversation       connection: from prompt to prompt
//!   server: the other side, for the scripted agent  methods, json_rpc: the messages of both sides
//! ```
//!
//! The messages are written by hand (ADR 0036).

mod channel;
mod client;
mod client_request;
mod client_services;
mod connection;
mod driver;
mod files;
mod final_message;
mod handshake;
mod http_server;
mod json_rpc;
mod mcp_server;
mod methods;
mod model_choice;
mod permissions;
mod protocol_error;
pub mod server;
mod start_request;
mod tool_use;
mod transcript;
mod usage_meter;

use std::path::Path;

use windlass_process::{CaptureLimits, Environment, ProgramInvocation, ProgramSpec};

use crate::prompt_spec::build_prompt_spec;

pub use channel::TurnContext;
#[cfg(any(test, fuzzing))]
pub(crate) use client::{AcpClient, AcpEvent};
pub use connection::AcpConnection;
pub(crate) use driver::AcpDriver;
pub(crate) use final_message::ClippedText;
pub use handshake::HandshakeOutcome;
pub(crate) use json_rpc::{BoundedLineBuffer, MAX_LINE_LENGTH};
pub use mcp_server::McpServer;
#[cfg(any(test, fuzzing))]
pub(crate) use methods::PROMPT;
pub use permissions::{AgentPermissions, ToolKind, ToolPermission};
pub use start_request::AgentStartRequest;

/// The most standard error that is kept, from its start and its end.
const MAX_CAPTURED_HEAD: usize = 4 * 1024;
const MAX_CAPTURED_TAIL: usize = 16 * 1024;

/// Returns the spec of an agent process.
pub fn build_agent_spec(invocation: ProgramInvocation, directory: &Path, environment: Environment) -> ProgramSpec {
    build_prompt_spec(
        invocation,
        "",
        directory,
        environment,
        CaptureLimits { head: MAX_CAPTURED_HEAD, tail: MAX_CAPTURED_TAIL, spill: None },
    )
}
