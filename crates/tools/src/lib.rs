//! Tools for agents over MCP, and for `windlass tool`.
//!
//! ```text
//! name + JSON ─► catalogue ─► schema: every field checked ─► typed input ─► the tool's function ─► typed output ─► JSON
//!                                                                              │ commands, look-ups
//!                                                                              ▼
//!                                                                            ToolHost: a real project, or a test's
//! ```
//!
//! Invariants:
//! - A tool's schema and its checks are the same data: the tool reads exactly what the schema allows.
//! - A call that is refused has changed nothing, and its error says what to do.
//! - Text from callers is not trusted: an error shows it cleaned and cut.
//!
//! Not here: serving the tools (`mcp`), their output for people (`cli`), the rules (`engine`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod catalogue;
mod checkpoint;
mod closure;
mod error;
mod hook;
mod host;
mod iteration;
mod judging;
mod note;
mod remedy;
mod router;
mod session;
mod shape;
mod shown;
mod task;
#[cfg(test)]
mod tests;
mod tool;
pub mod validation;

pub use catalogue::{catalogue, find};
pub use closure::{Closure, Closures};
pub use error::{CallerHint, Code, ToolError};
pub use hook::{StopHookList, registered};
pub use host::ToolHost;
pub use judging::{Means, RuleSet, WorkDone, agent_context, ask_hooks, check_rules};
pub use router::ToolRouter;
pub use shape::{Field, Id, Kind, Need};
pub use task::{TaskDetails, notes};
pub use tool::{Effect, Tool};
pub use windlass_hooks::Mask;
pub use windlass_process::Control;
