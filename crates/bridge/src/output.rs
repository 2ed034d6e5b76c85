//! A response as it is written for an agent.
//!
//! ```text
//! AgentHookResponse ─ Contract::adapt: what this agent can be told at this event ─► claude or cursor: how it is worded
//!                                                                                       └─► AgentHookOutput
//! ```
//!
//! Invariants:
//! - Words that block, and exit code 2, come from a ruling that blocks, or from a question or another input that this
//!   agent knows no milder word for.
//! - Standard output is empty or one JSON object, standard error is not blank with exit code 2.
//! - What cannot be said is told to the caller.

use serde_json::{Map, Value};

use crate::contract::{Contract, claude, cursor};
use crate::{Agent, AgentHookEvent, AgentHookResponse};

/// What is written for the agent, and with what we exit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentHookOutput {
    pub stdout: String,
    pub stderr: String,
    pub exit: u8,
    /// What the agent has no words for at this event.
    pub unsupported: Vec<Unsupported>,
}

/// A part of a response that an agent cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unsupported {
    /// It happens all the same. The person is told why it should not.
    Block,
    /// It goes on. Where something is about to happen, that is blocked instead.
    Halt,
    /// It decides by its own rules.
    Allow,
    /// It cannot ask, so that it does not happen.
    Ask,
    /// It does not read it.
    Context,
    /// The tool is not used, and the agent is told which input is wanted.
    UpdatedInput,
    /// It reads what the tool answered.
    UpdatedOutput,
    /// The person does not see it.
    Message,
}

impl AgentHookOutput {
    /// Words a response for an agent.
    pub fn new(agent: Agent, event: AgentHookEvent, response: &AgentHookResponse) -> Self {
        let contract = Contract::new(agent, event);
        let (response, unsupported) = contract.adapt(response);
        match agent {
            Agent::Cursor => cursor::output(event, response, unsupported),
            _ => claude::output(&contract, response, unsupported),
        }
    }

    /// Returns what people should know of what the agent could not be told, a line for each.
    pub fn left_out(&self, agent: Agent, event: AgentHookEvent) -> Vec<String> {
        let title = agent.title();
        self.unsupported.iter().filter_map(|part| Some(format!("{title} {}", part.told(event)?))).collect()
    }

    /// An answer that may have nothing in it.
    pub(crate) fn answer(answer: Map<String, Value>, unsupported: Vec<Unsupported>) -> Self {
        let stdout = if answer.is_empty() { String::new() } else { Value::Object(answer).to_string() };
        Self { stdout, stderr: String::new(), exit: 0, unsupported }
    }
}

impl Unsupported {
    /// What it means for people; nothing where it makes no difference to them.
    const fn told(self, event: AgentHookEvent) -> Option<&'static str> {
        match self {
            Self::Block => Some("cannot be held back at this point: it goes on all the same"),
            // It ends anyway.
            Self::Halt if matches!(event, AgentHookEvent::Stop | AgentHookEvent::SubagentStop) => None,
            Self::Halt => Some("cannot be made to end at this point"),
            Self::Allow => Some("takes no permission from hooks: it decides by its own rules"),
            Self::Ask => Some("cannot be made to ask: the tool is not used"),
            Self::Context => Some("cannot be told anything at this point"),
            Self::UpdatedInput => {
                Some("cannot be given another input for a tool: it is not used, and the reason says what is wanted")
            }
            Self::UpdatedOutput => {
                Some("takes no other answer of a tool from hooks: it has read the one that there was")
            }
            // Whoever would read it does not.
            Self::Message => None,
        }
    }
}

/// Puts something into an object, if there is something.
pub(crate) fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}
