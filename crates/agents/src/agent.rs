//! Agents as users name them, and their set-up.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use windlass_process::{Environment, ProgramInvocation, overlay_environment};

use crate::acp::{AgentPermissions, McpServer};
use crate::headless::HeadlessDialect;
use crate::{TurnEnd, failure};

/// An error for a name that stands for no known agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an agent that this version can drive")]
pub struct ParseAgentError(pub String);

/// An agent that Windlass can drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The name in the configuration and in the log.
    pub name: String,
    pub kind: AgentKind,
    pub setup: AgentSetup,
}

/// The kind of an agent: how to start it, and which protocol it speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKind {
    /// A new process for each prompt: a shell script.
    Command(String),
    /// One process that speaks the Agent Client Protocol: a shell script.
    Acp(String),
    /// The built-in agent, which plays the script in this file.
    Scripted(String),
    /// A known agent, driven by its own command line and event stream.
    Headless(HeadlessDialect),
}

/// The user's settings for starting an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSetup {
    /// A shell script that replaces the usual program of a known agent.
    pub command: Option<String>,
    /// Arguments after those of the driver.
    pub args: Vec<String>,
    pub model: Option<String>,
    /// Variables that are added to the environment.
    pub environment: Vec<(String, String)>,
    /// Permissions for the agent's requests and for the client services.
    pub permissions: AgentPermissions,
    /// The access that the agent needs.
    pub access: AgentAccess,
    /// The directory that the agent reviews, if the work is not its own. Instructions and settings in it must not take effect.
    pub judged_directory: Option<PathBuf>,
    /// MCP servers for the agent, if its protocol accepts them.
    pub servers: Vec<McpServer>,
    /// The absolute path of the program that serves Windlass's own tools, if the agent gets them.
    pub tool_server_program: Option<PathBuf>,
}

/// The access of an agent, as far as its command line can limit it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentAccess {
    /// The agent may change files and run commands.
    #[default]
    Full,
    /// The agent may only read: it changes nothing and runs nothing that could.
    ReadOnly,
}

/// The agents that are known by name, best known first, and their usual drivers.
pub const KNOWN_AGENTS: [(&str, KnownAgent); 9] = [
    ("claude", KnownAgent::Headless(HeadlessDialect::Claude)),
    ("codex", KnownAgent::Headless(HeadlessDialect::Codex)),
    ("opencode", KnownAgent::Headless(HeadlessDialect::Opencode)),
    ("gemini", KnownAgent::Headless(HeadlessDialect::Gemini)),
    ("goose", KnownAgent::Headless(HeadlessDialect::Goose)),
    ("qwen", KnownAgent::Acp("qwen --acp")),
    ("copilot", KnownAgent::Acp("copilot --acp")),
    ("kimi", KnownAgent::Acp("kimi acp")),
    ("aider", KnownAgent::Command(AIDER_COMMAND)),
];

/// These options turn off questions, lookups and telemetry.
const AIDER_COMMAND: &str = "aider --yes-always --no-pretty --no-stream --no-fancy-input --no-check-update --no-show-release-notes \
    --no-show-model-warnings --no-detect-urls --no-suggest-shell-commands --no-analytics --disable-playwright \
    --message-file /dev/stdin";

/// How a known agent is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownAgent {
    Headless(HeadlessDialect),
    Acp(&'static str),
    Command(&'static str),
}

impl KnownAgent {
    pub fn find_by_name(name: &str) -> Option<Self> {
        KNOWN_AGENTS.iter().find(|(known, _)| *known == name).map(|(_, known)| *known)
    }

    pub fn to_agent_kind(self) -> AgentKind {
        match self {
            Self::Headless(dialect) => AgentKind::Headless(dialect),
            Self::Acp(command) => AgentKind::Acp(command.to_owned()),
            Self::Command(command) => AgentKind::Command(command.to_owned()),
        }
    }
}

impl Agent {
    /// Returns an agent without any settings.
    pub fn with_default_setup(name: &str, kind: AgentKind) -> Self {
        Self { name: name.to_owned(), kind, setup: AgentSetup::default() }
    }

    /// Resolves relative program and script paths against `home`, so that the agent can start in any directory.
    pub fn resolve_relative_paths(mut self, home: &Path) -> Self {
        match &mut self.kind {
            AgentKind::Scripted(file) => *file = home.join(&*file).to_string_lossy().into_owned(),
            AgentKind::Command(command) | AgentKind::Acp(command) => *command = resolve_program_path(home, command),
            AgentKind::Headless(_) => {}
        }
        self.setup.command = self.setup.command.map(|command| resolve_program_path(home, &command));
        self
    }

    /// Returns whether the agent process stays from turn to turn.
    pub fn is_persistent(&self) -> bool {
        matches!(self.kind, AgentKind::Acp(_) | AgentKind::Scripted(_))
    }

    /// Returns whether the agent writes while it works. Only then does an idle timeout make sense.
    pub fn streams_output(&self) -> bool {
        !matches!(self.kind, AgentKind::Command(_))
    }

    /// Returns the invocation of an agent without driver arguments. `own` is the path of this program.
    pub fn build_invocation(&self, own: &Path) -> ProgramInvocation {
        match &self.kind {
            AgentKind::Command(command) | AgentKind::Acp(command) => {
                ProgramInvocation::Shell(self.append_arguments(command).into())
            }
            AgentKind::Scripted(file) => {
                let words: [OsString; 3] = [own.into(), "agent".into(), file.into()];
                ProgramInvocation::Argv(words.into())
            }
            AgentKind::Headless(dialect) => {
                ProgramInvocation::Shell(self.append_arguments(self.program_script(*dialect)).into())
            }
        }
    }

    /// Returns the script that starts a known agent's program.
    pub fn program_script(&self, dialect: HeadlessDialect) -> &str {
        self.setup.command.as_deref().unwrap_or(dialect.program_name())
    }

    /// Returns a script with the user's arguments appended.
    pub fn append_arguments(&self, command: &str) -> String {
        let mut script = command.to_owned();
        for argument in &self.setup.args {
            script.push(' ');
            script.push_str(&quote_shell_word(argument));
        }
        script
    }

    /// Returns the environment of the agent's program. The user's settings and inherited variables take precedence over the
    /// driver's. With read-only access, only the settings for this agent do: inherited variables are meant for any use of it.
    pub fn build_environment(&self, around: &Environment) -> Environment {
        let needed = match self.kind {
            AgentKind::Headless(dialect) => dialect.base_environment(self.setup.access),
            AgentKind::Command(_) | AgentKind::Acp(_) | AgentKind::Scripted(_) => &[],
        };
        let missing = |name: &str| around.iter().all(|(set, _)| set != name);
        let holds = |name: &str| self.setup.access == AgentAccess::ReadOnly || missing(name);
        let needed = needed.iter().filter(|(name, _)| holds(name)).map(|(name, value)| (*name, value.into()));
        let around = overlay_environment(around, needed.collect());
        let added = self.setup.environment.iter().map(|(name, value)| (name.as_str(), value.into()));
        overlay_environment(&around, added.collect())
    }

    /// Returns what the end of a turn means. A message may say that the agent cannot work.
    pub fn classify_turn_end(&self, end: TurnEnd) -> TurnEnd {
        if matches!(self.kind, AgentKind::Scripted(_)) {
            return end;
        }
        let found = match &end {
            TurnEnd::Answered(said) => failure::classify_failure_answer(said),
            TurnEnd::Failed { why, .. } | TurnEnd::Broken(why) | TurnEnd::NoConversation(why) => {
                failure::classify_failed_output("", why)
            }
            _ => None,
        };
        found.map_or(end, |trouble| trouble.into_turn_end(self.command_text()))
    }

    /// Returns the agent's command, which tells the remedy for a failed login.
    pub(crate) fn command_text(&self) -> &str {
        match &self.kind {
            AgentKind::Command(command) | AgentKind::Acp(command) => command,
            AgentKind::Scripted(file) => file,
            AgentKind::Headless(dialect) => dialect.program_name(),
        }
    }
}

/// Resolves the program of a command line against a directory, if it is a relative path without shell syntax.
fn resolve_program_path(home: &Path, command: &str) -> String {
    let end = command.find(char::is_whitespace).unwrap_or(command.len());
    let (program, rest) = command.split_at(end);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "./_-+".contains(letter);
    let relative = program.contains('/') && !program.starts_with('/') && program.chars().all(plain);
    let place = home.join(program.strip_prefix("./").unwrap_or(program));
    match place.to_str().filter(|_| relative) {
        Some(place) => format!("{}{rest}", quote_shell_word(place)),
        None => command.to_owned(),
    }
}

/// Quotes a word for the shell.
pub(crate) fn quote_shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl FromStr for Agent {
    type Err = ParseAgentError;

    fn from_str(text: &str) -> Result<Self, ParseAgentError> {
        let driver = match text.split_once(':').filter(|(_, what)| !what.trim().is_empty()) {
            Some(("command", command)) => AgentKind::Command(command.to_owned()),
            Some(("acp", command)) => AgentKind::Acp(command.to_owned()),
            Some(("scripted", file)) => AgentKind::Scripted(file.to_owned()),
            _ => KnownAgent::find_by_name(text).ok_or_else(|| ParseAgentError(text.to_owned()))?.to_agent_kind(),
        };
        Ok(Self::with_default_setup(text, driver))
    }
}

impl Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use windlass_engine::TurnFailure;

    use super::*;

    #[test]
    fn relative_program_path_is_resolved_below_home() {
        let check = |command: &str, home: &str, expected: &str| {
            let agent = Agent::with_default_setup("x", AgentKind::Command(command.to_owned()))
                .resolve_relative_paths(Path::new(home));
            assert_eq!(agent.kind, AgentKind::Command(expected.to_owned()));
        };
        check("./agent.sh -p 'x y'", "/p", "/p/agent.sh -p 'x y'");
        check("bin/agent", "/my project", "'/my project/bin/agent'");
        check("/abs/agent ./x", "/p", "/abs/agent ./x");
        check("claude -p ./x", "/p", "claude -p ./x");
        check("$HOME/agent ./x", "/p", "$HOME/agent ./x");
        let tape = Agent::with_default_setup("x", AgentKind::Scripted("play.yaml".to_owned()))
            .resolve_relative_paths(Path::new("/p"));
        assert_eq!(tape.kind, AgentKind::Scripted("/p/play.yaml".to_owned()));
    }

    #[test]
    fn agent_name_parses_and_prints_unchanged() {
        for text in ["command:claude -p", "command:sh -c 'x:y'", "acp:goose acp", "scripted:a b.yaml", "claude", "qwen"]
        {
            assert_eq!(text.parse::<Agent>().map(|agent| agent.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "command:", "command: ", "Claude", "acp:", "scripted:\t", "acp", "ACP:x"] {
            assert!(text.parse::<Agent>().is_err(), "{text}");
        }
    }

    #[test]
    fn arguments_reach_the_program_as_they_are() {
        let mut agent: Agent = "acp:goose acp".parse().unwrap();
        agent.setup.args = ["--with-builtin", "developer", "a b", "it's $HOME", ""].map(str::to_owned).into();
        let expected = r"goose acp --with-builtin developer 'a b' 'it'\''s $HOME' ''";
        assert_eq!(agent.build_invocation(Path::new("windlass")), ProgramInvocation::Shell(expected.into()));
    }

    #[test]
    fn failure_words_of_persistent_agent_are_classified() {
        let agent: Agent = "acp:goose acp".parse().unwrap();
        let failed = |why: &str| agent.classify_turn_end(TurnEnd::from_failure(TurnFailure::Failed, why));
        let limited = failed("the agent failed: 429 Too Many Requests, retry after 90 seconds");
        assert!(matches!(limited, TurnEnd::RateLimited { reset: Some(_), .. }), "{limited:?}");
        let locked = agent
            .classify_turn_end(TurnEnd::Broken("the agent refused `session/new`: Authentication required".to_owned()));
        assert!(matches!(locked, TurnEnd::AccessDenied { .. }), "{locked:?}");
        let luck = "the agent failed: out of luck";
        assert_eq!(failed(luck), TurnEnd::from_failure(TurnFailure::Failed, luck));
        let answer = || TurnEnd::Answered("I have raised the rate limit to 429 requests.".to_owned());
        assert_eq!(agent.classify_turn_end(answer()), answer());
    }
}
