//! Import of hooks from other systems: agents' settings, codemie's configuration, `automation-hooks.json`.
//!
//! ```text
//! text ─ json ─► located tree ─ agent_settings, automation ─► HookImport ─ additions ─► what is new ─ yaml_fragment ─► YAML
//! ```
//!
//! Invariants:
//! - Text in, text out: the import reads no file, writes none and starts no program.
//! - An imported hook does the same as before. The import leaves out hooks that would behave differently, and names the reason.
//! - The import adds no hook twice. Only `automation-hooks.json` sets fields of existing hooks: `enabled` and `priority`.
//!
//! Not here: editing the configuration's text (`edit`); showing it, asking, writing (`cli`).

mod additions;
mod agent_settings;
mod automation;
mod command;
mod dialect;
pub mod json;
mod json_fields;
mod matcher;
#[cfg(test)]
mod tests;
mod yaml_fragment;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use windlass_engine::HookPoint;

use crate::{BuiltinHook, ConfigProblem};

pub use additions::{ConfigAdditions, HookChange};
pub use dialect::ImportDialect;
pub use yaml_fragment::write_fragment;

/// The hooks and settings of a file of another system.
#[derive(Debug)]
pub struct HookImport {
    pub from: ImportDialect,
    /// The hooks, in the order of the file.
    pub hooks: Vec<ImportedHook>,
    /// Tunings of hooks that the file only names.
    pub tuned: Vec<ImportedTuning>,
    pub settings: Vec<ImportedSetting>,
    /// Left-out parts, with reasons.
    pub left_out: Vec<ImportRemark>,
    /// Notes for the person who imports.
    pub notes: Vec<ImportRemark>,
}

/// A hook to add to the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedHook {
    pub point: HookPoint,
    /// The line in the imported file.
    pub line: usize,
    pub what: ImportedAction,
    /// The name, unless another hook has it.
    pub name: String,
    pub matcher: Option<String>,
    /// Without one, the default timeout of that point.
    pub timeout: Option<Duration>,
    pub pipe_output: bool,
    pub enabled: Option<bool>,
    pub priority: Option<i64>,
    pub description: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

/// Settings for a hook that the configuration may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedTuning {
    /// The line in the imported file.
    pub line: usize,
    pub name: String,
    pub enabled: Option<bool>,
    pub priority: Option<i64>,
    /// Whether the hook has `eventTypes`, which are not imported.
    pub names_events: bool,
}

/// The action of an imported hook.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportedAction {
    Command(String),
    Use(BuiltinHook),
}

/// A setting beside the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedSetting {
    MaxHookRetries(u32),
    /// A failing stop hook lets the agent end.
    NotStrict,
    /// At the retry limit the work counts as complete.
    CompleteAtLimit,
}

/// A remark about a line of the file, or about all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRemark {
    pub line: Option<usize>,
    pub text: String,
}

impl ImportRemark {
    fn at_line(line: usize, text: impl Into<String>) -> Self {
        Self { line: Some(line), text: text.into() }
    }

    fn for_whole_file(text: impl Into<String>) -> Self {
        Self { line: None, text: text.into() }
    }
}

/// Imports the hooks of the file at `path`, in the given or else the detected dialect.
pub fn import_hooks(path: &Path, text: &str, said: Option<ImportDialect>) -> Result<HookImport, ConfigProblem> {
    let tree = json::parse_json(text)?;
    let from = match said {
        Some(dialect) => dialect,
        None => dialect::detect_dialect(path, &tree)?,
    };
    match from {
        ImportDialect::Automation => automation::import_automation(&tree, text),
        _ => agent_settings::import_settings(from, &tree, text),
    }
}
