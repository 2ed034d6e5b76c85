//! Hooks of other systems in our words: agents' settings, codemie's configuration, `automation-hooks.json`.
//!
//! ```text
//! text ─ json ─► located tree ─ settings, automation ─► HookImport ─ additions ─► what is new ─ yaml ─► a fragment of our file
//! ```
//!
//! Invariants:
//! - Text in, text out: nothing is read, written or started here.
//! - What is carried over does the same; what would do something else is left out, and named with the reason.
//! - What is there already is not added again. Only `automation-hooks.json` sets fields of hooks that are there: `enabled` and
//!   `priority`.
//!
//! Not here: editing the configuration's text (`edit`); showing it, asking, writing (`commands/config/import`).

mod additions;
mod automation;
mod command;
mod dialect;
mod field;
pub mod json;
mod matcher;
mod settings;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use windlass_engine::HookPoint;

use crate::{Builtin, ConfigProblem};

pub use additions::{Additions, HookChange};
pub use dialect::Dialect;
pub use yaml::fragment;

/// What a file of another system comes to.
#[derive(Debug)]
pub struct HookImport {
    pub from: Dialect,
    /// In the order of the file.
    pub hooks: Vec<ImportedHook>,
    /// What is said of hooks that it knows by name alone.
    pub tuned: Vec<ImportedTuning>,
    pub settings: Vec<ImportedSetting>,
    /// What is not carried over, and why.
    pub left_out: Vec<ImportRemark>,
    /// What a person should know about the rest.
    pub notes: Vec<ImportRemark>,
}

/// A hook that is to be in the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedHook {
    pub point: HookPoint,
    /// Where it comes from.
    pub line: usize,
    pub what: ImportedAction,
    /// What it is called, unless somebody else is.
    pub name: String,
    pub matcher: Option<String>,
    /// Without one, what we take for usual at that point.
    pub timeout: Option<Duration>,
    pub pipe_output: bool,
    pub enabled: Option<bool>,
    pub priority: Option<i64>,
    pub description: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

/// Whether and when a hook is to run that the configuration may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedTuning {
    /// Where it comes from.
    pub line: usize,
    pub name: String,
    pub enabled: Option<bool>,
    pub priority: Option<i64>,
    /// Whether it has `eventTypes`, which are not taken over.
    pub names_events: bool,
}

/// What a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportedAction {
    Command(String),
    Use(Builtin),
}

/// A setting beside the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedSetting {
    MaxHookRetries(u32),
    /// A stop hook that fails by itself lets go.
    NotStrict,
    /// At the limit of retries the work counts as complete.
    CompleteAtLimit,
}

/// Something to know about a place of the file, or about all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRemark {
    pub line: Option<usize>,
    pub text: String,
}

impl ImportRemark {
    fn on(line: usize, text: impl Into<String>) -> Self {
        Self { line: Some(line), text: text.into() }
    }

    fn general(text: impl Into<String>) -> Self {
        Self { line: None, text: text.into() }
    }
}

/// What a file says that is at `path`, in the dialect that it is said to be in or looks like.
pub fn translate(path: &Path, text: &str, said: Option<Dialect>) -> Result<HookImport, ConfigProblem> {
    let tree = json::parse(text)?;
    let from = match said {
        Some(dialect) => dialect,
        None => dialect::recognise(path, &tree)?,
    };
    match from {
        Dialect::Automation => automation::import(&tree, text),
        _ => settings::import(from, &tree, text),
    }
}
