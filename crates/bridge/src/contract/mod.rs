//! What each agent understands at which event: the table, from which responses are adapted (`adapt`) and worded (`claude`,
//! `cursor`).
//!
//! Every cell was tried with the real program, but Cursor's, which are from its documentation; `docs/bridge.md` has the
//! versions.

mod adapt;
pub mod claude;
pub mod cursor;

#[cfg(test)]
mod tests;

use crate::{Agent, AgentHookEvent};

/// What an agent can be told at an event: a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    pub agent: Agent,
    pub event: AgentHookEvent,
    /// How it hears that something is not to happen.
    pub block: BlockEncoding,
    /// Where it looks for what it is to read.
    pub context: Option<ContextField>,
    /// Whether `continue: false` ends it.
    pub halts: bool,
    /// Whether it can be made to ask the person, and to do without asking.
    pub asks: bool,
    pub allows: bool,
    /// What it calls another input for a tool.
    pub updated_input: Option<&'static str>,
    /// Whether it takes another output of a tool. Not tried; from what Claude Code's program says of itself.
    pub updated_output: bool,
    /// Whether it shows people what an answer says.
    pub shows: bool,
}

/// How something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEncoding {
    /// Not at all.
    Unsupported,
    /// By an answer, by standard error and by exit code 2: no two agents look at the same of these.
    ExitCodeAndJson,
    /// By an answer alone, in which the decision and its reason stand.
    JsonOnly,
    /// The same in the two forms that there are for tools. With exit code 2 some would lose the reason.
    ToolJson,
    /// As something to read.
    Context,
}

/// Where text for the agent stands in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextField {
    /// `hookSpecificOutput.additionalContext`
    Specific,
    /// `additionalContext`
    Top,
    /// `message`
    Message,
}

impl Contract {
    pub fn new(agent: Agent, event: AgentHookEvent) -> Self {
        let is_tool = event == AgentHookEvent::PreToolUse;
        let asks = is_tool && matches!(agent, Agent::Claude | Agent::Qwen | Agent::Copilot);
        Self {
            agent,
            event,
            block: block(agent, event),
            context: context(agent, event),
            halts: halts(agent, event),
            asks,
            allows: asks || (is_tool && agent == Agent::Cursor),
            updated_input: updated_input(agent).filter(|_| is_tool),
            updated_output: event == AgentHookEvent::PostToolUse && agent == Agent::Claude,
            shows: shows(agent, event),
        }
    }
}

fn block(agent: Agent, event: AgentHookEvent) -> BlockEncoding {
    match (event, agent) {
        // Kimi Code does not wait for an answer.
        (AgentHookEvent::SubagentStop | AgentHookEvent::PostToolUse, Agent::Kimi) => BlockEncoding::Unsupported,
        (AgentHookEvent::Stop | AgentHookEvent::SubagentStop, Agent::Cursor) => BlockEncoding::JsonOnly,
        (AgentHookEvent::Stop | AgentHookEvent::SubagentStop, _) => BlockEncoding::ExitCodeAndJson,
        (AgentHookEvent::UserPromptSubmit, Agent::Goose) => BlockEncoding::Unsupported,
        (AgentHookEvent::UserPromptSubmit, Agent::Cursor) => BlockEncoding::JsonOnly,
        (AgentHookEvent::UserPromptSubmit, _) => BlockEncoding::ExitCodeAndJson,
        (AgentHookEvent::PreToolUse, _) => BlockEncoding::ToolJson,
        (AgentHookEvent::PostToolUse, Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Copilot) => {
            BlockEncoding::JsonOnly
        }
        (AgentHookEvent::PostToolUse, Agent::Qwen | Agent::Cursor) => BlockEncoding::Context,
        (AgentHookEvent::PostToolUse, Agent::Goose) => BlockEncoding::Unsupported,
        (
            AgentHookEvent::SessionStart
            | AgentHookEvent::Notification
            | AgentHookEvent::PreCompact
            | AgentHookEvent::SessionEnd,
            _,
        ) => BlockEncoding::Unsupported,
    }
}

/// Claude Code is sent back by context at its Stop: that is a block, and said as one.
fn context(agent: Agent, event: AgentHookEvent) -> Option<ContextField> {
    let reads = match (agent, event) {
        (Agent::Claude | Agent::Codex | Agent::Copilot, AgentHookEvent::PreToolUse) => true,
        (Agent::Kimi, AgentHookEvent::UserPromptSubmit) => true,
        (Agent::Goose | Agent::Kimi, _) => false,
        (Agent::Cursor, AgentHookEvent::UserPromptSubmit) => false,
        (_, AgentHookEvent::SessionStart | AgentHookEvent::UserPromptSubmit | AgentHookEvent::PostToolUse) => true,
        _ => false,
    };
    let place = match agent {
        Agent::Copilot => ContextField::Top,
        Agent::Kimi => ContextField::Message,
        _ => ContextField::Specific,
    };
    reads.then_some(place)
}

/// Qwen Code takes it for a block at Stop, and goes on. Claude Code uses the tool before it ends, so it is denied as well.
fn halts(agent: Agent, event: AgentHookEvent) -> bool {
    match event {
        AgentHookEvent::SessionStart => agent == Agent::Codex,
        AgentHookEvent::UserPromptSubmit => {
            matches!(agent, Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Qwen | Agent::Cursor)
        }
        AgentHookEvent::PreToolUse | AgentHookEvent::PostToolUse => matches!(agent, Agent::Claude | Agent::Gemini),
        AgentHookEvent::Stop | AgentHookEvent::SubagentStop => {
            matches!(agent, Agent::Claude | Agent::Codex | Agent::Gemini)
        }
        AgentHookEvent::Notification | AgentHookEvent::PreCompact | AgentHookEvent::SessionEnd => false,
    }
}

const fn updated_input(agent: Agent) -> Option<&'static str> {
    match agent {
        Agent::Claude | Agent::Codex | Agent::Copilot => Some("updatedInput"),
        Agent::Gemini => Some("tool_input"),
        Agent::Cursor => Some("updated_input"),
        Agent::Qwen | Agent::Goose | Agent::Kimi => None,
    }
}

fn shows(agent: Agent, event: AgentHookEvent) -> bool {
    match agent {
        Agent::Claude | Agent::Gemini | Agent::Qwen => true,
        // It reads no answer any more.
        Agent::Codex => event != AgentHookEvent::SessionEnd,
        Agent::Cursor => event == AgentHookEvent::PreCompact,
        Agent::Copilot | Agent::Goose | Agent::Kimi => false,
    }
}
