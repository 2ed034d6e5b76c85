//! Known agents, driven by their own command lines: a new process for each prompt, in the same conversation, with a stream
//! of events as output.
//!
//! ```text
//!   driver: prompt ─► command line (claude, codex, …) ─► process ─► StreamReader ─► reader of the dialect ─► TurnAccumulator
//!                                                                         └─► HeadlessTurnReport: end and usage of the turn
//! ```
//!
//! Invariants:
//! - Neither an exit code nor a field that says "success" suffices: a turn has succeeded only if its stream says how it
//!   ended, and says nothing to the contrary.
//! - Only the agent's last message after its last tool call is its answer: no output of a tool, and no echo of a prompt.
//! - Memory is bounded for every stream.
//!
//! Not here: starting programs (`process`), the log of conversations (`runner`).

mod claude;
mod codex;
mod command_line;
mod dialect;
mod driver;
mod failure_cause;
mod gemini;
mod goose;
mod mcp_config;
mod opencode;
mod stream_event;
mod stream_line;
mod stream_reader;
mod turn_accumulator;

use std::path::Path;

use windlass_process::{CaptureLimits, Environment, ProgramInvocation, ProgramSpec};

#[cfg(any(test, fuzzing))]
pub(crate) use command_line::is_conversation_name;
pub use dialect::HeadlessDialect;
pub(crate) use driver::HeadlessDriver;
#[cfg(any(test, fuzzing))]
pub(crate) use stream_event::StreamEvent;
pub(crate) use stream_line::{parse_json_line, trim_line};
#[cfg(any(test, fuzzing))]
pub(crate) use stream_reader::{HeadlessTurnEnd, HeadlessTurnReport, StreamReader};
#[cfg(test)]
use turn_accumulator::UsageScope;

use self::command_line::{CommandLine, PromptTarget};
use crate::acp::McpServer;
use crate::agent::quote_shell_word;
use crate::prompt_spec::build_prompt_spec;
use crate::{Agent, AgentAccess, AgentSetup};

impl HeadlessDialect {
    /// Returns variables that prevent questions to the user, or limit the agent to its access.
    pub fn base_environment(self, access: AgentAccess) -> &'static [(&'static str, &'static str)] {
        match (self, access) {
            (Self::Goose, AgentAccess::Full) => &[("GOOSE_MODE", "auto")],
            (Self::Goose, AgentAccess::ReadOnly) => goose::READ_ONLY_ENVIRONMENT,
            (Self::Opencode, AgentAccess::ReadOnly) => opencode::READ_ONLY_ENVIRONMENT,
            (Self::Gemini, AgentAccess::ReadOnly) => gemini::READ_ONLY_ENVIRONMENT,
            (Self::Claude | Self::Codex | Self::Opencode | Self::Gemini, _) => &[],
        }
    }

    /// Returns the environment of a turn, with the MCP server if there is one.
    pub fn environment_with_tools(self, tools: Option<&McpServer>, around: Environment) -> Environment {
        match tools {
            Some(server) => mcp_config::add_mcp_environment(self, server, around),
            None => around,
        }
    }

    fn build_command_line(self, place: PromptTarget<'_>, setup: &AgentSetup) -> CommandLine {
        match self {
            Self::Claude => claude::build_command_line(place, setup),
            Self::Codex => codex::build_command_line(place, setup),
            Self::Opencode => opencode::build_command_line(place, setup),
            Self::Gemini => gemini::build_command_line(place, setup),
            Self::Goose => goose::build_command_line(place, setup),
        }
    }
}

/// Returns the script that runs a turn, with the prompt on standard input.
fn build_prompt_script(
    agent: &Agent,
    dialect: HeadlessDialect,
    place: PromptTarget<'_>,
    tools: Option<&McpServer>,
) -> String {
    let CommandLine { mut first, last } = dialect.build_command_line(place, &agent.setup);
    // The server's option comes first: it takes any number of values, and the next option ends them.
    let behind = first.iter().position(|word| word.starts_with('-')).unwrap_or(first.len());
    first.splice(
        behind..behind,
        tools.map(|server| mcp_config::build_mcp_arguments(dialect, server)).unwrap_or_default(),
    );
    let mut script = agent.program_script(dialect).to_owned();
    for word in first.iter().chain(&agent.setup.args).chain(&last) {
        script.push(' ');
        script.push_str(&quote_shell_word(word));
    }
    script
}

/// Returns the spec of a run that reads a prompt.
fn build_stream_spec(script: String, prompt: &str, directory: &Path, environment: Environment) -> ProgramSpec {
    // The driver reads the output while it comes.
    let capture = CaptureLimits { head: 0, tail: 0, spill: None };
    build_prompt_spec(ProgramInvocation::Shell(script.into()), prompt, directory, environment, capture)
}

#[cfg(test)]
mod tests;
