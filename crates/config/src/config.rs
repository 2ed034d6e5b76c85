//! A configuration: its settings and hooks, parsed and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_engine::validation::{CommandRule, ConfiguredRules};
use windlass_engine::{ConfigText, Digest, HookPoint};
use windlass_expr::{Names, Template};

use super::config_source::{ConfigSource, config_file};
use super::error::{ConfigError, ConfigProblem, quoted};
use super::expressions::Expressions;
use super::file::{AgentCommands, RoleSettings, Settings, TaskResult};
use super::hooks::{self, HookKind, HookSpec};
use super::pipeline_rules::{self, ConfigWarning};
use super::point::parse_hook_point;
use super::reader::{Located, read};
use super::trust_digest::{self, WorkflowFile};
use super::validation::{self, RuleList};
use super::{check, entry, notices, source, validators, yaml};

/// A valid configuration.
#[derive(Debug, Clone)]
pub struct Config {
    written: ConfigSource,
    pub settings: Settings,
    /// The hooks, in the order of definition.
    pub hooks: Vec<HookSpec>,
    /// The prompt template, if this file has one.
    prompt: Option<Template>,
}

/// The settings of a hook of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredHookSetting {
    pub name: &'static str,
    pub enabled: bool,
    pub priority: Option<i64>,
}

impl Config {
    /// Loads the project's configuration. Without a file, every setting has its default.
    pub fn load(root: &Path) -> Result<Self, ConfigError> {
        Self::parse(ConfigSource::load(root)?)
    }

    /// Reads a configuration file, which must exist.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        Self::parse(ConfigSource::read(file)?)
    }

    /// Parses text that a configuration file holds or once held.
    pub fn of(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::parse(ConfigSource::of(file, text))
    }

    /// Parses and checks a configuration source.
    pub fn parse(written: ConfigSource) -> Result<Self, ConfigError> {
        if written.digest().is_none() {
            return Ok(Self { written, settings: Settings::default(), hooks: Vec::new(), prompt: None });
        }
        match parse(written.text()) {
            Ok((settings, hooks, prompt)) => Ok(Self { written, settings, hooks, prompt }),
            Err(problem) => Err(ConfigError::in_text(written.file(), written.text(), problem)),
        }
    }

    /// Returns the text of the file, empty if there is no file.
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

    /// Returns the directory of the project that the file belongs to.
    pub fn project(&self) -> &Path {
        self.file().ancestors().nth(2).unwrap_or(Path::new(""))
    }

    /// Returns whether the project has a configuration file.
    pub fn exists(&self) -> bool {
        self.written.digest().is_some()
    }

    /// Lists the files under `workflows/` beside the configuration.
    pub fn workflows(&self) -> Result<Vec<WorkflowFile>, ConfigError> {
        trust_digest::list_workflow_files(self.project(), &self.file().with_file_name("workflows"))
    }

    /// Returns the digest of the bytes that were read, and of the prompt file and everything under `workflows/` as they are now.
    pub fn digest(&self) -> Result<Digest, ConfigError> {
        // A missing prompt file does not count here: `prompt_template` reports it.
        let read = |file: PathBuf| source::read_within(self.project(), &file).ok();
        let prompt = self.prompt_file().and_then(read).map(|bytes| Digest::of(&bytes));
        Ok(trust_digest::digest(self.written.digest(), prompt, &self.workflows()?))
    }

    /// Returns the prompt template of this file or of the prompt file, or `None` for the default.
    pub fn prompt(&self) -> Result<Option<Template>, ConfigError> {
        let Some(file) = self.prompt_file() else { return Ok(self.prompt.clone()) };
        let read = source::read_within(self.project(), &file);
        let bytes = read.map_err(|error| self.without_prompt(error))?;
        let text = source::decode(&file, bytes)?;
        let written = Located { value: text.clone(), at: 0..text.len() };
        let template = hooks::prompt_of(&written, Expressions::of(&text), &Names::prompt());
        Ok(Some(template.map_err(|problem| ConfigError::in_text(&file, &text, problem))?))
    }

    /// Turns the error of a missing prompt file into one at the setting that names it.
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

    /// Returns which commands an agent may run. The default is the commands under `validators`, or any command if there are none.
    pub fn agent_commands(&self) -> AgentCommands {
        let usual = if self.settings.validators.is_empty() { AgentCommands::Allow } else { AgentCommands::Named };
        self.settings.agent_commands.unwrap_or(usual)
    }

    /// Returns the commands that validation rules may name.
    pub fn validators(&self) -> BTreeMap<String, CommandRule> {
        self.settings
            .validators
            .iter()
            .map(|(name, written)| (name.clone(), validators::rule(&written.value)))
            .collect()
    }

    /// Returns whether an agent may run validators.
    pub fn runs_validators(&self) -> bool {
        self.settings.agent_commands != Some(AgentCommands::Deny)
    }

    /// Returns the validation rules. `settings_check` has already parsed them once.
    pub fn validation_rules(&self) -> ConfiguredRules {
        let rules = |list: &RuleList| validation::read(list).expect("the rules were checked when they were read");
        let types = self.settings.task_types.iter().filter_map(|(name, task_type)| {
            let kind = name.as_str().parse().expect("the names of types were checked when they were read");
            Some((kind, rules(task_type.validation.as_ref()?)))
        });
        ConfiguredRules {
            project: self.settings.validation.as_ref().map(rules).unwrap_or_default(),
            types: types.collect(),
        }
    }

    /// Returns the settings of all registry hooks that the configuration names.
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

    /// Returns the hooks that run workflows, each with the id of its workflow.
    pub fn named_workflows(&self) -> Vec<(&HookSpec, &Located<String>)> {
        self.hooks.iter().filter_map(|hook| Some((hook, hook.entry.workflow.as_ref()?))).collect()
    }

    /// Returns the number of enabled hooks at each point.
    pub fn points(&self) -> BTreeMap<HookPoint, usize> {
        let mut points = BTreeMap::new();
        for point in self.hooks.iter().filter(|hook| hook.enabled()).flat_map(HookSpec::points) {
            *points.entry(point.clone()).or_default() += 1;
        }
        points
    }

    /// Returns whether the configuration has a list for a point, even an empty one: for tasks of that type, or for all.
    pub fn defines(&self, point: &HookPoint, kind: Option<&str>) -> bool {
        let given =
            |points: &entry::Points| points.0.iter().any(|(name, _)| parse_hook_point(name).as_ref() == Some(point));
        let of_type = self.overrides().any(|(name, other)| Some(name) == kind && other == *point);
        of_type || given(&self.settings.hooks)
    }

    /// Returns the points at which a task type has its own list of hooks instead of the project's.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, HookPoint)> {
        self.settings.task_types.iter().flat_map(|(name, task_type)| {
            let points = task_type.hooks.0.iter().filter_map(|(point, _)| parse_hook_point(point));
            points.map(|point| (name.as_str(), point))
        })
    }

    /// Returns whether the project has its own list of hooks at a point.
    pub fn has_own_list(&self, point: &HookPoint) -> bool {
        self.settings.hooks.0.iter().any(|(written, _)| parse_hook_point(written).as_ref() == Some(point))
    }

    /// Returns whether a name selects an agent here.
    pub fn is_agent(&self, name: &str) -> bool {
        check::is_agent(name, &self.settings)
    }

    /// Returns the review brief for a gatekeeper of that name.
    pub fn brief(&self, name: &str) -> String {
        match self.settings.briefs.get(name) {
            Some(text) => text.value.clone(),
            None => {
                format!("Look at this change with one question in mind: {name}. Approve it only if it is good there.")
            }
        }
    }

    /// Returns warnings about settings that are valid and probably not intended.
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        pipeline_rules::warnings(&self.settings, &self.hooks, self.text())
    }

    /// Returns the gates whose only checks run the project's tests, each with the type of task that has it for itself.
    pub fn test_gates(&self) -> Vec<(HookPoint, Option<&str>)> {
        pipeline_rules::find_test_gates(&self.settings, &self.hooks)
    }

    /// Returns the types whose tasks end with a report.
    pub fn report_types(&self) -> impl Iterator<Item = &str> {
        let types = self.settings.task_types.iter();
        types.filter(|(_, task_type)| task_type.result == TaskResult::Report).map(|(name, _)| name.as_str())
    }

    pub fn task_types(&self) -> impl Iterator<Item = (&str, &RoleSettings)> {
        self.settings.task_types.iter().map(|(name, task_type)| (name.as_str(), &task_type.agents))
    }
}

pub(super) fn parse(text: &str) -> Result<(Settings, Vec<HookSpec>, Option<Template>), ConfigProblem> {
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
