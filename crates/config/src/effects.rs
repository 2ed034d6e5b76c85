//! The effects of a configuration, for a person who decides whether to trust it.

use windlass_engine::validation::{ValidationRule, ValidationRuleKind};

use super::config::Config;
use super::hooks::HookSpec;
use super::settings::{AgentCommandSetting, Settings};
use super::validators;

/// A setting that runs a program, sends a request or prompts an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredEffect {
    /// The point, or the section of the file.
    pub place: String,
    pub name: String,
    /// The text as written: not cleaned, perhaps several lines.
    pub what: String,
    pub line: Option<usize>,
}

impl ConfiguredEffect {
    /// Returns the place and the name, without repetition.
    pub fn display_title(&self) -> String {
        match self.name.starts_with(&self.place) {
            true => self.name.clone(),
            false => format!("{} {}", self.place, self.name),
        }
    }
}

impl Config {
    /// Returns every enabled hook that runs a program, sends a request or prompts an agent.
    pub fn effectful_hooks(&self) -> Vec<ConfiguredEffect> {
        let effect = |hook: &HookSpec| {
            let what = hook.describe_effect()?;
            Some(ConfiguredEffect {
                place: hook.describe_place(),
                name: hook.name.clone(),
                what,
                line: Some(hook.line),
            })
        };
        self.hooks.iter().filter(|hook| hook.is_enabled()).filter_map(effect).collect()
    }

    /// Returns everything that this configuration runs: hooks, notices, agents' programs, validators, tests; and the texts that agents
    /// receive.
    pub fn list_effects(&self) -> Vec<ConfiguredEffect> {
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
        effects.extend(agents.iter().map(|(name, agent)| other("agents", name, agent.describe_program(name))));
        for (name, roles) in self.task_types() {
            for (role, names) in [("implementer", &roles.implementer), ("gatekeeper", &roles.gatekeeper)] {
                let names =
                    names.iter().flat_map(|names| names.iter()).filter(|name| !agents.contains_key(&name.value));
                effects.extend(names.map(|agent| other("task_types", &format!("{name} {role}"), agent.value.clone())));
            }
        }
        effects.extend(self.validation_rule_effects());
        effects.extend(self.validator_effects());
        effects.extend(self.agent_command_effect());
        effects.extend(briefs.iter().map(|(name, text)| other("briefs", name, text.value.clone())));
        effects.extend(forge.api.iter().map(|api| other("forge", "api", format!("your token goes to {}", api.value))));
        effects.extend(prompt.iter().map(|prompt| other("prompt", "prompt", prompt.value.clone())));
        effects.extend(prompt_file.iter().map(|file| other("prompt_file", "prompt_file", file.value.clone())));
        effects.extend(test_command.iter().map(|command| other("test_command", "run_tests", command.value.clone())));
        effects
    }

    /// Returns the programs that validation rules run.
    fn validation_rule_effects(&self) -> Vec<ConfiguredEffect> {
        let effect = |rule: &ValidationRule| {
            let what = match &rule.kind {
                ValidationRuleKind::Command(command) => command.command.clone(),
                ValidationRuleKind::Custom(custom) => format!("the validator {}", custom.validator_id),
                _ => return None,
            };
            Some(ConfiguredEffect { place: "validation".to_owned(), name: rule.name.clone(), what, line: None })
        };
        self.validation_rules().all_rules().filter_map(effect).collect()
    }

    /// Returns whether a hook or a rule runs a program, sends a request or prompts an agent.
    pub fn has_hook_or_rule_effects(&self) -> bool {
        !self.effectful_hooks().is_empty() || !self.validation_rule_effects().is_empty()
    }

    /// Returns the programs of validators. The list is empty if agents may not run validators.
    fn validator_effects(&self) -> impl Iterator<Item = ConfiguredEffect> {
        self.settings.validators.iter().filter(|_| self.runs_validators()).map(|(name, written)| {
            let rule = validators::command_rule(&written.value);
            let place = rule.working_directory.map(|path| format!(" (in {path})")).unwrap_or_default();
            let line = self.text()[..written.at.start].matches('\n').count() + 1;
            let (what, line) = (format!("{}{place}", rule.command), Some(line));
            ConfiguredEffect { place: "validators".to_owned(), name: name.clone(), what, line }
        })
    }

    /// Returns an effect if an agent may run any command.
    fn agent_command_effect(&self) -> Option<ConfiguredEffect> {
        let allowed = self.settings.agent_commands == Some(AgentCommandSetting::Allow);
        allowed.then(|| ConfiguredEffect {
            place: "agent_commands".to_owned(),
            name: "allow".to_owned(),
            what: "any command that an agent supplies".to_owned(),
            line: None,
        })
    }
}
