//! The contract table: what each agent supports at which event. Responses are adapted to it (`adaptation`) and encoded
//! (`claude`, `cursor`).
//!
//! Every cell was tried with the real program, except those of Cursor, which follow its documentation; `docs/reference/bridge.md`
//! lists the versions.

mod adaptation;
pub mod claude;
pub mod cursor;

#[cfg(test)]
mod tests;

use crate::{AgentHookEvent, BridgeAgent};

/// A row of the table: what an agent supports at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentContract {
    pub agent: BridgeAgent,
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
    pub shows_messages: bool,
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

impl AgentContract {
    pub fn new(agent: BridgeAgent, event: AgentHookEvent) -> Self {
        let is_tool = event == AgentHookEvent::PreToolUse;
        let asks = is_tool && matches!(agent, BridgeAgent::Claude | BridgeAgent::Qwen | BridgeAgent::Copilot);
        Self {
            agent,
            event,
            block: block_encoding(agent, event),
            context: context_field(agent, event),
            halts: supports_halt(agent, event),
            asks,
            allows: asks || (is_tool && agent == BridgeAgent::Cursor),
            updated_input: updated_input_key(agent).filter(|_| is_tool),
            updated_output: event == AgentHookEvent::PostToolUse && agent == BridgeAgent::Claude,
            shows_messages: shows_messages(agent, event),
        }
    }
}

fn block_encoding(agent: BridgeAgent, event: AgentHookEvent) -> BlockEncoding {
    match (event, agent) {
        // Kimi Code does not wait for an answer at these events.
        (AgentHookEvent::SubagentStop | AgentHookEvent::PostToolUse, BridgeAgent::Kimi) => BlockEncoding::Unsupported,
        (AgentHookEvent::Stop | AgentHookEvent::SubagentStop, BridgeAgent::Cursor) => BlockEncoding::JsonOnly,
        (AgentHookEvent::Stop | AgentHookEvent::SubagentStop, _) => BlockEncoding::ExitCodeAndJson,
        (AgentHookEvent::UserPromptSubmit, BridgeAgent::Goose) => BlockEncoding::Unsupported,
        (AgentHookEvent::UserPromptSubmit, BridgeAgent::Cursor) => BlockEncoding::JsonOnly,
        (AgentHookEvent::UserPromptSubmit, _) => BlockEncoding::ExitCodeAndJson,
        (AgentHookEvent::PreToolUse, _) => BlockEncoding::ToolJson,
        (
            AgentHookEvent::PostToolUse,
            BridgeAgent::Claude | BridgeAgent::Codex | BridgeAgent::Gemini | BridgeAgent::Copilot,
        ) => BlockEncoding::JsonOnly,
        (AgentHookEvent::PostToolUse, BridgeAgent::Qwen | BridgeAgent::Cursor) => BlockEncoding::Context,
        (AgentHookEvent::PostToolUse, BridgeAgent::Goose) => BlockEncoding::Unsupported,
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
fn context_field(agent: BridgeAgent, event: AgentHookEvent) -> Option<ContextField> {
    let reads = match (agent, event) {
        (BridgeAgent::Claude | BridgeAgent::Codex | BridgeAgent::Copilot, AgentHookEvent::PreToolUse) => true,
        (BridgeAgent::Kimi, AgentHookEvent::UserPromptSubmit) => true,
        (BridgeAgent::Goose | BridgeAgent::Kimi, _) => false,
        (BridgeAgent::Cursor, AgentHookEvent::UserPromptSubmit) => false,
        (_, AgentHookEvent::SessionStart | AgentHookEvent::UserPromptSubmit | AgentHookEvent::PostToolUse) => true,
        _ => false,
    };
    let place = match agent {
        BridgeAgent::Copilot => ContextField::Top,
        BridgeAgent::Kimi => ContextField::Message,
        _ => ContextField::Specific,
    };
    reads.then_some(place)
}

/// Returns whether `continue: false` ends the agent. Qwen Code treats it as a block at Stop, and continues. Claude Code runs the
/// tool before it ends, so the tool is denied as well.
fn supports_halt(agent: BridgeAgent, event: AgentHookEvent) -> bool {
    match event {
        AgentHookEvent::SessionStart => agent == BridgeAgent::Codex,
        AgentHookEvent::UserPromptSubmit => {
            matches!(
                agent,
                BridgeAgent::Claude
                    | BridgeAgent::Codex
                    | BridgeAgent::Gemini
                    | BridgeAgent::Qwen
                    | BridgeAgent::Cursor
            )
        }
        AgentHookEvent::PreToolUse | AgentHookEvent::PostToolUse => {
            matches!(agent, BridgeAgent::Claude | BridgeAgent::Gemini)
        }
        AgentHookEvent::Stop | AgentHookEvent::SubagentStop => {
            matches!(agent, BridgeAgent::Claude | BridgeAgent::Codex | BridgeAgent::Gemini)
        }
        AgentHookEvent::Notification | AgentHookEvent::PreCompact | AgentHookEvent::SessionEnd => false,
    }
}

const fn updated_input_key(agent: BridgeAgent) -> Option<&'static str> {
    match agent {
        BridgeAgent::Claude | BridgeAgent::Codex | BridgeAgent::Copilot => Some("updatedInput"),
        BridgeAgent::Gemini => Some("tool_input"),
        BridgeAgent::Cursor => Some("updated_input"),
        BridgeAgent::Qwen | BridgeAgent::Goose | BridgeAgent::Kimi => None,
    }
}

fn shows_messages(agent: BridgeAgent, event: AgentHookEvent) -> bool {
    match agent {
        BridgeAgent::Claude | BridgeAgent::Gemini | BridgeAgent::Qwen => true,
        // Codex no longer reads answers at this event.
        BridgeAgent::Codex => event != AgentHookEvent::SessionEnd,
        BridgeAgent::Cursor => event == AgentHookEvent::PreCompact,
        BridgeAgent::Copilot | BridgeAgent::Goose | BridgeAgent::Kimi => false,
    }
}
