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
mod error_hints;
mod evaluation;
mod hook;
mod host;
mod iteration;
mod note;
mod router;
mod schema;
mod session;
mod task;
#[cfg(test)]
mod tests;
mod text_excerpt;
mod tool;
pub mod validation;

pub use catalogue::{find_tool, tool_catalogue};
pub use closure::{StopHookClosure, StopHookClosures};
pub use error::{CallerHint, ToolError, ToolErrorCode};
pub use evaluation::{EvaluationInputs, JudgedWork, ValidationRuleSet, agent_context, run_rules, run_stop_hooks};
pub use hook::{StopHookList, registered_hooks};
pub use host::ToolHost;
pub use router::ToolRouter;
pub use schema::{FieldKind, FieldPresence, IdKind, ToolField};
pub use task::{TaskGetReport, newest_notes};
pub use tool::{ToolDefinition, ToolEffect};
pub use windlass_hooks::SecretMask;
pub use windlass_process::RunControl;
