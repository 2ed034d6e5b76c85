//! How an MCP server is passed to each known agent: for one turn, beside the servers in the user's own settings, which stay
//! unchanged.
//!
//! | agent | way |
//! | --- | --- |
//! | Claude Code | `--mcp-config` |
//! | Codex | `-c mcp_servers.…` |
//! | goose | `--with-extension` |
//! | opencode | the variable `OPENCODE_CONFIG_CONTENT` |
//! | Gemini CLI | none |

use std::ffi::OsString;

use serde_json::{Map, Value, json};
use windlass_process::{Environment, overlay};

use super::dialect::Dialect;
use crate::acp::McpServer;
use crate::agent::quoted;

/// The variable with which opencode reads settings beside those in files.
const OPENCODE: &str = "OPENCODE_CONFIG_CONTENT";
/// Codex limits a call to one minute. Validation rules may take longer.
const CODEX_SECONDS: u32 = 1800;

/// Returns the arguments that pass a server on the command line.
pub(super) fn words(dialect: Dialect, server: &McpServer) -> Vec<String> {
    let (option, value) = match dialect {
        Dialect::Claude => ("--mcp-config", claude(server)),
        Dialect::Codex => ("-c", codex(server)),
        Dialect::Goose => ("--with-extension", goose(server)),
        Dialect::Opencode | Dialect::Gemini => return Vec::new(),
    };
    vec![option.to_owned(), value]
}

/// Adds a server to the environment, for an agent that reads it there. Settings that cannot be parsed are left
/// unchanged.
pub(super) fn environment(dialect: Dialect, server: &McpServer, around: Environment) -> Environment {
    if dialect != Dialect::Opencode {
        return around;
    }
    let before = around.iter().find(|(name, _)| name == OPENCODE).map(|(_, value)| value);
    match opencode(before, server) {
        Some(content) => overlay(&around, vec![(OPENCODE, content.into())]),
        None => around,
    }
}

fn claude(server: &McpServer) -> String {
    let McpServer { name, command, args, env, .. } = server;
    let server = json!({"command": command, "args": args, "env": variables(env)});
    json!({"mcpServers": {name: server}}).to_string()
}

/// Strings and lists have the same syntax in TOML and JSON.
fn codex(server: &McpServer) -> String {
    let McpServer { name, command, args, env, .. } = server;
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{} = {}", json!(name), json!(value))).collect();
    format!(
        "mcp_servers.{name}={{command = {}, args = {}, env = {{{}}}, tool_timeout_sec = {CODEX_SECONDS}}}",
        json!(command),
        json!(args),
        env.join(", ")
    )
}

/// Formats the server as a shell line. goose names the extension after the program.
fn goose(server: &McpServer) -> String {
    let variables = server.env.iter().map(|(name, value)| quoted(&format!("{name}={value}")));
    let program = quoted(&server.command.to_string_lossy());
    let words: Vec<String> = variables.chain([program]).chain(server.args.iter().map(|word| quoted(word))).collect();
    words.join(" ")
}

fn opencode(before: Option<&OsString>, server: &McpServer) -> Option<String> {
    let before = before.map(|before| before.to_str()).unwrap_or(Some(""))?;
    let mut content: Value = if before.trim().is_empty() { json!({}) } else { serde_json::from_str(before).ok()? };
    let servers = content.as_object_mut()?.entry("mcp").or_insert_with(|| json!({})).as_object_mut()?;
    let McpServer { name, command, args, env, .. } = server;
    let command: Vec<Value> = std::iter::once(json!(command)).chain(args.iter().map(|word| json!(word))).collect();
    servers.entry(name).or_insert_with(
        || json!({"type": "local", "command": command, "environment": variables(env), "enabled": true}),
    );
    Some(content.to_string())
}

fn variables(env: &[(String, String)]) -> Map<String, Value> {
    env.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> McpServer {
        let text = str::to_owned;
        McpServer {
            name: text("windlass"),
            command: "/opt/my tools/windlass".into(),
            args: vec![text("--project"), text("/home/ann/\"shop\""), text("mcp")],
            env: vec![(text("WINDLASS_RUN"), text("s/1/ab"))],
            http_args: Vec::new(),
        }
    }

    #[test]
    fn each_agent_is_told_in_its_own_way() {
        let told = |dialect| words(dialect, &server());
        let claude = r#"{"mcpServers":{"windlass":{"args":["--project","/home/ann/\"shop\"","mcp"],"command":"/opt/my tools/windlass","env":{"WINDLASS_RUN":"s/1/ab"}}}}"#;
        assert_eq!(told(Dialect::Claude), ["--mcp-config", claude]);
        let codex = r#"mcp_servers.windlass={command = "/opt/my tools/windlass", args = ["--project","/home/ann/\"shop\"","mcp"], env = {"WINDLASS_RUN" = "s/1/ab"}, tool_timeout_sec = 1800}"#;
        assert_eq!(told(Dialect::Codex), ["-c", codex]);
        let goose = r#"WINDLASS_RUN=s/1/ab '/opt/my tools/windlass' --project '/home/ann/"shop"' mcp"#;
        assert_eq!(told(Dialect::Goose), ["--with-extension", goose]);
        assert!(told(Dialect::Gemini).is_empty() && told(Dialect::Opencode).is_empty());
    }

    #[test]
    fn what_a_person_has_said_to_opencode_stays() {
        let after = |before: Option<&str>| {
            let around = before.map(|before| vec![(OPENCODE.into(), before.into())]).unwrap_or_default();
            let after = environment(Dialect::Opencode, &server(), around);
            after.iter().find(|(name, _)| name == OPENCODE).map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        let parsed = |before| serde_json::from_str::<Value>(&after(before).unwrap()).unwrap();
        let ours = json!({
            "type": "local", "command": ["/opt/my tools/windlass", "--project", "/home/ann/\"shop\"", "mcp"],
            "environment": {"WINDLASS_RUN": "s/1/ab"}, "enabled": true,
        });
        assert_eq!(parsed(None), json!({"mcp": {"windlass": ours}}));
        assert_eq!(parsed(Some("")), json!({"mcp": {"windlass": ours}}));
        let theirs = r#"{"model": "a/b", "mcp": {"files": {"type": "remote"}}}"#;
        assert_eq!(
            parsed(Some(theirs)),
            json!({"model": "a/b", "mcp": {"files": {"type": "remote"}, "windlass": ours}})
        );
        for theirs in [r#"{"mcp":{"windlass":{"enabled":false}}}"#, "// not JSON", "[]", r#"{"mcp": 3}"#] {
            assert_eq!(after(Some(theirs)).as_deref(), Some(theirs));
        }
        assert_eq!(environment(Dialect::Claude, &server(), Vec::new()), Vec::new());
    }
}
