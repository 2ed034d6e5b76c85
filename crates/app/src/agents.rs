//! Agents by name: configured, known and installed ones.
//!
//! Not here: the communication with agents (`agents`), the choice of a session's agent (`run`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windlass_agents::acp::{McpServer, Permissions};
use windlass_agents::headless::Dialect;
use windlass_agents::scripted::Script;
use windlass_agents::{Access, Agent, AgentKind, KNOWN, Known, Setup};
use windlass_config as config;
use windlass_config::Settings;
use windlass_process::file;

use crate::{Code, Failure, environment};

/// The largest script that is read, in bytes.
const MAX_SCRIPT: u64 = 4 * 1024 * 1024;

/// Returns the agent with a name: as the configuration sets it up, else as it is known.
pub fn resolve(name: &str, settings: &Settings) -> Result<Agent, Failure> {
    let Some(written) = settings.agents.get(name) else {
        let mut agent = parse(name, settings)?;
        agent.setup.tools = tools();
        return Ok(agent);
    };
    let setup = Setup {
        command: written.command.clone(),
        args: written.args.clone(),
        model: written.model.clone(),
        environment: written.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        permissions: written.permissions.clone().unwrap_or_default(),
        access: Access::Full,
        judged: None,
        servers: written.mcp_servers.iter().map(|(name, server)| found(name, server)).collect::<Result<_, _>>()?,
        tools: tools().filter(|_| written.tools != Some(false)),
    };
    Ok(Agent { name: name.to_owned(), kind: kind(name, written), setup })
}

/// Returns an agent that judges the work of others: it gets none of our tools, and may only read unless the configuration permits
/// more.
pub fn gatekeeper(name: &str, settings: &Settings) -> Result<Agent, Failure> {
    let mut agent = resolve(name, settings)?;
    let said = settings.agents.get(name).and_then(|written| written.permissions.clone());
    agent.setup.permissions = said.unwrap_or_else(Permissions::read_only);
    (agent.setup.access, agent.setup.tools) = (Access::ReadOnly, None);
    Ok(agent)
}

/// Returns the program that serves our own tools, which is this one.
fn tools() -> Option<PathBuf> {
    environment::own_program().ok().filter(|file| runs(file))
}

/// Resolves a configured MCP server to the full path of its program.
fn found(name: &str, server: &config::McpServerSettings) -> Result<McpServer, Failure> {
    let program = Path::new(&server.command);
    let places = environment::program_directories();
    let place = match program.is_absolute() {
        true => Some(program.to_owned()).filter(|file| runs(file)),
        false => places.iter().map(|place| place.join(program)).find(|file| runs(file)),
    };
    let env = server.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    match place {
        Some(command) => {
            Ok(McpServer { name: name.to_owned(), command, args: server.args.clone(), env, http_args: Vec::new() })
        }
        None => Err(Failure::new(Code::Usage, format!("the MCP server `{name}` cannot be started"))
            .caused_by(format!("cannot find the program {}", server.command))
            .hint("look for a typing mistake in `mcp_servers`, or install it; nothing was begun")),
    }
}

/// Returns whether a file is an executable program.
pub fn runs(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Returns the kind of a configured agent. The reader of the configuration has checked that there is one.
fn kind(name: &str, written: &config::AgentSettings) -> AgentKind {
    let command = || written.command.clone().unwrap_or_default();
    match (written.driver, Known::find(name)) {
        (Some(config::Driver::Command), _) => AgentKind::Command(command()),
        (Some(config::Driver::Acp), _) => AgentKind::Acp(command()),
        (Some(config::Driver::Scripted), _) => AgentKind::Scripted(command()),
        (Some(config::Driver::Claude), _) => AgentKind::Headless(Dialect::Claude),
        (Some(config::Driver::Codex), _) => AgentKind::Headless(Dialect::Codex),
        (Some(config::Driver::Opencode), _) => AgentKind::Headless(Dialect::Opencode),
        (Some(config::Driver::Gemini), _) => AgentKind::Headless(Dialect::Gemini),
        (Some(config::Driver::Goose), _) => AgentKind::Headless(Dialect::Goose),
        (None, Some(Known::Headless(dialect))) => AgentKind::Headless(dialect),
        (None, Some(Known::Acp(usual))) => AgentKind::Acp(written.command.clone().unwrap_or_else(|| usual.to_owned())),
        (None, Some(Known::Command(usual))) => {
            AgentKind::Command(written.command.clone().unwrap_or_else(|| usual.to_owned()))
        }
        (None, None) => AgentKind::Command(command()),
    }
}

fn parse(name: &str, settings: &Settings) -> Result<Agent, Failure> {
    name.parse().map_err(|error| {
        let names: Vec<&str> =
            settings.agents.keys().map(String::as_str).chain(KNOWN.iter().map(|(name, _)| *name)).collect();
        let hint = match windlass_expr::nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => how_to_name(),
        };
        Failure::from_error(Code::Usage, &error).hint(hint)
    })
}

/// Explains how to name an agent, for a command with a missing or unknown name.
pub fn how_to_name() -> String {
    let installed = installed(&environment::program_directories());
    let others = "`acp:CMD` speaks the Agent Client Protocol, `command:CMD` is any other program";
    match installed.as_slice() {
        [] => {
            let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
            format!("--agent NAME takes {}, or one of `agents:`; {others}", known.join(", "))
        }
        [first, ..] => format!("installed here: {}; so for example `--agent {first}`. {others}", installed.join(", ")),
    }
}

/// Returns the known agents that are installed in one of these directories.
pub fn installed(directories: &[PathBuf]) -> Vec<&'static str> {
    let found = |name: &&str| directories.iter().any(|directory| runs(&directory.join(name)));
    KNOWN.iter().map(|(name, _)| *name).filter(found).collect()
}

/// Reads the script of a scripted agent.
pub fn read_script(path: &Path) -> Result<Script, Failure> {
    let bytes = file::read(path, MAX_SCRIPT).map_err(|error| {
        Failure::new(Code::Usage, format!("cannot read the script `{}`", path.display()))
            .caused_by(error)
            .hint("look for a typing mistake; docs/scripted.md has what can be in one")
    })?;
    Script::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        Failure::new(Code::Usage, format!("`{}` is no script", path.display()))
            .caused_by(error)
            .hint("docs/scripted.md has what can be in one")
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
        config::Config::read(&file).map_err(Failure::from).unwrap().settings
    }

    #[track_caller]
    fn check(yaml: &str, name: &str, driver: &AgentKind) {
        let agent = resolve(name, &settings(yaml)).unwrap();
        assert_eq!((agent.name.as_str(), &agent.kind), (name, driver));
    }

    #[test]
    fn a_name_means_what_the_configuration_says_before_what_is_known() {
        check("", "codex", &AgentKind::Headless(Dialect::Codex));
        check("", "kimi", &AgentKind::Acp("kimi acp".to_owned()));
        check("", "acp:x", &AgentKind::Acp("x".to_owned()));
        check("agents: {claude: {model: big}}", "claude", &AgentKind::Headless(Dialect::Claude));
        check(
            "agents: {claude: {driver: acp, command: claude-agent-acp}}",
            "claude",
            &AgentKind::Acp("claude-agent-acp".into()),
        );
        check("agents: {qwen: {command: npx qwen --acp}}", "qwen", &AgentKind::Acp("npx qwen --acp".into()));
        check("agents: {mine: {command: ./a.sh}}", "mine", &AgentKind::Command("./a.sh".into()));
        check("agents: {mine: {driver: goose}}", "mine", &AgentKind::Headless(Dialect::Goose));
        check("agents: {tape: {driver: scripted, command: a.yaml}}", "tape", &AgentKind::Scripted("a.yaml".into()));
    }

    #[test]
    fn what_is_set_up_reaches_the_agent() {
        let yaml = "agents: {codex: {command: npx codex, args: [-c, x=1], model: m, env: {A: 1}}}";
        let settings = settings(yaml);
        let setup = Setup {
            command: Some("npx codex".to_owned()),
            args: vec!["-c".to_owned(), "x=1".to_owned()],
            model: Some("m".to_owned()),
            environment: vec![("A".to_owned(), "1".to_owned())],
            permissions: Permissions::default(),
            access: Access::Full,
            judged: None,
            servers: vec![],
            tools: tools(),
        };
        assert_eq!(resolve("codex", &settings).unwrap().setup, setup);
        let settings = self::settings("agents: {kimi: {permissions: {execute: deny}}, qwen: {permissions: read-only}}");
        let permissions = |name| resolve(name, &settings).unwrap().setup.permissions;
        let allowed = |name| ToolKind::ALL.map(|(_, kind)| permissions(name).allow(kind));
        assert_eq!(allowed("kimi"), ToolKind::ALL.map(|(_, kind)| kind != ToolKind::Execute));
        assert_eq!(permissions("qwen"), Permissions::read_only());
        let settings = self::settings("agents: {claude: {tools: false}, goose: {tools: true}, kimi: {model: m}}");
        let has_tools = |name| resolve(name, &settings).unwrap().setup.tools.is_some();
        assert_eq!(["claude", "goose", "kimi", "codex", "acp:x"].map(has_tools), [false, true, true, true, true]);
        let failure = resolve("codx", &settings).unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `codex`?"));
    }

    #[test]
    fn only_programs_are_agents() {
        let bin = tempfile::tempdir().unwrap();
        fs::write(bin.path().join("codex"), "").unwrap();
        fs::write(bin.path().join("claude"), "").unwrap();
        fs::set_permissions(bin.path().join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(bin.path().join("goose")).unwrap();
        assert_eq!(installed(&[bin.path().to_owned()]), ["claude"]);
    }
}
