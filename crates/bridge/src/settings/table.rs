//! The layout of each agent's settings: locations of files, names of events, units of time.
//!
//! `docs/install.md` lists the versions that this was tried with.

use super::command::{self, Program};
use crate::{Agent, AgentHookEvent};

/// The scope of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All users of the project.
    Project,
    /// One user, in all projects.
    User,
}

impl Scope {
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
    pub agent: Agent,
    /// The environment variable that names another folder.
    pub variable: Option<&'static str>,
    /// The folder below the project's root or the user's home.
    pub folder: &'static str,
    /// The path below the folder.
    pub name: &'static str,
    pub holds: SettingsPurpose,
    /// Whether only Windlass writes the file.
    pub is_own: bool,
}

/// The purpose of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsPurpose {
    Hooks,
    Servers,
    Both,
}

impl SettingsFile {
    const fn new(agent: Agent, folder: &'static str, name: &'static str, holds: SettingsPurpose) -> Self {
        Self { agent, variable: None, folder, name, holds, is_own: false }
    }

    const fn moved_by(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }

    const fn own(self) -> Self {
        Self { is_own: true, ..self }
    }

    pub fn has_hooks(self) -> bool {
        self.holds != SettingsPurpose::Servers
    }

    pub fn has_servers(self) -> bool {
        self.holds != SettingsPurpose::Hooks
    }
}

/// Returns the settings files of an agent, the one with the hooks first. Empty if it has no settings of that scope.
pub fn files(agent: Agent, scope: Scope) -> Vec<SettingsFile> {
    use SettingsPurpose::{Both, Hooks, Servers};
    let file = |folder, name, holds| SettingsFile::new(agent, folder, name, holds);
    match (agent, scope) {
        (Agent::Claude, Scope::Project) => {
            vec![file(".claude", "settings.json", Hooks), file("", ".mcp.json", Servers)]
        }
        (Agent::Claude, Scope::User) => vec![
            file(".claude", "settings.json", Hooks).moved_by("CLAUDE_CONFIG_DIR"),
            file("", ".claude.json", Servers).moved_by("CLAUDE_CONFIG_DIR"),
        ],
        (Agent::Codex, Scope::Project) => {
            vec![file(".codex", "hooks.json", Hooks), file(".codex", "config.toml", Servers)]
        }
        (Agent::Codex, Scope::User) => vec![
            file(".codex", "hooks.json", Hooks).moved_by("CODEX_HOME"),
            file(".codex", "config.toml", Servers).moved_by("CODEX_HOME"),
        ],
        (Agent::Gemini, _) => vec![file(".gemini", "settings.json", Both)],
        (Agent::Qwen, _) => vec![file(".qwen", "settings.json", Both)],
        (Agent::Copilot, Scope::Project) => {
            vec![file(".github", "hooks/windlass.json", Hooks).own(), file("", ".mcp.json", Servers)]
        }
        (Agent::Copilot, Scope::User) => vec![
            file(".copilot", "hooks/windlass.json", Hooks).own().moved_by("COPILOT_HOME"),
            file(".copilot", "mcp-config.json", Servers).moved_by("COPILOT_HOME"),
        ],
        (Agent::Goose, _) => vec![
            file(".agents", "plugins/windlass/hooks/hooks.json", Hooks).own(),
            file(".agents", "plugins/windlass/.mcp.json", Servers).own(),
        ],
        (Agent::Kimi, Scope::Project) => Vec::new(),
        (Agent::Kimi, Scope::User) => vec![
            file(".kimi-code", "config.toml", Hooks).moved_by("KIMI_CODE_HOME"),
            file(".kimi-code", "mcp.json", Servers).moved_by("KIMI_CODE_HOME"),
        ],
        (Agent::Cursor, _) => vec![file(".cursor", "hooks.json", Hooks), file(".cursor", "mcp.json", Servers)],
    }
}

/// Returns the other agents that read the same file.
pub fn sharers(file: &SettingsFile, scope: Scope) -> Vec<Agent> {
    let is_same = |other: &SettingsFile| (other.folder, other.name) == (file.folder, file.name);
    let shares = |agent: &Agent| *agent != file.agent && files(*agent, scope).iter().any(is_same);
    Agent::ALL.iter().copied().filter(shares).collect()
}

/// Returns the name of an event in the agent's settings, if Windlass uses it there.
pub fn event(agent: Agent, moment: AgentHookEvent) -> Option<&'static str> {
    // Gemini CLI's `PreCompress` comes before every request, even if nothing is compressed.
    agent.event_name(moment).filter(|_| (agent, moment) != (Agent::Gemini, AgentHookEvent::PreCompact))
}

/// A hook in an agent's settings.
#[derive(Debug)]
pub struct HookEntry {
    pub event: &'static str,
    pub command: String,
    /// The timeout in the agent's own unit.
    pub timeout: u64,
}

pub fn hook_entries(agent: Agent, program: &Program) -> Vec<HookEntry> {
    let entry = |moment: &AgentHookEvent| {
        let seconds = time_limit(agent, *moment);
        Some(HookEntry {
            event: event(agent, *moment)?,
            command: command::line(program, agent, *moment, seconds),
            // Qwen Code reads values from 1000 on as milliseconds.
            timeout: if matches!(agent, Agent::Gemini | Agent::Qwen) { seconds * 1000 } else { seconds },
        })
    };
    AgentHookEvent::ALL.iter().filter_map(entry).collect()
}

/// Returns the time limit of a hook in seconds: long enough for a test suite when the agent wants to stop.
fn time_limit(agent: Agent, moment: AgentHookEvent) -> u64 {
    let seconds = match moment {
        AgentHookEvent::Stop | AgentHookEvent::SubagentStop => 3600,
        // The agent does not wait for these hooks.
        AgentHookEvent::Notification | AgentHookEvent::SessionEnd => 60,
        _ => 600,
    };
    match (agent, moment) {
        // Kimi Code refuses its whole list of hooks for a longer time.
        (Agent::Kimi, _) => seconds.min(600),
        // Codex accepts no longer time, and warns at every start.
        (Agent::Codex, AgentHookEvent::SessionEnd) => 3,
        _ => seconds,
    }
}
