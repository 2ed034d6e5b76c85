//! The layout of each agent's settings: locations of files, names of events, units of time.
//!
//! `docs/reference/bridge.md` lists the versions that this was tried with.

use super::hook_command::{self, ProgramPath};
use crate::{AgentHookEvent, BridgeAgent};

/// The scope of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsScope {
    /// All users of the project.
    Project,
    /// One user, in all projects.
    User,
}

impl SettingsScope {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// A settings file of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsFile {
    pub agent: BridgeAgent,
    /// The environment variable that names another folder.
    pub folder_variable: Option<&'static str>,
    /// The folder below the project's root or the user's home.
    pub folder: &'static str,
    /// The path below the folder.
    pub name: &'static str,
    pub holds: SettingsPurpose,
    /// Whether only Windlass writes the file.
    pub is_exclusive: bool,
}

/// The purpose of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsPurpose {
    Hooks,
    Servers,
    Both,
}

impl SettingsFile {
    const fn new(agent: BridgeAgent, folder: &'static str, name: &'static str, holds: SettingsPurpose) -> Self {
        Self { agent, folder_variable: None, folder, name, holds, is_exclusive: false }
    }

    const fn with_folder_variable(self, variable: &'static str) -> Self {
        Self { folder_variable: Some(variable), ..self }
    }

    const fn with_exclusive_owner(self) -> Self {
        Self { is_exclusive: true, ..self }
    }

    pub fn has_hooks(self) -> bool {
        self.holds != SettingsPurpose::Servers
    }

    pub fn has_servers(self) -> bool {
        self.holds != SettingsPurpose::Hooks
    }
}

/// Returns the settings files of an agent, the one with the hooks first. Empty if it has no settings of that scope.
pub fn settings_files(agent: BridgeAgent, scope: SettingsScope) -> Vec<SettingsFile> {
    use SettingsPurpose::{Both, Hooks, Servers};
    let file = |folder, name, holds| SettingsFile::new(agent, folder, name, holds);
    match (agent, scope) {
        (BridgeAgent::Claude, SettingsScope::Project) => {
            vec![file(".claude", "settings.json", Hooks), file("", ".mcp.json", Servers)]
        }
        (BridgeAgent::Claude, SettingsScope::User) => vec![
            file(".claude", "settings.json", Hooks).with_folder_variable("CLAUDE_CONFIG_DIR"),
            file("", ".claude.json", Servers).with_folder_variable("CLAUDE_CONFIG_DIR"),
        ],
        (BridgeAgent::Codex, SettingsScope::Project) => {
            vec![file(".codex", "hooks.json", Hooks), file(".codex", "config.toml", Servers)]
        }
        (BridgeAgent::Codex, SettingsScope::User) => vec![
            file(".codex", "hooks.json", Hooks).with_folder_variable("CODEX_HOME"),
            file(".codex", "config.toml", Servers).with_folder_variable("CODEX_HOME"),
        ],
        (BridgeAgent::Gemini, _) => vec![file(".gemini", "settings.json", Both)],
        (BridgeAgent::Qwen, _) => vec![file(".qwen", "settings.json", Both)],
        (BridgeAgent::Copilot, SettingsScope::Project) => {
            vec![file(".github", "hooks/windlass.json", Hooks).with_exclusive_owner(), file("", ".mcp.json", Servers)]
        }
        (BridgeAgent::Copilot, SettingsScope::User) => vec![
            file(".copilot", "hooks/windlass.json", Hooks).with_exclusive_owner().with_folder_variable("COPILOT_HOME"),
            file(".copilot", "mcp-config.json", Servers).with_folder_variable("COPILOT_HOME"),
        ],
        (BridgeAgent::Goose, _) => vec![
            file(".agents", "plugins/windlass/hooks/hooks.json", Hooks).with_exclusive_owner(),
            file(".agents", "plugins/windlass/.mcp.json", Servers).with_exclusive_owner(),
        ],
        (BridgeAgent::Kimi, SettingsScope::Project) => Vec::new(),
        (BridgeAgent::Kimi, SettingsScope::User) => vec![
            file(".kimi-code", "config.toml", Hooks).with_folder_variable("KIMI_CODE_HOME"),
            file(".kimi-code", "mcp.json", Servers).with_folder_variable("KIMI_CODE_HOME"),
        ],
        (BridgeAgent::Cursor, _) => vec![file(".cursor", "hooks.json", Hooks), file(".cursor", "mcp.json", Servers)],
    }
}

/// Returns the other agents that read the same file.
pub fn agents_sharing_file(file: &SettingsFile, scope: SettingsScope) -> Vec<BridgeAgent> {
    let is_same = |other: &SettingsFile| (other.folder, other.name) == (file.folder, file.name);
    let shares = |agent: &BridgeAgent| *agent != file.agent && settings_files(*agent, scope).iter().any(is_same);
    BridgeAgent::ALL.iter().copied().filter(shares).collect()
}

/// Returns the name of an event in the agent's settings, if Windlass uses it there.
pub fn settings_event_name(agent: BridgeAgent, moment: AgentHookEvent) -> Option<&'static str> {
    // Gemini CLI's `PreCompress` comes before every request, even if nothing is compressed.
    agent.event_name(moment).filter(|_| (agent, moment) != (BridgeAgent::Gemini, AgentHookEvent::PreCompact))
}

/// A hook in an agent's settings.
#[derive(Debug)]
pub struct HookEntry {
    pub event: &'static str,
    pub command: String,
    /// The timeout in the agent's own unit.
    pub timeout: u64,
}

pub fn build_hook_entries(agent: BridgeAgent, program: &ProgramPath) -> Vec<HookEntry> {
    let entry = |moment: &AgentHookEvent| {
        let seconds = hook_time_limit(agent, *moment);
        Some(HookEntry {
            event: settings_event_name(agent, *moment)?,
            command: hook_command::format_hook_command(program, agent, *moment, seconds),
            // Qwen Code reads values from 1000 on as milliseconds.
            timeout: if matches!(agent, BridgeAgent::Gemini | BridgeAgent::Qwen) { seconds * 1000 } else { seconds },
        })
    };
    AgentHookEvent::ALL.iter().filter_map(entry).collect()
}

/// Returns the time limit of a hook in seconds: long enough for a test suite when the agent wants to stop.
fn hook_time_limit(agent: BridgeAgent, moment: AgentHookEvent) -> u64 {
    let seconds = match moment {
        AgentHookEvent::Stop | AgentHookEvent::SubagentStop => 3600,
        // The agent does not wait for these hooks.
        AgentHookEvent::Notification | AgentHookEvent::SessionEnd => 60,
        _ => 600,
    };
    match (agent, moment) {
        // Kimi Code refuses its whole list of hooks for a longer time.
        (BridgeAgent::Kimi, _) => seconds.min(600),
        // Codex accepts no longer time, and warns at every start.
        (BridgeAgent::Codex, AgentHookEvent::SessionEnd) => 3,
        _ => seconds,
    }
}
