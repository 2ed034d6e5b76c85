//! Servers of tools that an agent is handed with a conversation: programs that speak the Model Context Protocol.

use std::path::PathBuf;

use serde_json::{Value, json};

/// A program that serves tools over its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    /// By its whole path: agents do not all look programs up.
    pub command: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl McpServer {
    /// As the protocol has it: what has no type is a program.
    pub fn value(&self) -> Value {
        let env: Vec<Value> = self.env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({"name": self.name, "command": self.command, "args": self.args, "env": env})
    }

    /// As an agent takes it, if it is a program.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
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
        })
    }
}
