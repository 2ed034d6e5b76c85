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
mod evaluation;
mod note;
mod error_hints;
mod router;
mod session;
mod schema;
mod text_excerpt;
mod task;
#[cfg(test)]
mod tests;
mod tool;
pub mod validation;

pub use catalogue::{tool_catalogue, find_tool};
pub use closure::{StopHookClosure, StopHookClosures};
pub use error::{CallerHint, ToolErrorCode, ToolError};
pub use hook::{StopHookList, registered_hooks};
pub use host::ToolHost;
pub use evaluation::{EvaluationInputs, ValidationRuleSet, JudgedWork, agent_context, run_stop_hooks, run_rules};
pub use router::ToolRouter;
pub use schema::{ToolField, IdKind, FieldKind, FieldPresence};
pub use task::{TaskDetails, newest_notes};
pub use tool::{ToolEffect, ToolDefinition};
pub use windlass_hooks::SecretMask;
pub use windlass_process::RunControl;
