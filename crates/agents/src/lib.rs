//! Drivers: how a prompt becomes a run of an agent, and what its end means.
//!
//! ```text
//!   command    a new process for each prompt                  spec, then what its end means
//!   acp        one process, spoken with from turn to turn     open, prompt, prompt, …
//!   scripted   the built-in agent: the other side of acp, which plays a script
//! ```
//!
//! Not here: what is said in a prompt (`engine`), starting programs (`process`), when an agent is asked (`runner`).

pub mod acp;
mod agent;
mod command;
mod reset;
pub mod scripted;
mod trouble;

pub use agent::{Agent, ParseAgentError};
pub use command::{CommandAgent, TurnEnd};
pub use reset::Reset;
