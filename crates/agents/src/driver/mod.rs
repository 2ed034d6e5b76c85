//! The one way to prompt an agent, whatever program it is.
//!
//! ```text
//!   PromptRequest, TurnBudget ─► AgentDriver::prompt ─► TurnOutcome
//!                                  │ ▲
//!              conversation, output│ │the text of the prompt, programs that have ended
//!                                  ▼ │
//!                                TurnHost
//! ```
//!
//! | driver | process | conversation |
//! | --- | --- | --- |
//! | `CommandDriver` | one for each prompt | none: the prompt says everything |
//! | `HeadlessDriver` | one for each prompt | resumed by name; a new one where the agent has lost it |
//! | `AcpDriver` | one that stays until it is closed | kept in the process; loaded by name in a new one |
//!
//! Invariants:
//! - Whether an agent remembers is known before it is prompted: the host words the prompt for one that does not.
//! - The host hears of a conversation before anything is said in it where its name is known by then, else as soon as the
//!   agent names it.
//! - A host that answers with a [`TurnEnd`] ends the turn with it.
//!
//! Not here: the log, records and secrets (the host), when an agent is prompted (`runner`).

use std::ops::ControlFlow;
use std::path::PathBuf;

use windlass_engine::Usage;
use windlass_process::{Environment, Finished, Spec, Stream};

use crate::acp::McpServer;
use crate::{TurnBudget, TurnEnd, TurnOutcome};

/// What an agent is prompted with, apart from the words.
#[derive(Debug, Clone)]
pub struct PromptRequest {
    /// Where the agent works.
    pub directory: PathBuf,
    /// The environment of its program.
    pub environment: Environment,
    /// Windlass's own server of tools, if the agent is handed it.
    pub tools: Option<McpServer>,
    /// The conversation to continue.
    pub conversation: Option<String>,
    /// What that has used so far.
    pub used: Usage,
    /// Random bytes, of which a driver makes the name of a new conversation.
    pub nonce: u128,
    /// The path of the record of the turn, without the end of its name.
    pub record: PathBuf,
}

/// What an agent writes in a turn.
#[derive(Debug, Clone, Copy)]
pub enum TurnOutput<'a> {
    /// What it says and does, in words.
    Transcript(&'a str),
    /// Its standard output as it is: a stream of events, which the transcript shows in words.
    Stdout(&'a [u8]),
    Stderr(&'a [u8]),
    /// A note about its conversation, for the person who reads about the session.
    Notice(&'a str),
}

/// Watches the output of a program. `Break` ends the program.
pub type OutputWatch<'w> = dyn FnMut(&mut dyn TurnHost, Stream, &[u8]) -> ControlFlow<()> + 'w;

/// The caller of a driver during a turn: words the prompt, keeps the log and the records, and runs programs.
pub trait TurnHost {
    /// Words the prompt for an agent that remembers what was said before, or for one that does not.
    fn word_prompt(&mut self, remembers: bool) -> Result<String, TurnEnd>;

    /// Records the conversation of the turn, with the reason if it is not the requested one.
    fn open_conversation(&mut self, name: &str, restarted_because: Option<&str>) -> Result<(), TurnEnd>;

    /// Takes what the agent writes.
    fn write(&mut self, output: TurnOutput<'_>);

    /// Runs a program to its end. The host shows and keeps its output, unless the driver watches it and says what it means.
    fn run_program(&mut self, spec: &Spec, watch: Option<&mut OutputWatch<'_>>) -> Result<Finished, TurnEnd>;
}

/// Prompts an agent.
pub trait AgentDriver {
    /// Has the agent work on a prompt, to the end of its turn.
    fn prompt(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome;

    /// Ends what runs of the agent between two turns. The next prompt starts it anew.
    fn close(&mut self) {}
}

#[cfg(test)]
mod tests;
