//! A client of the scripted agent's MCP servers. It implements only what a tool call needs.
//!
//! ```text
//!   set_servers ─► started at the first call ─► initialize ─► tools/call … tools/call ─► ended with the agent
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_process::{Capture, Control, Heard, Invocation, Live, Spec};

use super::player::ScriptSetting;
use crate::acp::servers::McpServer;
use crate::acp::wire::{Lines, Message, NO_SUCH_METHOD, Refused};

/// The protocol revision of this client.
const REVISION: &str = "2025-11-25";
/// The longest time that a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most standard error that is kept of a server.
const COMPLAINTS: usize = 4 * 1024;
/// Variables that a server inherits. Like other agents, the scripted agent passes on nothing else.
const PASSED_ON: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// The configured servers and the started ones.
#[derive(Default)]
pub struct Servers {
    handed: Vec<McpServer>,
    started: BTreeMap<String, Client>,
}

impl Servers {
    /// Replaces the servers with those of a new conversation.
    pub fn handed(&mut self, params: &Value) {
        let servers = params["mcpServers"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.handed = servers.iter().filter_map(McpServer::parse).collect();
        self.started.clear();
    }

    /// Calls a tool. Returns whether it succeeded, and its answer as text. The error says why there is no answer.
    pub fn call(
        &mut self,
        server: &str,
        (tool, arguments): (&str, &Value),
        (setting, directory, control): (&ScriptSetting<'_>, &Path, &Control),
    ) -> Result<(bool, String), String> {
        let mut client = match self.started.remove(server) {
            Some(client) => client,
            None => {
                let found = self.handed.iter().find(|handed| handed.name == server);
                let found = found.ok_or_else(|| format!("no server `{server}` was handed to the agent"))?;
                Client::start(found, setting, directory, control)?
            }
        };
        let answer = client.ask("tools/call", json!({"name": tool, "arguments": arguments}), control)?;
        // A server that failed to answer above is dropped and not asked again.
        self.started.insert(server.to_owned(), client);
        let answer = answer.map_err(|refused| format!("{} ({})", refused.message, refused.code))?;
        let parts = answer["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        Ok((answer["isError"] != true, text.join("\n")))
    }
}

/// A started server.
struct Client {
    live: Live,
    lines: Lines,
    asked: u64,
}

impl Client {
    fn start(
        server: &McpServer,
        setting: &ScriptSetting<'_>,
        directory: &Path,
        control: &Control,
    ) -> Result<Self, String> {
        let words = std::iter::once(server.command.clone().into()).chain(server.args.iter().map(Into::into));
        let passed_on = |name: &std::ffi::OsStr| PASSED_ON.iter().any(|passed| name == *passed);
        let around = setting.environment.iter().filter(|(name, _)| passed_on(name)).cloned();
        let environment = around.chain(server.env.iter().map(|(name, value)| (name.into(), value.into()))).collect();
        let spec = Spec {
            grace: Duration::from_secs(1),
            capture: Capture { head: COMPLAINTS, tail: COMPLAINTS, spill: None },
            ..Spec::new(Invocation::Argv(words.collect()), directory, environment)
        };
        let live = Live::start(setting.launcher, &spec, setting.roster).map_err(|error| error.to_string())?;
        let mut client = Self { live, lines: Lines::default(), asked: 0 };
        let greeting = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "windlass-scripted", "version": env!("CARGO_PKG_VERSION")},
        });
        let greeted = client.ask("initialize", greeting, control)?;
        greeted.map_err(|refused| format!("the server refused `initialize`: {}", refused.message))?;
        let ready = Message::Notice { method: "notifications/initialized".to_owned(), params: json!({}) };
        let mut attended = client.live.attend(control).map_err(|error| error.to_string())?;
        attended.say(&ready.line());
        drop(attended);
        Ok(client)
    }

    /// Sends a request and waits for the answer. Requests of the server are refused meanwhile.
    fn ask(&mut self, method: &str, params: Value, control: &Control) -> Result<Result<Value, Refused>, String> {
        self.asked += 1;
        let id = json!(self.asked);
        let mut attended = self.live.attend(control).map_err(|error| error.to_string())?;
        attended.say(&Message::Request { id: id.clone(), method: method.to_owned(), params }.line());
        let mut until = Some(Instant::now() + PATIENCE);
        loop {
            while let Some(line) = self.lines.next().map_err(|breach| breach.to_string())? {
                match Message::parse(&line) {
                    Ok(Message::Answer { id: answered, outcome }) if answered == id => return Ok(outcome),
                    Ok(Message::Request { id, .. }) => {
                        let outcome = Err(Refused::new(NO_SUCH_METHOD, "nothing is served here"));
                        attended.say(&Message::Answer { id, outcome }.line());
                    }
                    Ok(_) => {}
                    Err(breach) => return Err(format!("the server broke the protocol: {breach}")),
                }
            }
            match attended.hear(&mut until) {
                Heard::Said(bytes) => self.lines.push(&bytes),
                Heard::Beside => {}
                Heard::Over => return Err(format!("the server ended before it answered `{method}`")),
                Heard::Late => return Err(format!("the server did not answer `{method}`")),
                Heard::Cancelled | Heard::Killed => return Err("cancelled".to_owned()),
            }
        }
    }
}
