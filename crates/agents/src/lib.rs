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
mod agent_driver;
mod aider_output;
mod command_driver;
mod driver_choice;
mod failure;
pub mod headless;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod prompt_spec;
mod rate_limit_reset;
pub mod scripted;
mod turn;

pub use agent::{Agent, AgentAccess, AgentKind, AgentSetup, KNOWN_AGENTS, KnownAgent, ParseAgentError};
pub use agent_driver::{AgentDriver, OutputWatch, PromptRequest, TurnHost, TurnOutput};
pub use rate_limit_reset::RateLimitReset;
pub use turn::{TurnBudget, TurnEnd, TurnOutcome};
