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
mod config;
mod config_source;
mod duration_setting;
pub mod edit;
mod effects;
mod error;
mod expression_compiler;
mod hook_limits;
mod hook_settings;
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
mod settings;
mod settings_check;
pub mod source;
#[cfg(test)]
mod tests;
mod trust_digest;
mod untrusted;
mod validation_rules;
mod validators;
mod value_checks;
pub mod workflow;
mod workflow_context;
mod yaml;
mod yaml_errors;

pub use self::builtin::BuiltinHook;
pub use self::config::{Config, RegisteredHookSetting};
pub use self::config_source::{ConfigSource, PROJECT_DIRECTORY, config_file_path};
pub use self::duration_setting::DurationSetting;
pub use self::effects::ConfiguredEffect;
pub use self::error::{ConfigError, ConfigProblem, quote_text};
pub use self::expression_compiler::locate_expression_problem as expression_problem;
pub use self::hook_limits::check_timeout;
pub use self::hook_settings::{FailureSetting, PipeSetting};
pub use self::hooks::{DEFAULT_PRIORITY, HookKind, HookSpec};
pub use self::pipeline_rules::ConfigWarning;
pub use self::point::{hook_point_names, hook_point_spellings, hook_points, parse_hook_point};
pub use self::reader::{LocatedValue, deserialize_node};
pub use self::schema::config_schema;
pub use self::settings::{
    AgentCommandSetting, AgentSettings, CompletionSetting, DriverKind, ForgeKind, McpServerSettings, MergeMethod,
    RetryLimitSetting, RoleSettings, Settings, TaskResult,
};
pub use self::source::{BYTE_ORDER_MARK, MAX_CONFIG_BYTES, read_text};
pub use self::trust_digest::WorkflowFile;
pub use self::yaml::{ConfigNode, NodeValue, parse_yaml as tree};
