//! A configuration: its settings and hooks, parsed and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_engine::validation::{CommandRule, ConfiguredRules};
use windlass_engine::{ConfigText, Digest, HookPoint};
use windlass_expr::{ExpressionNames, TextTemplate};

use super::config_source::{ConfigSource, config_file_path};
use super::error::{ConfigError, ConfigProblem, quote_text};
use super::expression_compiler::ExpressionCompiler;
use super::hooks::{self, HookKind, HookSpec};
use super::pipeline_rules::{self, ConfigWarning};
use super::point::parse_hook_point;
use super::reader::{LocatedValue, deserialize_node};
use super::settings::{AgentCommandSetting, RoleSettings, Settings, TaskResult};
use super::trust_digest::{self, WorkflowFile};
use super::validation_rules::{self, RuleList};
use super::{hook_settings, notices, settings_check, source, validators, yaml};

/// A valid configuration.
#[derive(Debug, Clone)]
pub struct Config {
    source: ConfigSource,
    pub settings: Settings,
    /// The hooks, in the order of definition.
    pub hooks: Vec<HookSpec>,
    /// The prompt template, if this file has one.
    prompt: Option<TextTemplate>,
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
        Self::from_source(ConfigSource::load(root)?)
    }

    /// Reads a configuration file, which must exist.
    pub fn read_file(file: &Path) -> Result<Self, ConfigError> {
        Self::from_source(ConfigSource::read_file(file)?)
    }

    /// Parses text that a configuration file holds or once held.
    pub fn from_text(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::from_source(ConfigSource::from_text(file, text))
    }

    /// Parses and checks a configuration source.
    pub fn from_source(written: ConfigSource) -> Result<Self, ConfigError> {
        if written.digest().is_none() {
            return Ok(Self { source: written, settings: Settings::default(), hooks: Vec::new(), prompt: None });
        }
        match parse_settings(written.text()) {
            Ok((settings, hooks, prompt)) => Ok(Self { source: written, settings, hooks, prompt }),
            Err(problem) => Err(ConfigError::from_problem(written.file(), written.text(), problem)),
        }
    }

    /// Returns the text of the file, empty if there is no file.
    pub fn text(&self) -> &ConfigText {
        self.source.text()
    }

    /// Returns the configuration of a project without a file.
    pub fn without_file(root: &Path) -> Self {
        let source = ConfigSource::for_missing_file(config_file_path(root));
        Self { source, settings: Settings::default(), hooks: Vec::new(), prompt: None }
    }

    pub fn file(&self) -> &Path {
        self.source.file()
    }

    /// Returns the directory of the project that the file belongs to.
    pub fn project_directory(&self) -> &Path {
        self.file().ancestors().nth(2).unwrap_or(Path::new(""))
    }

    /// Returns whether the project has a configuration file.
    pub fn has_file(&self) -> bool {
        self.source.digest().is_some()
    }

    /// Lists the files under `workflows/` beside the configuration.
    pub fn workflow_files(&self) -> Result<Vec<WorkflowFile>, ConfigError> {
        trust_digest::list_workflow_files(self.project_directory(), &self.file().with_file_name("workflows"))
    }

    /// Returns the digest of the bytes that were read, and of the prompt file and everything under `workflows/` as they are now.
    pub fn trust_digest(&self) -> Result<Digest, ConfigError> {
        // A missing prompt file does not count here: `prompt_template` reports it.
        let read = |file: PathBuf| source::read_bytes_within(self.project_directory(), &file).ok();
        let prompt = self.prompt_file_path().and_then(read).map(|bytes| Digest::of_bytes(&bytes));
        Ok(trust_digest::combine_digests(self.source.digest(), prompt, &self.workflow_files()?))
    }

    /// Returns the prompt template of this file or of the prompt file, or `None` for the default.
    pub fn prompt_template(&self) -> Result<Option<TextTemplate>, ConfigError> {
        let Some(file) = self.prompt_file_path() else { return Ok(self.prompt.clone()) };
        let read = source::read_bytes_within(self.project_directory(), &file);
        let bytes = read.map_err(|error| self.missing_prompt_error(error))?;
        let text = source::decode_text(&file, bytes)?;
        let written = LocatedValue { value: text.clone(), at: 0..text.len() };
        let template =
            hooks::compile_prompt(&written, ExpressionCompiler::without_event(&text), &ExpressionNames::for_prompt());
        Ok(Some(template.map_err(|problem| ConfigError::from_problem(&file, &text, problem))?))
    }

    /// Turns the error of a missing prompt file into one at the setting that names it.
    fn missing_prompt_error(&self, error: ConfigError) -> ConfigError {
        let Some(name) = self.settings.prompt_file.as_ref().filter(|_| error.is_missing_file()) else { return error };
        let problem = ConfigProblem::new(format!("there is no file {}", quote_text(&name.value)))
            .with_suggestion("create it, or name another one: the path is relative to this file".to_owned())
            .with_range(name.at.clone());
        ConfigError::from_problem(self.file(), self.text(), problem)
    }

    fn prompt_file_path(&self) -> Option<PathBuf> {
        self.settings.prompt_file.as_ref().map(|name| self.file().with_file_name(&name.value))
    }

    /// Returns which commands an agent may run. The default is the commands under `validators`, or any command if there are none.
    pub fn agent_command_policy(&self) -> AgentCommandSetting {
        let usual =
            if self.settings.validators.is_empty() { AgentCommandSetting::Allow } else { AgentCommandSetting::Named };
        self.settings.agent_commands.unwrap_or(usual)
    }

    /// Returns the commands that validation rules may name.
    pub fn validator_commands(&self) -> BTreeMap<String, CommandRule> {
        self.settings
            .validators
            .iter()
            .map(|(name, written)| (name.clone(), validators::command_rule(&written.value)))
            .collect()
    }

    /// Returns whether an agent may run validators.
    pub fn runs_validators(&self) -> bool {
        self.settings.agent_commands != Some(AgentCommandSetting::Deny)
    }

    /// Returns the validation rules. `settings_check` has already parsed them once.
    pub fn validation_rules(&self) -> ConfiguredRules {
        let rules =
            |list: &RuleList| validation_rules::read_rules(list).expect("the rules were checked when they were read");
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
                enabled: hook.is_enabled(),
                priority: hook.entry.priority,
            }),
            _ => None,
        };
        self.hooks.iter().filter_map(setting).collect()
    }

    /// Returns the hooks that run workflows, each with the id of its workflow.
    pub fn workflow_hooks(&self) -> Vec<(&HookSpec, &LocatedValue<String>)> {
        self.hooks.iter().filter_map(|hook| Some((hook, hook.entry.workflow.as_ref()?))).collect()
    }

    /// Returns the number of enabled hooks at each point.
    pub fn count_hooks_by_point(&self) -> BTreeMap<HookPoint, usize> {
        let mut points = BTreeMap::new();
        for point in self.hooks.iter().filter(|hook| hook.is_enabled()).flat_map(HookSpec::all_points) {
            *points.entry(point.clone()).or_default() += 1;
        }
        points
    }

    /// Returns whether the configuration has a list for a point, even an empty one: for tasks of that type, or for all.
    pub fn defines_point(&self, point: &HookPoint, kind: Option<&str>) -> bool {
        let given = |points: &hook_settings::HookLists| {
            points.0.iter().any(|(name, _)| parse_hook_point(name).as_ref() == Some(point))
        };
        let of_type = self.task_type_overrides().any(|(name, other)| Some(name) == kind && other == *point);
        of_type || given(&self.settings.hooks)
    }

    /// Returns the points at which a task type has its own list of hooks instead of the project's.
    pub fn task_type_overrides(&self) -> impl Iterator<Item = (&str, HookPoint)> {
        self.settings.task_types.iter().flat_map(|(name, task_type)| {
            let points = task_type.hooks.0.iter().filter_map(|(point, _)| parse_hook_point(point));
            points.map(|point| (name.as_str(), point))
        })
    }

    /// Returns whether the project has its own list of hooks at a point.
    pub fn has_project_list(&self, point: &HookPoint) -> bool {
        self.settings.hooks.0.iter().any(|(written, _)| parse_hook_point(written).as_ref() == Some(point))
    }

    /// Returns whether a name selects an agent here.
    pub fn knows_agent(&self, name: &str) -> bool {
        settings_check::is_agent_name(name, &self.settings)
    }

    /// Returns the review brief for a gatekeeper of that name.
    pub fn review_brief(&self, name: &str) -> String {
        match self.settings.briefs.get(name) {
            Some(text) => text.value.clone(),
            None => {
                format!("Judge this change by one question: {name}. Approve it only if the answer is good.")
            }
        }
    }

    /// Returns warnings about settings that are valid and probably not intended.
    pub fn find_warnings(&self) -> Vec<ConfigWarning> {
        pipeline_rules::find_warnings(&self.settings, &self.hooks, self.text())
    }

    /// Returns the gates whose only checks run the project's tests, each with the type of task that has it for itself.
    pub fn find_test_gates(&self) -> Vec<(HookPoint, Option<&str>)> {
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

pub(super) fn parse_settings(text: &str) -> Result<(Settings, Vec<HookSpec>, Option<TextTemplate>), ConfigProblem> {
    let tree = yaml::parse_yaml(text)?;
    let settings: Settings = deserialize_node(&tree, text)?;
    settings_check::check_settings(&settings)?;
    validators::check_validators(&settings.validators, text)?;
    validation_rules::check_validation_rules(&settings)?;
    let mut hooks = hooks::resolve_hooks(&settings, text)?;
    pipeline_rules::check_all_pipelines(&settings, &hooks)?;
    hooks.extend(notices::build_notice_hooks(&settings, &hooks, text)?);
    let prompt = parse_prompt(&settings, text)?;
    Ok((settings, hooks, prompt))
}

fn parse_prompt(settings: &Settings, text: &str) -> Result<Option<TextTemplate>, ConfigProblem> {
    settings
        .prompt
        .as_ref()
        .map(|written| {
            hooks::compile_prompt(written, ExpressionCompiler::without_event(text), &ExpressionNames::for_prompt())
        })
        .transpose()
}
