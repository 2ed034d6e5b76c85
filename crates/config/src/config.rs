//! A configuration: what its file says, understood and checked.

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

    /// Returns which commands an agent may have run. Without a word about it, those under `validators`, or any if there are none.
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

    /// Whether an agent may have validators run.
    pub fn runs_validators(&self) -> bool {
        self.settings.agent_commands != Some(AgentCommands::Deny)
    }

    /// The validation rules, which were checked when the file was read.
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
