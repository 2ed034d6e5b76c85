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

mod breach;
mod connection;
mod desk;
mod driver;
mod files;
mod http_server;
mod line;
mod meter;
mod methods;
mod model;
mod opening;
mod permissions;
pub mod server;
mod servers;
mod speech;
mod start;
mod talk;
mod telling;
mod tools;
mod wire;
mod wish;

use std::path::Path;

use windlass_process::{Capture, Environment, Invocation, Spec};

use crate::prompt_run::prompted;

pub use connection::Connection;
pub(crate) use driver::AcpDriver;
pub use line::Attention;
#[cfg(any(test, fuzzing))]
pub(crate) use methods::PROMPT;
pub use opening::OpenOutcome;
pub use permissions::{Permission, Permissions, ToolKind};
pub use servers::McpServer;
pub(crate) use speech::Text;
pub use start::Start;
#[cfg(any(test, fuzzing))]
pub(crate) use talk::{Said, Talk};
pub(crate) use wire::{LINE, Lines};

/// The most standard error that is kept, from its start and its end.
const HEAD: usize = 4 * 1024;
const TAIL: usize = 16 * 1024;

/// Returns the spec of an agent process.
pub fn spec(invocation: Invocation, directory: &Path, environment: Environment) -> Spec {
    prompted(invocation, "", directory, environment, Capture { head: HEAD, tail: TAIL, spill: None })
}
