//! A client of the scripted agent's MCP servers. It implements only what a tool call needs.
//!
//! ```text
//!   set_servers ─► started at the first call ─► initialize ─► tools/call … tools/call ─► ended with the agent
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_process::{CaptureLimits, InteractiveProcess, ProcessEvent, ProgramInvocation, ProgramSpec, RunControl};

use super::player::ScriptSetting;
use crate::acp::json_rpc::{BoundedLineBuffer, JsonRpcError, JsonRpcMessage, NO_SUCH_METHOD};
use crate::acp::mcp_server::McpServer;

/// The protocol revision of this client.
const PROTOCOL_REVISION: &str = "2025-11-25";
/// The longest time that a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The most standard error that is kept of a server.
const MAX_CAPTURED_STDERR: usize = 4 * 1024;
/// Variables that a server inherits. Like other agents, the scripted agent passes on nothing else.
const INHERITED_VARIABLES: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// The configured servers and the started ones.
#[derive(Default)]
pub struct McpClients {
    handed: Vec<McpServer>,
    started: BTreeMap<String, McpClient>,
}

impl McpClients {
    /// Replaces the servers with those of a new conversation.
    pub fn set_servers(&mut self, params: &Value) {
        let servers = params["mcpServers"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.handed = servers.iter().filter_map(McpServer::from_protocol_value).collect();
        self.started.clear();
    }

    /// Calls a tool. Returns whether it succeeded, and its answer as text. The error says why there is no answer.
    pub fn call_tool(
        &mut self,
        server: &str,
        (tool, arguments): (&str, &Value),
        (setting, directory, control): (&ScriptSetting<'_>, &Path, &RunControl),
    ) -> Result<(bool, String), String> {
        let mut client = match self.started.remove(server) {
            Some(client) => client,
            None => {
                let found = self.handed.iter().find(|handed| handed.name == server);
                let found = found.ok_or_else(|| format!("no server `{server}` was handed to the agent"))?;
                McpClient::start_server(found, setting, directory, control)?
            }
        };
        let answer = client.send_request("tools/call", json!({"name": tool, "arguments": arguments}), control)?;
        // A server that failed to answer above is dropped and not asked again.
        self.started.insert(server.to_owned(), client);
        let answer = answer.map_err(|refused| format!("{} ({})", refused.message, refused.code))?;
        let parts = answer["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        Ok((answer["isError"] != true, text.join("\n")))
    }
}

/// A started server.
struct McpClient {
    live: InteractiveProcess,
    lines: BoundedLineBuffer,
    asked: u64,
}

impl McpClient {
    fn start_server(
        server: &McpServer,
        setting: &ScriptSetting<'_>,
        directory: &Path,
        control: &RunControl,
    ) -> Result<Self, String> {
        let words = std::iter::once(server.command.clone().into()).chain(server.args.iter().map(Into::into));
        let passed_on = |name: &std::ffi::OsStr| INHERITED_VARIABLES.iter().any(|passed| name == *passed);
        let around = setting.environment.iter().filter(|(name, _)| passed_on(name)).cloned();
        let environment = around.chain(server.env.iter().map(|(name, value)| (name.into(), value.into()))).collect();
        let spec = ProgramSpec {
            grace: Duration::from_secs(1),
            capture: CaptureLimits { head: MAX_CAPTURED_STDERR, tail: MAX_CAPTURED_STDERR, spill: None },
            ..ProgramSpec::new(ProgramInvocation::Argv(words.collect()), directory, environment)
        };
        let live = InteractiveProcess::start(setting.launcher, &spec, setting.owner_lock)
            .map_err(|error| error.to_string())?;
        let mut client = Self { live, lines: BoundedLineBuffer::default(), asked: 0 };
        let greeting = json!({
            "protocolVersion": PROTOCOL_REVISION,
            "capabilities": {},
            "clientInfo": {"name": "windlass-scripted", "version": env!("CARGO_PKG_VERSION")},
        });
        let greeted = client.send_request("initialize", greeting, control)?;
        greeted.map_err(|refused| format!("the server refused `initialize`: {}", refused.message))?;
        let ready = JsonRpcMessage::Notice { method: "notifications/initialized".to_owned(), params: json!({}) };
        let mut session_io = client.live.open_session(control).map_err(|error| error.to_string())?;
        session_io.send_input(&ready.to_line());
        drop(session_io);
        Ok(client)
    }

    /// Sends a request and waits for the answer. Requests of the server are refused meanwhile.
    fn send_request(
        &mut self,
        method: &str,
        params: Value,
        control: &RunControl,
    ) -> Result<Result<Value, JsonRpcError>, String> {
        self.asked += 1;
        let id = json!(self.asked);
        let mut session_io = self.live.open_session(control).map_err(|error| error.to_string())?;
        session_io.send_input(&JsonRpcMessage::Request { id: id.clone(), method: method.to_owned(), params }.to_line());
        let mut until = Some(Instant::now() + ANSWER_TIMEOUT);
        loop {
            while let Some(line) = self.lines.next().map_err(|breach| breach.to_string())? {
                match JsonRpcMessage::parse_line(&line) {
                    Ok(JsonRpcMessage::Answer { id: answered, outcome }) if answered == id => return Ok(outcome),
                    Ok(JsonRpcMessage::Request { id, .. }) => {
                        let outcome = Err(JsonRpcError::new(NO_SUCH_METHOD, "nothing is served here"));
                        session_io.send_input(&JsonRpcMessage::Answer { id, outcome }.to_line());
                    }
                    Ok(_) => {}
                    Err(breach) => return Err(format!("the server broke the protocol: {breach}")),
                }
            }
            match session_io.next_event(&mut until) {
                ProcessEvent::Output(bytes) => self.lines.push(&bytes),
                ProcessEvent::BackgroundEnded => {}
                ProcessEvent::OutputEnded => return Err(format!("the server ended before it answered `{method}`")),
                ProcessEvent::DeadlinePassed => return Err(format!("the server did not answer `{method}`")),
                ProcessEvent::Cancelled | ProcessEvent::Killed => return Err("cancelled".to_owned()),
            }
        }
    }
}
