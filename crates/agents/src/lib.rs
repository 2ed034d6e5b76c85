//! Drivers: how a prompt becomes a run of an agent, and what its end means.
//!
//! Not here: what is said in a prompt (`engine`), starting programs (`process`), when an agent is asked (`runner`).

mod command;
mod reset;
mod trouble;

pub use command::{CommandAgent, ParseAgentError, TurnEnd};
pub use reset::Reset;
