//! The configuration of a project, `.windlass/config.yaml`: reading, diagnostics, schema, plan, workflows, import and edits.
//!
//! ```text
//! bytes ─ source ─► text ─ yaml ─► located tree ─ reader ─► structs of `settings` ─ hooks, settings_check ─► Config ─ plan ─► engine rules
//! ```
//!
//! Invariants:
//! - Unknown keys, names and points, wrong types and duplicate keys are errors with a place.
//! - This crate compiles conditions, templates and matchers: every hook of a `Config` can be evaluated.
//! - A missing or empty file is a configuration with every default.
//! - Reading a configuration starts no program.
//!
//! Not here: a store, a process, a terminal; whether a person trusts the configuration (`app`); what expressions mean
//! (`engine`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod builtin;
mod check;
mod config;
mod config_source;
pub mod edit;
mod effects;
mod entry;
mod error;
mod expressions;
mod file;
mod hook_limits;
mod hooks;
pub mod import;
#[cfg(any(test, fuzzing))]
pub mod laws;
pub mod listing;
mod notices;
mod pipeline_rules;
pub mod plan;
mod point;
mod reader;
mod request;
mod schema;
pub mod source;
mod span;
mod syntax;
#[cfg(test)]
mod tests;
mod trust_digest;
mod untrusted;
mod validation;
mod validators;
mod value_checks;
pub mod workflow;
mod workflow_context;
mod yaml;

pub use self::builtin::Builtin;
pub use self::config::{Config, RegisteredHookSetting};
pub use self::config_source::{ConfigSource, PROJECT_DIRECTORY, config_file};
pub use self::effects::ConfiguredEffect;
pub use self::entry::{OnFailure, PipeSetting};
pub use self::error::{ConfigError, ConfigProblem, quoted};
pub use self::expressions::problem as expression_problem;
pub use self::file::{
    AgentCommands, AgentSettings, Completion, Driver, ForgeKind, McpServerSettings, MergeMethod, OnRetryLimit,
    RoleSettings, Settings, TaskResult,
};
pub use self::hook_limits::check_timeout;
pub use self::hooks::{DEFAULT_PRIORITY, HookKind, HookSpec};
pub use self::pipeline_rules::ConfigWarning;
pub use self::point::{hook_point_names, hook_point_spellings, hook_points, parse_hook_point};
pub use self::reader::{Located, read};
pub use self::schema::schema;
pub use self::source::{MARK, SIZE, text_of};
pub use self::span::DurationSetting;
pub use self::trust_digest::WorkflowFile;
pub use self::yaml::{ConfigNode, NodeValue, parse as tree};
