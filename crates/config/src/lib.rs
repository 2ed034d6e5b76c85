//! The configuration of a project, `.windlass/config.yaml`: reading, diagnostics, schema, plan, workflows, import and edits.
//!
//! ```text
//! bytes ─ source ─► text ─ yaml ─► located tree ─ reader ─► structs of `file` ─ hooks, check ─► Config ─ plan ─► engine rules
//! ```
//!
//! Invariants:
//! - Unknown keys, names and points, wrong types and duplicate keys are errors that name their place.
//! - Conditions, templates and matchers are compiled here: a hook that is there can be evaluated.
//! - A file that is missing or empty is a configuration: every default.
//! - Reading it starts nothing, whatever it says.
//!
//! Not here: a store, a process, a terminal; whether a person trusts the configuration (`app`); what expressions mean
//! (`engine`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod builtin;
mod check;
mod config_source;
#[cfg(test)]
mod diagnostics_tests;
pub mod edit;
mod entry;
mod error;
#[cfg(test)]
mod expression_diagnostics_tests;
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
#[cfg(test)]
mod pipeline_rules_tests;
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
pub mod workflow;
mod workflow_context;
mod yaml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_engine::{ConfigText, Digest, HookPoint};
use windlass_expr::{Names, Template};

pub use self::builtin::Builtin;
pub use self::config_source::ConfigSource;
pub use self::entry::{OnFailure, PipeSetting};
pub use self::error::{ConfigError, ConfigProblem, quoted};
use self::expressions::Expressions;
pub use self::expressions::problem as expression_problem;
pub use self::file::{
    AgentCommands, AgentSettings, Completion, Driver, ForgeKind, McpServerSettings, MergeMethod, OnRetryLimit,
    RoleSettings, Settings, TaskResult,
};
pub use self::hook_limits::check_timeout;
pub use self::hooks::{HookKind, HookSpec};
pub use self::pipeline_rules::ConfigWarning;
pub use self::point::{hook_point_names, hook_point_spellings, hook_points, parse_hook_point};
pub use self::reader::{Located, read};
pub use self::schema::schema;
pub use self::source::{MARK, SIZE};
pub use self::span::DurationSetting;
pub use self::trust_digest::WorkflowFile;
pub use self::yaml::{ConfigNode, NodeValue, parse as tree};

/// The directory of a project that Windlass keeps its files in.
pub const PROJECT_DIRECTORY: &str = ".windlass";

/// Returns the configuration file of a project.
pub fn config_file(root: &Path) -> PathBuf {
    root.join(PROJECT_DIRECTORY).join("config.yaml")
}

/// A configuration that can be used.
#[derive(Debug, Clone)]
pub struct Config {
    written: ConfigSource,
    pub settings: Settings,
    /// In the order of definition.
    pub hooks: Vec<HookSpec>,
    /// How the prompt to work is written, where this file says so.
    prompt: Option<Template>,
}

/// How a hook of the registry is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredHookSetting {
    pub name: &'static str,
    pub enabled: bool,
    pub priority: Option<i64>,
}

/// Something that would run a program, send a request or prompt an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredEffect {
    /// The point, or the section of the file.
    pub place: String,
    pub name: String,
    /// As it is written: not cleaned, perhaps several lines.
    pub what: String,
    pub line: Option<usize>,
}

impl ConfiguredEffect {
    /// Where it runs and what it is called, once where the one says the other.
    pub fn title(&self) -> String {
        match self.name.starts_with(&self.place) {
            true => self.name.clone(),
            false => format!("{} {}", self.place, self.name),
        }
    }
}

impl Config {
    /// The project's configuration; without a file, every default.
    pub fn load(root: &Path) -> Result<Self, ConfigError> {
        Self::parse(ConfigSource::load(root)?)
    }

    /// The configuration in a file, which must exist.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        Self::parse(ConfigSource::read(file)?)
    }

    /// The configuration that a file once held.
    pub fn of(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::parse(ConfigSource::of(file, text))
    }

    /// What was written, understood.
    pub fn parse(written: ConfigSource) -> Result<Self, ConfigError> {
        if written.digest().is_none() {
            return Ok(Self { written, settings: Settings::default(), hooks: Vec::new(), prompt: None });
        }
        match parse(written.text()) {
            Ok((settings, hooks, prompt)) => Ok(Self { written, settings, hooks, prompt }),
            Err(problem) => Err(ConfigError::in_text(written.file(), written.text(), problem)),
        }
    }

    /// What the file holds, empty where there is none.
    pub fn text(&self) -> &ConfigText {
        self.written.text()
    }

    /// Returns the configuration of a project without a file.
    pub fn absent(root: &Path) -> Self {
        let written = ConfigSource::missing(config_file(root));
        Self { written, settings: Settings::default(), hooks: Vec::new(), prompt: None }
    }

    pub fn file(&self) -> &Path {
        self.written.file()
    }

    /// The project that its file is for.
    pub fn project(&self) -> &Path {
        self.file().ancestors().nth(2).unwrap_or(Path::new(""))
    }

    /// Whether there is a file at all.
    pub fn exists(&self) -> bool {
        self.written.digest().is_some()
    }

    /// The files under `workflows/` beside the configuration.
    pub fn workflows(&self) -> Result<Vec<WorkflowFile>, ConfigError> {
        trust_digest::list_workflow_files(self.project(), &self.file().with_file_name("workflows"))
    }

    /// Stands for the bytes that were read, and for the file of the prompt and everything under `workflows/` as they are now.
    pub fn digest(&self) -> Result<Digest, ConfigError> {
        // One that is not there is no prompt; whoever needs it says so.
        let read = |file: PathBuf| source::read_within(self.project(), &file).ok();
        let prompt = self.prompt_file().and_then(read).map(|bytes| Digest::of(&bytes));
        Ok(trust_digest::digest(self.written.digest(), prompt, &self.workflows()?))
    }

    /// How the prompt to work is written, if not as usual: here, or in a file beside this one.
    pub fn prompt(&self) -> Result<Option<Template>, ConfigError> {
        let Some(file) = self.prompt_file() else { return Ok(self.prompt.clone()) };
        let read = source::read_within(self.project(), &file);
        let bytes = read.map_err(|error| self.without_prompt(error))?;
        let text = source::decode(&file, bytes)?;
        let written = Located { value: text.clone(), at: 0..text.len() };
        let template = hooks::prompt_of(&written, Expressions::of(&text), &Names::prompt());
        Ok(Some(template.map_err(|problem| ConfigError::in_text(&file, &text, problem))?))
    }

    /// A file of the prompt that is not there is a mistake of whoever names it.
    fn without_prompt(&self, error: ConfigError) -> ConfigError {
        let Some(name) = self.settings.prompt_file.as_ref().filter(|_| error.is_missing()) else { return error };
        let problem = ConfigProblem::new(format!("there is no file {}", quoted(&name.value)))
            .suggest("write it, or name another one: the path begins beside this file".to_owned())
            .at(name.at.clone());
        ConfigError::in_text(self.file(), self.text(), problem)
    }

    fn prompt_file(&self) -> Option<PathBuf> {
        self.settings.prompt_file.as_ref().map(|name| self.file().with_file_name(&name.value))
    }

    /// How the hooks of the registry are to be run, where the configuration says so.
    pub fn builtin_settings(&self) -> Vec<RegisteredHookSetting> {
        let setting = |hook: &HookSpec| match hook.kind {
            HookKind::Builtin(builtin) if builtin.is_registered() => Some(RegisteredHookSetting {
                name: builtin.name(),
                enabled: hook.enabled(),
                priority: hook.entry.priority,
            }),
            _ => None,
        };
        self.hooks.iter().filter_map(setting).collect()
    }

    /// Every hook that would run a program, send a request or prompt an agent.
    pub fn effectful_hooks(&self) -> Vec<ConfiguredEffect> {
        let effect = |hook: &HookSpec| {
            let what = hook.effect()?;
            Some(ConfiguredEffect { place: hook.place(), name: hook.name.clone(), what, line: Some(hook.line) })
        };
        self.hooks.iter().filter(|hook| hook.enabled()).filter_map(effect).collect()
    }

    /// Everything that would run because of this configuration: hooks, notices, agents' programs, validators, tests; and what
    /// agents are told.
    pub fn effects(&self) -> Vec<ConfiguredEffect> {
        let Settings { agent, agents, prompt, prompt_file, test_command, briefs, forge, .. } = &self.settings;
        let other = |place: &str, name: &str, what: String| ConfiguredEffect {
            place: place.to_owned(),
            name: name.to_owned(),
            what,
            line: None,
        };
        let mut effects = self.effectful_hooks();
        let by_name = agent.iter().filter(|agent| !agents.contains_key(&agent.value));
        effects.extend(by_name.map(|agent| other("agent", "default", agent.value.clone())));
        effects.extend(agents.iter().map(|(name, agent)| other("agents", name, agent.describe(name))));
        for (name, roles) in self.task_types() {
            for (role, names) in [("implementer", &roles.implementer), ("gatekeeper", &roles.gatekeeper)] {
                let names =
                    names.iter().flat_map(|names| names.iter()).filter(|name| !agents.contains_key(&name.value));
                effects.extend(names.map(|agent| other("task_types", &format!("{name} {role}"), agent.value.clone())));
            }
        }
        effects.extend(self.rule_effects());
        effects.extend(self.validator_effects());
        effects.extend(self.command_effect());
        effects.extend(briefs.iter().map(|(name, text)| other("briefs", name, text.value.clone())));
        effects.extend(forge.api.iter().map(|api| other("forge", "api", format!("your token goes to {}", api.value))));
        effects.extend(prompt.iter().map(|prompt| other("prompt", "prompt", prompt.value.clone())));
        effects.extend(prompt_file.iter().map(|file| other("prompt_file", "prompt_file", file.value.clone())));
        effects.extend(test_command.iter().map(|command| other("test_command", "run_tests", command.value.clone())));
        effects
    }

    /// Hooks that run workflows, each with the id that it names.
    pub fn named_workflows(&self) -> Vec<(&HookSpec, &Located<String>)> {
        self.hooks.iter().filter_map(|hook| Some((hook, hook.entry.workflow.as_ref()?))).collect()
    }

    /// How many hooks run at which point.
    pub fn points(&self) -> BTreeMap<HookPoint, usize> {
        let mut points = BTreeMap::new();
        for point in self.hooks.iter().filter(|hook| hook.enabled()).flat_map(HookSpec::points) {
            *points.entry(point.clone()).or_default() += 1;
        }
        points
    }

    /// Whether anything is written about a point, be it an empty list: for tasks of that type, or for all.
    pub fn defines(&self, point: &HookPoint, kind: Option<&str>) -> bool {
        let given =
            |points: &entry::Points| points.0.iter().any(|(name, _)| parse_hook_point(name).as_ref() == Some(point));
        let of_type = self.overrides().any(|(name, other)| Some(name) == kind && other == *point);
        of_type || given(&self.settings.hooks)
    }

    /// Where a type of tasks has its own list of hooks instead of the project's.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, HookPoint)> {
        self.settings.task_types.iter().flat_map(|(name, task_type)| {
            let points = task_type.hooks.0.iter().filter_map(|(point, _)| parse_hook_point(point));
            points.map(|point| (name.as_str(), point))
        })
    }

    /// Whether the project itself says what runs at a point.
    pub fn has_own_list(&self, point: &HookPoint) -> bool {
        self.settings.hooks.0.iter().any(|(written, _)| parse_hook_point(written).as_ref() == Some(point))
    }

    /// Whether a name stands for an agent here.
    pub fn is_agent(&self, name: &str) -> bool {
        check::is_agent(name, &self.settings)
    }

    /// What a gatekeeper of that name is told to look at.
    pub fn brief(&self, name: &str) -> String {
        match self.settings.briefs.get(name) {
            Some(text) => text.value.clone(),
            None => {
                format!("Look at this change with one question in mind: {name}. Approve it only if it is good there.")
            }
        }
    }

    /// What is not wrong, and probably not meant.
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        pipeline_rules::warnings(&self.settings, &self.hooks, self.text())
    }

    /// Returns the gates whose only checks run the project's tests, each with the type of task that has it for itself.
    pub fn test_gates(&self) -> Vec<(HookPoint, Option<&str>)> {
        pipeline_rules::find_test_gates(&self.settings, &self.hooks)
    }

    /// The types whose tasks end with a report.
    pub fn report_types(&self) -> impl Iterator<Item = &str> {
        let types = self.settings.task_types.iter();
        types.filter(|(_, task_type)| task_type.result == TaskResult::Report).map(|(name, _)| name.as_str())
    }

    pub fn task_types(&self) -> impl Iterator<Item = (&str, &RoleSettings)> {
        self.settings.task_types.iter().map(|(name, task_type)| (name.as_str(), &task_type.agents))
    }
}

/// The text of a file that a person wrote: a regular one, of reasonable size, in UTF-8.
pub fn text_of(file: &Path) -> Result<String, ConfigError> {
    source::decode(file, source::read(file)?)
}

fn parse(text: &str) -> Result<(Settings, Vec<HookSpec>, Option<Template>), ConfigProblem> {
    let tree = yaml::parse(text)?;
    let settings: Settings = read(&tree, text)?;
    check::check(&settings)?;
    validators::check(&settings.validators, text)?;
    validation::check(&settings)?;
    let mut hooks = hooks::resolve(&settings, text)?;
    pipeline_rules::check(&settings, &hooks)?;
    hooks.extend(notices::hooks(&settings, &hooks, text)?);
    let prompt = prompt(&settings, text)?;
    Ok((settings, hooks, prompt))
}

fn prompt(settings: &Settings, text: &str) -> Result<Option<Template>, ConfigProblem> {
    settings
        .prompt
        .as_ref()
        .map(|written| hooks::prompt_of(written, Expressions::of(text), &Names::prompt()))
        .transpose()
}
