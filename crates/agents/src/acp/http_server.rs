//! An MCP server that listens on a local address, for an agent that ignores servers which are programs.
//!
//! ```text
//!   start_server ─► first line: url, token ─► entry of `mcpServers` ─► ended with the agent
//! ```
//!
//! Invariants:
//! - The server makes the token. It is on no command line and in no environment: only this process and the agent have it.
//! - Dropping the value ends the server.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_process::{
    CaptureLimits, InteractiveProcess, ProcessEvent, ProgramInvocation, ProgramSpec, overlay_environment,
};

use super::json_rpc::BoundedLineBuffer;
use super::mcp_server::McpServer;
use super::start_request::{AgentStartRequest, OPENING_ANSWER_TIMEOUT};
use crate::agent::quote_shell_word;
use crate::{TurnBudget, TurnEnd};

/// The longest first line that is read.
const MAX_FIRST_LINE: usize = 4 * 1024;
/// The most standard error that is kept, to explain a failed start.
const MAX_CAPTURED_STDERR: usize = 4 * 1024;
/// Users set this variable for a server of their own. If it is empty, the server makes a token and prints it.
const TOKEN_VARIABLE: &str = "WINDLASS_MCP_TOKEN";

/// An MCP server that listens for HTTP.
pub struct McpHttpServer {
    /// Ends the server when dropped.
    live: InteractiveProcess,
    /// The server as an entry of `mcpServers`.
    pub entry: Value,
}

impl McpHttpServer {
    /// Starts a server and waits until it prints its address. If it does not, the result is [`TurnEnd::Broken`].
    pub fn start_server(
        server: &McpServer,
        start: &AgentStartRequest<'_>,
        budget: &mut TurnBudget,
    ) -> Result<Self, TurnEnd> {
        let spec = build_server_spec(server, start.spec);
        let mut live = InteractiveProcess::start(start.launcher, &spec, start.owner_lock)
            .map_err(|error| TurnEnd::Broken(error.to_string()))?;
        let line = match read_first_line(&mut live, budget) {
            Ok(line) => line,
            Err(TurnEnd::Broken(why)) => {
                let stderr = live.kill_tree().stderr.to_text_lossy();
                let cause = stderr.lines().find(|line| !line.trim().is_empty());
                return Err(TurnEnd::Broken(cause.map_or(why.clone(), |cause| format!("{why}: {}", cause.trim()))));
            }
            Err(cancelled) => return Err(cancelled),
        };
        let entry = build_server_entry(&server.name, &line);
        let entry = entry.ok_or_else(|| TurnEnd::Broken("it does not say where it listens".to_owned()))?;
        // No further output is read, and a full pipe would block the server.
        live.close_output();
        Ok(Self { live, entry })
    }

    /// Returns whether the server still runs.
    pub fn is_running(&mut self) -> bool {
        !self.live.has_ended()
    }
}

/// Returns the command that starts a server, quoted for a shell.
pub fn format_shell_command(server: &McpServer) -> String {
    let command = server.command.to_string_lossy();
    let words: Vec<_> =
        std::iter::once(&*command).chain(server.http_args.iter().map(String::as_str)).map(quote_shell_word).collect();
    words.join(" ")
}

/// Returns the spec of the server's program: the directory and environment of the agent, as if the agent started it.
fn build_server_spec(server: &McpServer, agent: &ProgramSpec) -> ProgramSpec {
    let words = std::iter::once(server.command.clone().into()).chain(server.http_args.iter().map(OsString::from));
    let added = server.env.iter().map(|(name, value)| (name.as_str(), value.into()));
    let added = added.chain([(TOKEN_VARIABLE, OsString::new())]).collect();
    ProgramSpec {
        grace: Duration::from_secs(1),
        capture: CaptureLimits { head: MAX_CAPTURED_STDERR, tail: 0, spill: None },
        ..ProgramSpec::new(
            ProgramInvocation::Argv(words.collect()),
            &agent.directory,
            overlay_environment(&agent.environment, added),
        )
    }
}

/// Reads the first line of the server's output.
fn read_first_line(live: &mut InteractiveProcess, budget: &mut TurnBudget) -> Result<Vec<u8>, TurnEnd> {
    let failed = |why: &str| TurnEnd::Broken(why.to_owned());
    let mut session_io = live.open_session(&budget.control).map_err(|error| failed(&error.to_string()))?;
    let mut lines = BoundedLineBuffer::new(MAX_FIRST_LINE);
    loop {
        if let Some(line) = lines.next().map_err(|breach| failed(&breach.to_string()))? {
            return Ok(line);
        }
        match session_io.next_event(&mut budget.until) {
            ProcessEvent::Output(bytes) => lines.push(&bytes),
            ProcessEvent::BackgroundEnded => {}
            ProcessEvent::OutputEnded => return Err(failed("it ended before it listened")),
            ProcessEvent::DeadlinePassed => {
                return Err(failed(&format!(
                    "it does not say within {} s where it listens",
                    OPENING_ANSWER_TIMEOUT.as_secs()
                )));
            }
            ProcessEvent::Cancelled | ProcessEvent::Killed => return Err(TurnEnd::Cancelled),
        }
    }
}

/// Returns the entry of `mcpServers` for a server that has printed this line.
fn build_server_entry(name: &str, line: &[u8]) -> Option<Value> {
    let said: Value = serde_json::from_slice(line).ok()?;
    let (url, token) = (said["url"].as_str()?, said["token"].as_str()?);
    let headers = json!([{"name": "Authorization", "value": format!("Bearer {token}")}]);
    Some(json!({"type": "http", "name": name, "url": url, "headers": headers}))
}
