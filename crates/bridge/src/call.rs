//! What an agent says when it calls, in one set of words: Claude Code's, whoever calls.

use serde_json::{Map, Value};

use crate::{Agent, Moment};

/// An agent's hook system at one moment of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub agent: Agent,
    pub moment: Moment,
    /// Which conversation it is, as the agent names it.
    pub conversation: Option<String>,
    /// Where the agent works.
    pub directory: Option<String>,
    /// Whether the agent is going on because a stop hook has sent it back, where it says so.
    pub is_sent_back: Option<bool>,
    /// What the agent said last, where it says so.
    pub last_message: Option<String>,
    /// What a person has asked for.
    pub prompt: Option<String>,
    pub tool: Option<Tool>,
    /// Everything that it said, with Claude Code's names for what has one.
    pub payload: Map<String, Value>,
}

/// The tool that is about to be used, or was.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Claude Code's name for it, if there is one.
    pub name: String,
    /// The agent's own name.
    pub own_name: String,
    pub input: Map<String, Value>,
}

/// What cannot be understood of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCall {
    #[error("standard input is empty; an agent's hook system writes a JSON object there")]
    Nothing,
    #[error("standard input is no JSON object: {0}")]
    NoObject(String),
    #[error("`{field}` is {found}, not {wanted}")]
    Field { field: &'static str, found: String, wanted: &'static str },
}

impl Call {
    pub fn read(agent: Agent, moment: Moment, bytes: &[u8]) -> Result<Self, BadCall> {
        if bytes.trim_ascii().is_empty() {
            return Err(BadCall::Nothing);
        }
        let payload: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| BadCall::NoObject(error.to_string()))?;
        let text = |field: &str| payload.get(field).and_then(Value::as_str).map(str::to_owned);
        let tool = text("tool_name").map(|name| Tool {
            own_name: name.clone(),
            name,
            input: payload.get("tool_input").and_then(Value::as_object).cloned().unwrap_or_default(),
        });
        Ok(Self {
            agent,
            moment,
            conversation: text("session_id"),
            directory: text("cwd"),
            is_sent_back: payload.get("stop_hook_active").and_then(Value::as_bool),
            last_message: text("last_assistant_message"),
            prompt: text("prompt"),
            tool,
            payload,
        })
    }
}
