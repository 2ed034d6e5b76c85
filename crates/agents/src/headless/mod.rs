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

mod account;
mod cause;
mod claude;
mod codex;
mod dialect;
mod driver;
mod gemini;
mod goose;
mod handing;
mod hearing;
mod line;
mod opencode;
mod stream_event;
mod words;

use std::path::Path;

use windlass_process::{Capture, Environment, Invocation, Spec};

#[cfg(test)]
use account::Span;
pub use dialect::Dialect;
pub(crate) use driver::HeadlessDriver;
#[cfg(any(test, fuzzing))]
pub(crate) use hearing::{Ended, Heard, Hearing};
pub(crate) use line::{bare, parse};
#[cfg(any(test, fuzzing))]
pub(crate) use stream_event::Said;
#[cfg(any(test, fuzzing))]
pub(crate) use words::is_name;

use self::words::{Place, Words};
use crate::acp::McpServer;
use crate::agent::quoted;
use crate::prompt_run::prompted;
use crate::{Access, Agent, Setup};

impl Dialect {
    /// Returns variables that prevent questions to the user, or limit the agent to its access.
    pub fn environment(self, access: Access) -> &'static [(&'static str, &'static str)] {
        match (self, access) {
            (Self::Goose, Access::Full) => &[("GOOSE_MODE", "auto")],
            (Self::Goose, Access::ReadOnly) => goose::LOOKING,
            (Self::Opencode, Access::ReadOnly) => opencode::LOOKING,
            (Self::Gemini, Access::ReadOnly) => gemini::LOOKING,
            (Self::Claude | Self::Codex | Self::Opencode | Self::Gemini, _) => &[],
        }
    }

    /// Returns the environment of a turn, with the MCP server if there is one.
    pub fn with_tools(self, tools: Option<&McpServer>, around: Environment) -> Environment {
        match tools {
            Some(server) => handing::environment(self, server, around),
            None => around,
        }
    }

    fn words(self, place: Place<'_>, setup: &Setup) -> Words {
        match self {
            Self::Claude => claude::words(place, setup),
            Self::Codex => codex::words(place, setup),
            Self::Opencode => opencode::words(place, setup),
            Self::Gemini => gemini::words(place, setup),
            Self::Goose => goose::words(place, setup),
        }
    }
}

/// Returns the script that runs a turn, with the prompt on standard input.
fn script(agent: &Agent, dialect: Dialect, place: Place<'_>, tools: Option<&McpServer>) -> String {
    let Words { mut first, last } = dialect.words(place, &agent.setup);
    // The server's option comes first: it takes any number of values, and the next option ends them.
    let behind = first.iter().position(|word| word.starts_with('-')).unwrap_or(first.len());
    first.splice(behind..behind, tools.map(|server| handing::words(dialect, server)).unwrap_or_default());
    let mut script = agent.program(dialect).to_owned();
    for word in first.iter().chain(&agent.setup.args).chain(&last) {
        script.push(' ');
        script.push_str(&quoted(word));
    }
    script
}

/// Returns the spec of a run that reads a prompt.
fn spec(script: String, prompt: &str, directory: &Path, environment: Environment) -> Spec {
    // The driver reads the output while it comes.
    let capture = Capture { head: 0, tail: 0, spill: None };
    prompted(Invocation::Shell(script.into()), prompt, directory, environment, capture)
}

#[cfg(test)]
mod tests;
