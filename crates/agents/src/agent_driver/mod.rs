//! The one way to prompt an agent, for all kinds of agents.
//!
//! ```text
//!   PromptRequest, TurnBudget ─► AgentDriver::run_turn ─► TurnOutcome
//!                                  │ ▲
//!              conversation, output│ │the text of the prompt, programs that have ended
//!                                  ▼ │
//!                                TurnHost
//! ```
//!
//! | driver | process | conversation |
//! | --- | --- | --- |
//! | `CommandDriver` | one for each prompt | none: the prompt contains everything |
//! | `HeadlessDriver` | one for each prompt | resumed by name; a new one if the agent has lost it |
//! | `AcpDriver` | one that stays until it is closed | kept in the process; loaded by name in a new one |
//!
//! Invariants:
//! - The driver knows whether the agent remembers before it prompts: the host words the prompt accordingly.
//! - The host learns the name of a conversation before the prompt is sent if the name is known by then, else as soon as the
//!   agent reports it.
//! - If the host answers with a [`TurnEnd`], the turn ends with it.
//!
//! Not here: the log, records and secrets (the host), when to prompt an agent (`runner`).

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

use windlass_engine::AgentUsage;
use windlass_process::{Environment, OutputStream, ProgramOutcome, ProgramSpec};

use crate::acp::McpServer;
use crate::{TurnBudget, TurnEnd, TurnOutcome};

/// A request to prompt an agent. The host words the prompt itself.
#[derive(Debug, Clone)]
pub struct PromptRequest {
    /// The agent's working directory.
    pub directory: PathBuf,
    /// The environment of its program.
    pub environment: Environment,
    /// The program that starts it, such as a sandbox, as in [`ProgramSpec::wrapper`].
    pub wrapper: Vec<OsString>,
    /// The server of Windlass's own tools, if the agent gets it.
    pub tools: Option<McpServer>,
    /// The conversation to continue.
    pub conversation: Option<String>,
    /// The usage of that conversation so far.
    pub used: AgentUsage,
    /// Random bytes for the name of a new conversation.
    pub nonce: u128,
    /// The path of the turn's record, without its extension.
    pub record: PathBuf,
}

/// Output of an agent during a turn.
#[derive(Debug, Clone, Copy)]
pub enum TurnOutput<'a> {
    /// The agent's text and actions, readable.
    Transcript(&'a str),
    /// Raw standard output: a stream of events, which the transcript shows as text.
    Stdout(&'a [u8]),
    Stderr(&'a [u8]),
    /// A notice about the conversation, for the user.
    Notice(&'a str),
}

/// Watches the output of a program. `Break` ends the program.
pub type OutputWatch<'w> = dyn FnMut(&mut dyn TurnHost, OutputStream, &[u8]) -> ControlFlow<()> + 'w;

/// The caller of a driver during a turn: words the prompt, keeps the log and the records, and runs programs.
pub trait TurnHost {
    /// Words the prompt for an agent that remembers the earlier prompts, or for one that does not.
    fn word_prompt(&mut self, remembers: bool) -> Result<String, TurnEnd>;

    /// Records the conversation of the turn, with the reason if it is not the requested one.
    fn open_conversation(&mut self, name: &str, restarted_because: Option<&str>) -> Result<(), TurnEnd>;

    /// Takes output of the agent.
    fn write_output(&mut self, output: TurnOutput<'_>);

    /// Runs a program to its end. The host shows and keeps its output, unless the driver watches and interprets it.
    fn run_program(
        &mut self,
        spec: &ProgramSpec,
        watch: Option<&mut OutputWatch<'_>>,
    ) -> Result<ProgramOutcome, TurnEnd>;
}

/// A way to prompt one kind of agent.
pub trait AgentDriver {
    /// Prompts the agent and waits for the end of its turn.
    fn run_turn(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome;

    /// Ends the agent's processes between two turns. The next prompt starts them again.
    fn close_agent(&mut self) {}
}

#[cfg(test)]
mod tests;
