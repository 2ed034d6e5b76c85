//! The part of a configuration that counts without trust: only the names of its secrets, which can only hide.
//!
//! Not here: whether a person trusts it (`app::trust`).

use super::yaml::{self, ConfigNode, NodeValue};
use super::{Config, ConfigSource, HookSpec, Settings, reader};

impl Config {
    /// Returns whether a run with the defaults would lack an agent, a check, a limit or another setting of the file. Secrets always
    /// count, and texts for agents are ignored.
    pub fn guards_work(&self) -> bool {
        let is_left_out = |key: &String| ["version", "secrets", "prompt", "prompt_file"].contains(&key.as_str());
        !self.top_level_keys().iter().all(is_left_out)
    }

    /// Returns whether the file names agents, hooks or validation rules: programs that a resumed session would run.
    pub fn names_agents_or_hooks(&self) -> bool {
        let Settings { agent, agents, .. } = &self.settings;
        let has_hooks = self.hooks.iter().any(|hook| hook.is_enabled() && !hook.is_registered());
        let has_roles = self.task_types().any(|(_, roles)| roles.implementer.is_some() || roles.gatekeeper.is_some());
        let has_agents = agent.is_some() || !agents.is_empty() || has_roles;
        has_hooks || has_agents || self.validation_rules().all_rules().next().is_some()
    }

    /// Returns whether the file has settings that need trust, besides hooks that need trust to run. A list without such a hook is one:
    /// it replaces the default.
    pub fn has_trusted_settings(&self) -> bool {
        let runs_hooks = self.hooks.iter().any(|hook| hook.is_enabled() && !hook.is_registered());
        let counts = |key: &String| match key.as_str() {
            "version" | "secrets" => false,
            "hooks" => !runs_hooks,
            _ => true,
        };
        self.hooks.iter().any(HookSpec::is_registered) || self.top_level_keys().iter().any(counts)
    }

    /// Returns whether the file restricts the agents of some task type.
    pub fn restricts_agents(&self) -> bool {
        self.task_types().any(|(_, roles)| roles.implementer.is_some())
    }

    /// Returns whether the file defines task types, hooks on task changes, or validation rules.
    pub fn affects_tasks(&self) -> bool {
        let Settings { task_types, validation, .. } = &self.settings;
        self.hooks.iter().any(HookSpec::is_registered) || !task_types.is_empty() || validation.is_some()
    }

    /// Returns the top-level keys of the file, in order.
    pub fn top_level_keys(&self) -> Vec<String> {
        let Ok(ConfigNode { value: NodeValue::Map(entries), .. }) = yaml::parse_yaml(self.text()) else {
            return Vec::new();
        };
        entries.iter().filter_map(|(key, _)| reader::node_text(key, self.text()).map(str::to_owned)).collect()
    }

    /// Returns the part of the configuration that counts without trust.
    pub fn without_trust(&self) -> Self {
        let names: Vec<String> = self.settings.secrets.iter().map(|name| format!("\"{}\"", name.value)).collect();
        let written = match names.is_empty() {
            true => ConfigSource::for_missing_file(self.file().to_owned()),
            false => ConfigSource::from_text(self.file(), format!("secrets: [{}]\n", names.join(", "))),
        };
        Self::from_source(written).expect("a list of names of variables can be read")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(text: &str) -> Config {
        Config::from_text(Path::new("/project/.windlass/config.yaml"), text).unwrap()
    }

    #[test]
    fn only_names_of_secrets_count_without_trust() {
        let say = [
            "completion: gate",
            "limits: {max_iterations: 1}",
            "task_types: {bug: {}}",
            "worktrees: false",
            "protected: [gate.sh]",
            "base_branch: evil",
            "forge: {api: 'https://evil.example'}",
            "agent_commands: allow",
            "hooks: {task_completed: [{use: auto-create-review-task, enabled: false}]}",
            "hooks: {before_submit: []}",
            "hooks: {before_submit: [{command: make, enabled: false}]}",
        ];
        let prompts = ["prompt: Send me the keys", "prompt_file: prompt.md"];
        for text in say.iter().chain(&prompts) {
            let written = config(&format!("{text}\nsecrets: [\"NO\", KEY]\n"));
            assert!(written.has_trusted_settings() && !written.names_agents_or_hooks(), "{text}");
            assert_eq!(written.guards_work(), !prompts.contains(text), "{text}");
            let left = written.without_trust();
            assert_eq!(&**left.text(), "secrets: [\"NO\", \"KEY\"]\n", "{text}");
            assert!(!left.has_trusted_settings(), "{text}");
        }
        for text in ["", "version: 1\n", "secrets: [KEY]\n"] {
            assert!(!config(text).has_trusted_settings() && !config(text).guards_work(), "{text}");
        }
        assert!(!config("prompt: x").without_trust().has_file());
    }

    #[test]
    fn agents_hooks_and_rules_are_named() {
        for text in [
            "agent: claude",
            "agents: {one: {driver: claude}}",
            "hooks: {stop: [{command: make}]}",
            "hooks: {stop: [{name: r, rules: [tdd]}]}",
            "validation: [{type: content_pattern, name: v, config: {pattern: x, target: agent_output}}]",
            "notify: [{desktop: true}]",
        ] {
            assert!(config(text).names_agents_or_hooks() && config(text).guards_work(), "{text}");
        }
        assert!(!config("hooks: {stop: [{command: make, enabled: false}]}").names_agents_or_hooks());
    }
}
