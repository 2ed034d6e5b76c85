//! Agents by name: configured, known and installed ones.
//!
//! Not here: the communication with agents (`agents`), the choice of a session's agent (`run`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windlass_agents::acp::{AgentPermissions, McpServer};
use windlass_agents::headless::HeadlessDialect;
use windlass_agents::scripted::AgentScript;
use windlass_agents::{Agent, AgentAccess, AgentKind, AgentSetup, KNOWN_AGENTS, KnownAgent};
use windlass_config as config;
use windlass_config::Settings;
use windlass_process::file;

use crate::{Failure, FailureCode, environment};

/// The largest script that is read, in bytes.
const MAX_SCRIPT: u64 = 4 * 1024 * 1024;

/// Returns the agent with a name: as the configuration sets it up, else as it is known.
pub fn resolve_agent(name: &str, settings: &Settings) -> Result<Agent, Failure> {
    let Some(written) = settings.agents.get(name) else {
        let mut agent = parse_agent_name(name, settings)?;
        agent.setup.tool_server_program = find_tool_server_program();
        return Ok(agent);
    };
    let setup = AgentSetup {
        command: written.command.clone(),
        args: written.args.clone(),
        model: written.model.clone(),
        environment: written.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        permissions: written.permissions.clone().unwrap_or_default(),
        access: AgentAccess::Full,
        judged_directory: None,
        servers: written
            .mcp_servers
            .iter()
            .map(|(name, server)| resolve_mcp_server(name, server))
            .collect::<Result<_, _>>()?,
        tool_server_program: find_tool_server_program().filter(|_| written.tools != Some(false)),
    };
    Ok(Agent { name: name.to_owned(), kind: resolve_agent_kind(name, written), setup })
}

/// Returns an agent that judges the work of others: it gets none of our tools, and may only read unless the configuration permits
/// more.
pub fn resolve_gatekeeper_agent(name: &str, settings: &Settings) -> Result<Agent, Failure> {
    let mut agent = resolve_agent(name, settings)?;
    let said = settings.agents.get(name).and_then(|written| written.permissions.clone());
    agent.setup.permissions = said.unwrap_or_else(AgentPermissions::read_only);
    (agent.setup.access, agent.setup.tool_server_program) = (AgentAccess::ReadOnly, None);
    Ok(agent)
}

/// Returns the program that serves our own tools, which is this one.
fn find_tool_server_program() -> Option<PathBuf> {
    environment::own_program().ok().filter(|file| is_executable_file(file))
}

/// Resolves a configured MCP server to the full path of its program.
fn resolve_mcp_server(name: &str, server: &config::McpServerSettings) -> Result<McpServer, Failure> {
    let program = Path::new(&server.command);
    let places = environment::program_directories();
    let place = match program.is_absolute() {
        true => Some(program.to_owned()).filter(|file| is_executable_file(file)),
        false => places.iter().map(|place| place.join(program)).find(|file| is_executable_file(file)),
    };
    let env = server.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    match place {
        Some(command) => {
            Ok(McpServer { name: name.to_owned(), command, args: server.args.clone(), env, http_args: Vec::new() })
        }
        None => Err(Failure::new(FailureCode::Usage, format!("cannot start the MCP server `{name}`"))
            .with_cause(format!("cannot find the program {}", server.command))
            .with_hint("check the spelling in `mcp_servers`, or install it; nothing was started")),
    }
}

/// Returns whether a file is an executable program.
pub fn is_executable_file(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Returns the kind of a configured agent. The reader of the configuration has checked that there is one.
fn resolve_agent_kind(name: &str, written: &config::AgentSettings) -> AgentKind {
    let command = || written.command.clone().unwrap_or_default();
    match (written.driver, KnownAgent::find_by_name(name)) {
        (Some(config::DriverKind::Command), _) => AgentKind::Command(command()),
        (Some(config::DriverKind::Acp), _) => AgentKind::Acp(command()),
        (Some(config::DriverKind::Scripted), _) => AgentKind::Scripted(command()),
        (Some(config::DriverKind::Claude), _) => AgentKind::Headless(HeadlessDialect::Claude),
        (Some(config::DriverKind::Codex), _) => AgentKind::Headless(HeadlessDialect::Codex),
        (Some(config::DriverKind::Opencode), _) => AgentKind::Headless(HeadlessDialect::Opencode),
        (Some(config::DriverKind::Gemini), _) => AgentKind::Headless(HeadlessDialect::Gemini),
        (Some(config::DriverKind::Goose), _) => AgentKind::Headless(HeadlessDialect::Goose),
        (None, Some(KnownAgent::Headless(dialect))) => AgentKind::Headless(dialect),
        (None, Some(KnownAgent::Acp(usual))) => {
            AgentKind::Acp(written.command.clone().unwrap_or_else(|| usual.to_owned()))
        }
        (None, Some(KnownAgent::Command(usual))) => {
            AgentKind::Command(written.command.clone().unwrap_or_else(|| usual.to_owned()))
        }
        (None, None) => AgentKind::Command(command()),
    }
}

fn parse_agent_name(name: &str, settings: &Settings) -> Result<Agent, Failure> {
    name.parse().map_err(|error| {
        let names: Vec<&str> =
            settings.agents.keys().map(String::as_str).chain(KNOWN_AGENTS.iter().map(|(name, _)| *name)).collect();
        let hint = match windlass_expr::nearest_name(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => describe_agent_names(),
        };
        Failure::from_error(FailureCode::Usage, &error).with_hint(hint)
    })
}

/// Explains how to name an agent, for a command with a missing or unknown name.
pub fn describe_agent_names() -> String {
    let installed = list_installed_agents(&environment::program_directories());
    let others = "`acp:CMD` speaks the Agent Client Protocol, `command:CMD` is any other program";
    match installed.as_slice() {
        [] => {
            let known: Vec<&str> = KNOWN_AGENTS.iter().map(|(name, _)| *name).collect();
            format!("--agent NAME takes {}, or one of `agents:`; {others}", known.join(", "))
        }
        [first, ..] => format!("installed here: {}; so for example `--agent {first}`. {others}", installed.join(", ")),
    }
}

/// Returns the known agents that are installed in one of these directories.
pub fn list_installed_agents(directories: &[PathBuf]) -> Vec<&'static str> {
    let found = |name: &&str| directories.iter().any(|directory| is_executable_file(&directory.join(name)));
    KNOWN_AGENTS.iter().map(|(name, _)| *name).filter(found).collect()
}

/// Reads the script of a scripted agent.
pub fn read_script(path: &Path) -> Result<AgentScript, Failure> {
    let bytes = file::read_bounded(path, MAX_SCRIPT).map_err(|error| {
        Failure::new(FailureCode::Usage, format!("cannot read the script `{}`", path.display()))
            .with_cause(error)
            .with_hint("check the spelling; docs/reference/scripted-agent.md lists the steps")
    })?;
    AgentScript::parse_script(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        Failure::new(FailureCode::Usage, format!("cannot use `{}` as a script", path.display()))
            .with_cause(error)
            .with_hint("docs/reference/scripted-agent.md lists the steps")
    })
}

#[cfg(test)]
mod tests {
    use windlass_agents::acp::ToolKind;

    use super::*;

    fn settings(yaml: &str) -> Settings {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.yaml");
        fs::write(&file, yaml).unwrap();
        config::Config::read_file(&file).map_err(Failure::from).unwrap().settings
    }

    #[track_caller]
    fn check(yaml: &str, name: &str, driver: &AgentKind) {
        let agent = resolve_agent(name, &settings(yaml)).unwrap();
        assert_eq!((agent.name.as_str(), &agent.kind), (name, driver));
    }

    #[test]
    fn agent_name_resolves_to_configuration_before_known_agents() {
        check("", "codex", &AgentKind::Headless(HeadlessDialect::Codex));
        check("", "kimi", &AgentKind::Acp("kimi acp".to_owned()));
        check("", "acp:x", &AgentKind::Acp("x".to_owned()));
        check("agents: {claude: {model: big}}", "claude", &AgentKind::Headless(HeadlessDialect::Claude));
        check(
            "agents: {claude: {driver: acp, command: claude-agent-acp}}",
            "claude",
            &AgentKind::Acp("claude-agent-acp".into()),
        );
        check("agents: {qwen: {command: npx qwen --acp}}", "qwen", &AgentKind::Acp("npx qwen --acp".into()));
        check("agents: {mine: {command: ./a.sh}}", "mine", &AgentKind::Command("./a.sh".into()));
        check("agents: {mine: {driver: goose}}", "mine", &AgentKind::Headless(HeadlessDialect::Goose));
        check("agents: {tape: {driver: scripted, command: a.yaml}}", "tape", &AgentKind::Scripted("a.yaml".into()));
    }

    #[test]
    fn agent_settings_reach_the_resolved_agent() {
        let yaml = "agents: {codex: {command: npx codex, args: [-c, x=1], model: m, env: {A: 1}}}";
        let settings = settings(yaml);
        let setup = AgentSetup {
            command: Some("npx codex".to_owned()),
            args: vec!["-c".to_owned(), "x=1".to_owned()],
            model: Some("m".to_owned()),
            environment: vec![("A".to_owned(), "1".to_owned())],
            permissions: AgentPermissions::default(),
            access: AgentAccess::Full,
            judged_directory: None,
            servers: vec![],
            tool_server_program: find_tool_server_program(),
        };
        assert_eq!(resolve_agent("codex", &settings).unwrap().setup, setup);
        let settings = self::settings("agents: {kimi: {permissions: {execute: deny}}, qwen: {permissions: read-only}}");
        let permissions = |name| resolve_agent(name, &settings).unwrap().setup.permissions;
        let allowed = |name| ToolKind::ALL.map(|(_, kind)| permissions(name).allows_tool_kind(kind));
        assert_eq!(allowed("kimi"), ToolKind::ALL.map(|(_, kind)| kind != ToolKind::Execute));
        assert_eq!(permissions("qwen"), AgentPermissions::read_only());
        let settings = self::settings("agents: {claude: {tools: false}, goose: {tools: true}, kimi: {model: m}}");
        let has_tools = |name| resolve_agent(name, &settings).unwrap().setup.tool_server_program.is_some();
        assert_eq!(["claude", "goose", "kimi", "codex", "acp:x"].map(has_tools), [false, true, true, true, true]);
        let failure = resolve_agent("codx", &settings).unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `codex`?"));
    }

    #[test]
    fn only_executable_files_count_as_installed_agents() {
        let bin = tempfile::tempdir().unwrap();
        fs::write(bin.path().join("codex"), "").unwrap();
        fs::write(bin.path().join("claude"), "").unwrap();
        fs::set_permissions(bin.path().join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(bin.path().join("goose")).unwrap();
        assert_eq!(list_installed_agents(&[bin.path().to_owned()]), ["claude"]);
    }
}
