//! Drivers: how a prompt becomes a run of an agent, and what its end means.
//!
//! ```text
//!   PromptRequest, TurnBudget ─► AgentDriver (agent_driver) ─► TurnOutcome
//!                                    ├ command_driver  a new process for each prompt
//!                                    ├ headless        a new process for each prompt, in the same conversation: known agents
//!                                    └ acp             one process for many prompts
//!
//!   scripted   the script of the built-in agent; the server that plays it is the other side of acp
//! ```
//!
//! Not here: the text of prompts (`engine`), starting programs (`process`), when to prompt an agent (`runner`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

pub mod acp;
mod agent;
mod aider;
mod command;
mod driver;
mod driver_choice;
pub mod headless;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod prompt_run;
mod reset;
pub mod scripted;
mod trouble;
mod turn;

pub use agent::{Access, Agent, AgentKind, KNOWN, Known, ParseAgentError, Setup};
pub use driver::{AgentDriver, OutputWatch, PromptRequest, TurnHost, TurnOutput};
pub use reset::Reset;
pub use turn::{TurnBudget, TurnEnd, TurnOutcome};
