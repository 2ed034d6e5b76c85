//! A response, encoded for an agent.
//!
//! ```text
//! AgentHookResponse ─ AgentContract::adapt_response: the supported part ─► claude or cursor: its encoding ─► AgentHookOutput
//! ```
//!
//! Invariants:
//! - Blocking answers and exit code 2 come from a ruling that blocks, or from a question or an updated input that this agent
//!   supports only as a block.
//! - Standard output is empty or one JSON object, and standard error is not blank with exit code 2.
//! - The caller learns which parts are unsupported.

use serde_json::{Map, Value};

use crate::contract::{AgentContract, claude, cursor};
use crate::{AgentHookEvent, AgentHookResponse, BridgeAgent};

/// The output for an agent, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentHookOutput {
    pub stdout: String,
    pub stderr: String,
    pub exit: u8,
    /// The parts of the response that the agent does not support at this event.
    pub unsupported: Vec<UnsupportedPart>,
}

/// A part of a response that an agent does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnsupportedPart {
    /// The action happens anyway. The user sees the reason against it.
    Block,
    /// The agent continues. If an action is about to happen, it is blocked instead.
    Halt,
    /// The agent decides by its own rules.
    Allow,
    /// The agent cannot ask, so the action is blocked.
    Ask,
    /// The agent does not read the context.
    Context,
    /// The tool is blocked, and the reason names the wanted input.
    UpdatedInput,
    /// The agent reads the tool's own output.
    UpdatedOutput,
    /// The user does not see the message.
    Message,
}

impl AgentHookOutput {
    /// Encodes a response for an agent.
    pub fn new(agent: BridgeAgent, event: AgentHookEvent, response: &AgentHookResponse) -> Self {
        let contract = AgentContract::new(agent, event);
        let (response, unsupported) = contract.adapt_response(response);
        match agent {
            BridgeAgent::Cursor => cursor::encode_output(event, response, unsupported),
            _ => claude::encode_output(&contract, response, unsupported),
        }
    }

    /// Describes for the user what the agent does not support, one line for each part.
    pub fn describe_unsupported(&self, agent: BridgeAgent, event: AgentHookEvent) -> Vec<String> {
        let title = agent.title();
        self.unsupported.iter().filter_map(|part| Some(format!("{title} {}", part.describe_effect(event)?))).collect()
    }

    /// Returns an output with a JSON answer. An empty object becomes empty output.
    pub(crate) fn from_json_object(answer: Map<String, Value>, unsupported: Vec<UnsupportedPart>) -> Self {
        let stdout = if answer.is_empty() { String::new() } else { Value::Object(answer).to_string() };
        Self { stdout, stderr: String::new(), exit: 0, unsupported }
    }
}

impl UnsupportedPart {
    /// Describes the effect for the user. `None` if there is no difference.
    const fn describe_effect(self, event: AgentHookEvent) -> Option<&'static str> {
        match self {
            Self::Block => Some("cannot be stopped at this point: it continues"),
            // The agent ends anyway.
            Self::Halt if matches!(event, AgentHookEvent::Stop | AgentHookEvent::SubagentStop) => None,
            Self::Halt => Some("cannot be ended at this point"),
            Self::Allow => Some("accepts no permission from hooks: it applies its own rules"),
            Self::Ask => Some("cannot ask: the tool is not used"),
            Self::Context => Some("gets no messages from hooks at this point"),
            Self::UpdatedInput => Some(
                "accepts no other tool input from hooks: the tool is not used, and the reason names the wanted input",
            ),
            Self::UpdatedOutput => Some("accepts no other tool output from hooks: it has read the original output"),
            // A notice about it would reach the user in the same way, and be lost as well.
            Self::Message => None,
        }
    }
}

/// Inserts a value into an object, if there is one.
pub(crate) fn insert_if_some(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}
