//! What each agent's settings look like: where they are, what it calls our moments, how it counts time.
//!
//! Versions that this was seen with are in `docs/install.md`.

use crate::{Agent, Moment};

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of everybody who works on the project.
    Project,
    /// Of one person, in all projects.
    User,
}

/// A settings file of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    pub agent: Agent,
    /// The variable that names another folder.
    pub variable: Option<&'static str>,
    /// Below the project's root, or the person's home.
    pub folder: &'static str,
    /// Below the folder.
    pub name: &'static str,
    pub holds: Holds,
    /// Whether nobody but us writes it.
    pub is_own: bool,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Hooks,
    Servers,
    Both,
}

impl File {
    const fn new(agent: Agent, folder: &'static str, name: &'static str, holds: Holds) -> Self {
        Self { agent, variable: None, folder, name, holds, is_own: false }
    }

    const fn moved_by(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }

    const fn own(self) -> Self {
        Self { is_own: true, ..self }
    }

    /// Whether it is TOML; all others are JSON.
    pub(super) fn is_toml(self) -> bool {
        self.name.ends_with(".toml")
    }

    pub fn has_hooks(self) -> bool {
        self.holds != Holds::Servers
    }

    pub fn has_servers(self) -> bool {
        self.holds != Holds::Hooks
    }
}

/// The settings files of an agent, the one with the hooks first; none where it has no settings of that scope.
pub fn files(agent: Agent, scope: Scope) -> Vec<File> {
    use Holds::{Both, Hooks, Servers};
    let file = |folder, name, holds| File::new(agent, folder, name, holds);
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

/// The agents that read the same file for the same purpose.
pub fn sharers(file: &File, scope: Scope) -> Vec<Agent> {
    let is_same = |other: &File| (other.folder, other.name) == (file.folder, file.name);
    let shares = |agent: &Agent| *agent != file.agent && files(*agent, scope).iter().any(is_same);
    Agent::ALL.iter().copied().filter(shares).collect()
}

/// What an agent calls a moment at which it is to call us, if it has it.
pub fn event(agent: Agent, moment: Moment) -> Option<&'static str> {
    // Gemini CLI's `PreCompress` comes before every request, whether anything is compressed or not.
    agent.event(moment).filter(|_| (agent, moment) != (Agent::Gemini, Moment::PreCompact))
}

/// How many seconds a hook may take: long enough for a test-suite where the agent wants to stop.
pub fn patience(agent: Agent, moment: Moment) -> u64 {
    let seconds = match moment {
        Moment::Stop | Moment::SubagentStop => 3600,
        Moment::SessionStart
        | Moment::UserPromptSubmit
        | Moment::PreToolUse
        | Moment::PostToolUse
        | Moment::PreCompact => 600,
        // Nobody waits for what comes of them.
        Moment::Notification | Moment::SessionEnd => 60,
    };
    match (agent, moment) {
        // It refuses its whole list of hooks for a longer time.
        (Agent::Kimi, _) => seconds.min(600),
        // It takes no more, and says so at every start.
        (Agent::Codex, Moment::SessionEnd) => 3,
        _ => seconds,
    }
}

/// How many of them are ours: the rest is for letting go.
pub fn within(patience: u64) -> u64 {
    let rest = match patience {
        0..60 => 1,
        60..600 => 5,
        _ => 10,
    };
    patience.saturating_sub(rest).max(1)
}

/// A time as the agent counts it.
pub fn timeout(agent: Agent, seconds: u64) -> u64 {
    match agent {
        // Qwen takes what is 1000 or more for milliseconds.
        Agent::Gemini | Agent::Qwen => seconds * 1000,
        _ => seconds,
    }
}
