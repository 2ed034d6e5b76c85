//! The part of an import that the configuration does not have yet.

use std::collections::BTreeSet;

use windlass_engine::{HookPoint, HookScope};
use windlass_expr::nearest_name;

use super::json_fields::find_entry;
use super::{HookImport, ImportRemark, ImportedAction, ImportedHook, ImportedSetting, ImportedTuning, write_fragment};
use crate::edit::{self, EditObstacle, HookField};
use crate::{
    BuiltinHook, Config, ConfigNode, DEFAULT_PRIORITY, HookKind, HookSpec, NodeValue, RetryLimitSetting, plan,
    quote_text,
};

/// Hooks and settings to add to a configuration.
#[derive(Debug, Default)]
pub struct ConfigAdditions {
    /// New hooks, with names that are unique in the configuration.
    pub hooks: Vec<ImportedHook>,
    pub settings: Vec<ImportedSetting>,
    /// Changes to fields of existing hooks.
    pub changes: Vec<HookChange>,
    /// Hooks that the configuration has already.
    pub present: Vec<ImportedHook>,
    /// Tunings that match the configuration already.
    pub unchanged: Vec<ImportedTuning>,
    /// Tunings for hooks that do not exist.
    pub left_out: Vec<ImportRemark>,
    /// Differences that stay as the configuration has them.
    pub notes: Vec<ImportRemark>,
}

/// New values for fields of a configured hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookChange {
    /// The index of the hook in the configuration, and its line there.
    pub hook: usize,
    pub at: usize,
    pub name: String,
    /// The line of the imported file.
    pub line: usize,
    pub fields: Vec<HookField>,
}

impl ConfigAdditions {
    pub fn from_import(import: &HookImport, config: &Config) -> Self {
        let mut additions = Self::default();
        let configured = config.hooks.iter().map(|hook| hook.name.clone());
        let mut names = configured.chain(BuiltinHook::all_names().into_iter().map(str::to_owned)).collect();
        for wanted in &import.hooks {
            additions.add_hook(wanted, config, &mut names);
        }
        for tuned in &import.tuned {
            additions.add_tuning(tuned, config);
        }
        let tree = crate::tree(config.text()).ok();
        for setting in &import.settings {
            additions.add_setting(*setting, config, tree.as_ref());
        }
        additions
    }

    pub fn is_empty(&self) -> bool {
        self.adds_nothing() && self.changes.is_empty()
    }

    /// Returns whether nothing is added. Changes of fields are no additions.
    pub fn adds_nothing(&self) -> bool {
        self.hooks.is_empty() && self.settings.is_empty()
    }

    /// Returns the configuration with all additions and changes.
    pub fn apply_to_config(&self, config: &Config) -> Result<Config, EditObstacle> {
        let mut edited = config.clone();
        for HookChange { hook, fields, .. } in &self.changes {
            for field in fields {
                edited = edit::set_hook_field(&edited, *hook, *field)?;
            }
        }
        if !self.adds_nothing() {
            edited = edit::append_fragment(&edited, &write_fragment(self))?;
        }
        let is_there = |wanted: &ImportedHook| edited.hooks.iter().any(|hook| is_same_hook(hook, wanted));
        if self.hooks.iter().all(is_there) { Ok(edited) } else { Err(EditObstacle::Layout) }
    }

    /// Adds the tuning of a hook that the configuration may have.
    fn add_tuning(&mut self, tuned: &ImportedTuning, config: &Config) {
        let ImportedTuning { line, name, enabled, priority, names_events } = tuned;
        let Some((index, hook)) = config.hooks.iter().enumerate().find(|(_, hook)| hook.name == *name) else {
            self.left_out.push(missing_hook_remark(tuned, config));
            return;
        };
        if *names_events {
            let text =
                format!("{} runs at the points of the configuration; `eventTypes` has no effect", quote_text(name));
            self.notes.push(ImportRemark::at_line(*line, text));
        }
        // The registry defines the order of its own hooks.
        let default_priority = (!hook.is_registered()).then_some(DEFAULT_PRIORITY);
        let enabled = enabled.filter(|on| *on != hook.is_enabled()).map(HookField::Enabled);
        let priority = priority.filter(|wished| hook.entry.priority.or(default_priority) != Some(*wished));
        let fields: Vec<HookField> = enabled.into_iter().chain(priority.map(HookField::Priority)).collect();
        match fields.is_empty() {
            true => self.unchanged.push(tuned.clone()),
            false => {
                self.changes.push(HookChange { hook: index, at: hook.line, name: name.clone(), line: *line, fields });
            }
        }
    }

    fn add_hook(&mut self, wanted: &ImportedHook, config: &Config, names: &mut BTreeSet<String>) {
        if config.hooks.iter().any(|hook| is_same_hook(hook, wanted)) {
            self.present.push(wanted.clone());
            return;
        }
        let mut name = wanted.name.clone();
        if let ImportedAction::Use(builtin) = wanted.what {
            let configured = |hook: &&HookSpec| matches!(hook.kind, HookKind::Builtin(other) if other == builtin);
            if let Some(hook) = config.hooks.iter().find(configured) {
                let ImportedHook { line, enabled, priority, .. } = *wanted;
                let tuned = ImportedTuning { line, name: hook.name.clone(), enabled, priority, names_events: false };
                self.add_tuning(&tuned, config);
                return;
            }
        } else {
            let numbered = (2..).map(|number| format!("{}-{number}", wanted.name));
            let mut candidates = [name].into_iter().chain(numbered);
            name = candidates.find(|name| names.insert(name.clone())).expect("the counter is unbounded");
        }
        self.hooks.push(ImportedHook { name, ..wanted.clone() });
    }

    fn add_setting(&mut self, setting: ImportedSetting, config: &Config, tree: Option<&ConfigNode>) {
        match setting {
            ImportedSetting::MaxHookRetries(most) => {
                let limits = tree.and_then(|tree| find_non_null_value(tree, "limits"));
                let written = limits.and_then(|limits| {
                    find_non_null_value(limits, "max_hook_retries").or(find_non_null_value(limits, "maxHookRetries"))
                });
                let ours = config.settings.limits.max_hook_retries;
                match written {
                    None => self.settings.push(setting),
                    Some(_) if ours == most => {}
                    Some(_) => self.notes.push(ImportRemark::for_whole_file(format!(
                        "`max_hook_retries` is {ours} in the configuration and {most} in this file; the value of the configuration stays"
                    ))),
                }
            }
            ImportedSetting::NotStrict => {
                self.add_loosening_setting(setting, config.settings.strict.map(|strict| !strict), config)
            }
            ImportedSetting::CompleteAtLimit => {
                let written = tree.and_then(|tree| find_non_null_value(tree, "on_retry_limit"));
                let given = written.map(|_| config.settings.on_retry_limit == RetryLimitSetting::Complete);
                self.add_loosening_setting(setting, given, config);
            }
        }
    }

    /// Adds a setting that lets the agent end more easily, if only hooks of this import are affected. `given` says whether the
    /// configuration has the same value, if it has one.
    fn add_loosening_setting(&mut self, setting: ImportedSetting, given: Option<bool>, config: &Config) {
        let at_stop = |wanted: &ImportedHook| wanted.point.is_stop();
        if given == Some(true) || !self.hooks.iter().any(at_stop) {
            return;
        }
        let (there, line) = match setting {
            ImportedSetting::NotStrict => {
                ("a stop hook that fails by itself (exit 1, a timeout) lets the agent end there", "strict: false")
            }
            _ => (
                "when stop hooks have sent the agent back as often as they may, the work counts as complete there",
                "on_retry_limit: complete",
            ),
        };
        let others = config.hooks.iter().any(|hook| hook.all_points().any(HookPoint::is_stop));
        let text = match given.is_none() && !others {
            true => {
                self.settings.push(setting);
                format!("{there}: written as `{line}`; remove that line if you do not want it")
            }
            false => {
                format!(
                    "{there}; the configuration sets this already, and its value stays (`{line}` would be the same)"
                )
            }
        };
        self.notes.push(ImportRemark::for_whole_file(text));
    }
}

/// Explains that no hook has this name.
fn missing_hook_remark(tuned: &ImportedTuning, config: &Config) -> ImportRemark {
    let name = quote_text(&tuned.name);
    let mut names: Vec<&str> = config.hooks.iter().map(|hook| hook.name.as_str()).collect();
    names.extend(BuiltinHook::all_names());
    let near =
        nearest_name(&tuned.name, &names).map(|near| format!(" (there is {})", quote_text(near))).unwrap_or_default();
    let text = format!(
        "{name}: neither the configuration nor Windlass has a hook with this name{near}, and what it does is not in the file; write it as a `command` with this `name` at its events"
    );
    ImportRemark::at_line(tuned.line, text)
}

fn find_non_null_value<'a>(node: &'a ConfigNode, name: &str) -> Option<&'a ConfigNode> {
    find_entry(node, name).map(|(_, value)| value).filter(|value| !matches!(value.value, NodeValue::Null))
}

/// Returns whether a configured hook does the same as an imported one.
fn is_same_hook(hook: &HookSpec, wanted: &ImportedHook) -> bool {
    let here = hook.scope == HookScope::Project && hook.all_points().any(|point| *point == wanted.point);
    let what = match (&hook.kind, &wanted.what) {
        (HookKind::Command(script), ImportedAction::Command(command)) => script.text() == command,
        (HookKind::Builtin(one), ImportedAction::Use(other)) => {
            let enabled = wanted.enabled.unwrap_or(true) == hook.is_enabled();
            return one == other && enabled && hook.entry.priority == wanted.priority;
        }
        _ => false,
    };
    let matcher =
        hook.entry.matcher.as_ref().map(|matcher| matcher.value.trim()).filter(|text| !matches!(*text, "" | "*"));
    let timeout = wanted.timeout.unwrap_or_else(|| plan::default_timeout(&wanted.point));
    here && what && matcher == wanted.matcher.as_deref().map(str::trim) && plan::hook_timeout(hook) == timeout
}
