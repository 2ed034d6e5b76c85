//! What each agent understands at which moment.
//!
//! Every cell was tried with the real program, but Cursor's, which are from its documentation; `docs/bridge.md` has the
//! versions.

use crate::{Agent, Moment};

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// How it hears that something is not to happen.
    pub no: No,
    /// Where it looks for what it is to read.
    pub context: Option<Place>,
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
pub enum No {
    /// Not at all.
    Never,
    /// By an answer, by standard error and by exit code 2: no two agents look at the same of these.
    Aloud,
    /// By an answer alone, in which the decision and its reason stand.
    Quietly,
    /// The same in the two forms that there are for tools. With exit code 2 some would lose the reason.
    Twice,
    /// As something to read.
    AsContext,
}

/// Where text for the agent stands in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `hookSpecificOutput.additionalContext`
    Specific,
    /// `additionalContext`
    Top,
    /// `message`
    Message,
}

impl Contract {
    pub fn of(agent: Agent, moment: Moment) -> Self {
        let is_tool = moment == Moment::PreToolUse;
        let asks = is_tool && matches!(agent, Agent::Claude | Agent::Qwen | Agent::Copilot);
        Self {
            no: no(agent, moment),
            context: context(agent, moment),
            halts: halts(agent, moment),
            asks,
            allows: asks || (is_tool && agent == Agent::Cursor),
            updated_input: updated_input(agent).filter(|_| is_tool),
            updated_output: moment == Moment::PostToolUse && agent == Agent::Claude,
            shows: shows(agent, moment),
        }
    }
}

fn no(agent: Agent, moment: Moment) -> No {
    match (moment, agent) {
        // Kimi Code does not wait for an answer.
        (Moment::SubagentStop | Moment::PostToolUse, Agent::Kimi) => No::Never,
        (Moment::Stop | Moment::SubagentStop, Agent::Cursor) => No::Quietly,
        (Moment::Stop | Moment::SubagentStop, _) => No::Aloud,
        (Moment::UserPromptSubmit, Agent::Goose) => No::Never,
        (Moment::UserPromptSubmit, Agent::Cursor) => No::Quietly,
        (Moment::UserPromptSubmit, _) => No::Aloud,
        (Moment::PreToolUse, _) => No::Twice,
        (Moment::PostToolUse, Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Copilot) => No::Quietly,
        (Moment::PostToolUse, Agent::Qwen | Agent::Cursor) => No::AsContext,
        (Moment::PostToolUse, Agent::Goose) => No::Never,
        (Moment::SessionStart | Moment::Notification | Moment::PreCompact | Moment::SessionEnd, _) => No::Never,
    }
}

/// Claude Code is sent back by context at its Stop: that is a block, and said as one.
fn context(agent: Agent, moment: Moment) -> Option<Place> {
    let reads = match (agent, moment) {
        (Agent::Claude | Agent::Codex | Agent::Copilot, Moment::PreToolUse) => true,
        (Agent::Kimi, Moment::UserPromptSubmit) => true,
        (Agent::Goose | Agent::Kimi, _) => false,
        (Agent::Cursor, Moment::UserPromptSubmit) => false,
        (_, Moment::SessionStart | Moment::UserPromptSubmit | Moment::PostToolUse) => true,
        _ => false,
    };
    let place = match agent {
        Agent::Copilot => Place::Top,
        Agent::Kimi => Place::Message,
        _ => Place::Specific,
    };
    reads.then_some(place)
}

/// Qwen Code takes it for a block at Stop, and goes on. Claude Code uses the tool before it ends, so it is denied as well.
fn halts(agent: Agent, moment: Moment) -> bool {
    match moment {
        Moment::SessionStart => agent == Agent::Codex,
        Moment::UserPromptSubmit => {
            matches!(agent, Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Qwen | Agent::Cursor)
        }
        Moment::PreToolUse | Moment::PostToolUse => matches!(agent, Agent::Claude | Agent::Gemini),
        Moment::Stop | Moment::SubagentStop => matches!(agent, Agent::Claude | Agent::Codex | Agent::Gemini),
        Moment::Notification | Moment::PreCompact | Moment::SessionEnd => false,
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

fn shows(agent: Agent, moment: Moment) -> bool {
    match agent {
        Agent::Claude | Agent::Gemini | Agent::Qwen => true,
        // It reads no answer any more.
        Agent::Codex => moment != Moment::SessionEnd,
        Agent::Cursor => moment == Moment::PreCompact,
        Agent::Copilot | Agent::Goose | Agent::Kimi => false,
    }
}
