//! MCP servers that Windlass passes to an agent with a conversation.

use std::path::PathBuf;

use serde_json::{Value, json};

/// A program that serves tools over its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    /// An absolute path: some agents do not search `PATH`.
    pub command: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The arguments with which the program serves over HTTP instead, and prints `{"url": …, "token": …}` as its first line.
    /// Empty for a program that cannot.
    pub http_args: Vec<String>,
}

/// How an agent reaches an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTransport {
    /// The agent starts the program.
    Stdio,
    /// The program listens on a local address.
    Http,
}

/// Agents that ignore servers which are programs, by the name in their answer to `initialize`.
const AGENTS_IGNORING_PROGRAMS: [&str; 1] = ["Copilot"];

impl ServerTransport {
    /// Returns HTTP for an agent that ignores programs and accepts HTTP servers. The protocol requires every agent to accept
    /// programs, so all others get those.
    pub fn for_agent(greeting: &Value) -> Self {
        let name = greeting["agentInfo"]["name"].as_str().unwrap_or_default();
        let takes_http = greeting["agentCapabilities"]["mcpCapabilities"]["http"] == true;
        if takes_http && AGENTS_IGNORING_PROGRAMS.contains(&name) { Self::Http } else { Self::Stdio }
    }
}

impl McpServer {
    /// Encodes the server for the protocol, where an entry without a type is a program.
    pub fn to_protocol_value(&self) -> Value {
        let env: Vec<Value> = self.env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({"name": self.name, "command": self.command, "args": self.args, "env": env})
    }

    /// Parses an entry of `mcpServers`, if it is a program.
    pub(crate) fn from_protocol_value(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let list = |key: &str| value[key].as_array().map(Vec::as_slice).unwrap_or_default();
        Some(Self {
            name: text(&value["name"])?,
            command: text(&value["command"])?.into(),
            args: list("args").iter().map(text).collect::<Option<_>>()?,
            env: list("env")
                .iter()
                .map(|pair| Some((text(&pair["name"])?, text(&pair["value"])?)))
                .collect::<Option<_>>()?,
            http_args: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_is_http_only_for_an_agent_that_ignores_programs_and_takes_http() {
        let check = |name: Option<&str>, http: Value, expected: ServerTransport| {
            let greeting = json!({
                "protocolVersion": 1,
                "agentInfo": {"name": name},
                "agentCapabilities": {"mcpCapabilities": {"http": http, "sse": true}},
            });
            assert_eq!(ServerTransport::of_agent(&greeting), expected, "{greeting}");
        };
        check(Some("Copilot"), json!(true), ServerTransport::Http);
        check(Some("Copilot"), json!(false), ServerTransport::Stdio);
        check(Some("Copilot"), Value::Null, ServerTransport::Stdio);
        check(Some("goose"), json!(true), ServerTransport::Stdio);
        check(None, json!(true), ServerTransport::Stdio);
        assert_eq!(ServerTransport::of_agent(&json!({"protocolVersion": 1})), ServerTransport::Stdio);
    }
}
