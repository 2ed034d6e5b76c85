//! The contract table: what each agent supports at which event. Responses are adapted to it (`adaptation`) and encoded
//! (`claude`, `cursor`).
//!
//! Every cell was tried with the real program, except those of Cursor, which follow its documentation; `docs/bridge.md`
//! lists the versions.

mod adapt;
pub mod claude;
pub mod cursor;

#[cfg(test)]
mod tests;

use crate::{Agent, AgentHookEvent};

/// A row of the table: what an agent supports at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    pub agent: Agent,
    pub event: AgentHookEvent,
    /// How the agent is told to block.
    pub block: BlockEncoding,
    /// The field from which the agent reads context.
    pub context: Option<ContextField>,
    /// Whether `continue: false` ends the agent.
    pub halts: bool,
    /// Whether the agent can be made to ask the user, and to skip its own question.
    pub asks: bool,
    pub allows: bool,
    /// The agent's key for an updated tool input.
    pub updated_input: Option<&'static str>,
    /// Whether the agent accepts an updated tool output. Not tried: taken from Claude Code's program.
    pub updated_output: bool,
    /// Whether the agent shows the answer's message to the user.
    pub shows: bool,
}

/// The encoding of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEncoding {
    /// The agent cannot be told to block.
    Unsupported,
    /// JSON, standard error and exit code 2 together: agents differ in which of these they read.
    ExitCodeAndJson,
    /// JSON alone, with the decision and its reason.
    JsonOnly,
    /// JSON in both forms that tools have. With exit code 2 some agents would drop the reason.
    ToolJson,
    /// Context for the agent to read.
    Context,
}

/// The field that holds context for the agent.
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
        // Kimi Code does not wait for an answer at these events.
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

/// Returns the field for context. At Stop, Claude Code treats context as a block, so it has no such field there.
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

/// Returns whether `continue: false` ends the agent. Qwen Code treats it as a block at Stop, and continues. Claude Code runs the
/// tool before it ends, so the tool is denied as well.
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
        // Codex no longer reads answers at this event.
        Agent::Codex => event != AgentHookEvent::SessionEnd,
        Agent::Cursor => event == AgentHookEvent::PreCompact,
        Agent::Copilot | Agent::Goose | Agent::Kimi => false,
    }
}
