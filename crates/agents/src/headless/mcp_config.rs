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
use windlass_process::{Environment, overlay_environment};

use super::dialect::HeadlessDialect;
use crate::acp::McpServer;
use crate::agent::quote_shell_word;

/// The variable with which opencode reads settings beside those in files.
const OPENCODE_CONFIG_VARIABLE: &str = "OPENCODE_CONFIG_CONTENT";
/// Codex limits a call to one minute. Validation rules may take longer.
const CODEX_TOOL_TIMEOUT_SECONDS: u32 = 1800;

/// Returns the arguments that pass a server on the command line.
pub(super) fn build_mcp_arguments(dialect: HeadlessDialect, server: &McpServer) -> Vec<String> {
    let (option, value) = match dialect {
        HeadlessDialect::Claude => ("--mcp-config", format_claude_config(server)),
        HeadlessDialect::Codex => ("-c", format_codex_config(server)),
        HeadlessDialect::Goose => ("--with-extension", format_goose_extension(server)),
        HeadlessDialect::Opencode | HeadlessDialect::Gemini => return Vec::new(),
    };
    vec![option.to_owned(), value]
}

/// Adds a server to the environment, for an agent that reads it there. Settings that cannot be parsed are left
/// unchanged.
pub(super) fn add_mcp_environment(dialect: HeadlessDialect, server: &McpServer, around: Environment) -> Environment {
    if dialect != HeadlessDialect::Opencode {
        return around;
    }
    let before = around.iter().find(|(name, _)| name == OPENCODE_CONFIG_VARIABLE).map(|(_, value)| value);
    match merge_opencode_config(before, server) {
        Some(content) => overlay_environment(&around, vec![(OPENCODE_CONFIG_VARIABLE, content.into())]),
        None => around,
    }
}

fn format_claude_config(server: &McpServer) -> String {
    let McpServer { name, command, args, env, .. } = server;
    let server = json!({"command": command, "args": args, "env": env_as_object(env)});
    json!({"mcpServers": {name: server}}).to_string()
}

/// Strings and lists have the same syntax in TOML and JSON.
fn format_codex_config(server: &McpServer) -> String {
    let McpServer { name, command, args, env, .. } = server;
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{} = {}", json!(name), json!(value))).collect();
    format!(
        "mcp_servers.{name}={{command = {}, args = {}, env = {{{}}}, tool_timeout_sec = {CODEX_TOOL_TIMEOUT_SECONDS}}}",
        json!(command),
        json!(args),
        env.join(", ")
    )
}

/// Formats the server as a shell line. goose names the extension after the program.
fn format_goose_extension(server: &McpServer) -> String {
    let variables = server.env.iter().map(|(name, value)| quote_shell_word(&format!("{name}={value}")));
    let program = quote_shell_word(&server.command.to_string_lossy());
    let words: Vec<String> =
        variables.chain([program]).chain(server.args.iter().map(|word| quote_shell_word(word))).collect();
    words.join(" ")
}

fn merge_opencode_config(before: Option<&OsString>, server: &McpServer) -> Option<String> {
    let before = before.map(|before| before.to_str()).unwrap_or(Some(""))?;
    let mut content: Value = if before.trim().is_empty() { json!({}) } else { serde_json::from_str(before).ok()? };
    let servers = content.as_object_mut()?.entry("mcp").or_insert_with(|| json!({})).as_object_mut()?;
    let McpServer { name, command, args, env, .. } = server;
    let command: Vec<Value> = std::iter::once(json!(command)).chain(args.iter().map(|word| json!(word))).collect();
    servers.entry(name).or_insert_with(
        || json!({"type": "local", "command": command, "environment": env_as_object(env), "enabled": true}),
    );
    Some(content.to_string())
}

fn env_as_object(env: &[(String, String)]) -> Map<String, Value> {
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
    fn mcp_server_is_passed_in_each_agents_form() {
        let arguments = |dialect| build_mcp_arguments(dialect, &server());
        let claude = r#"{"mcpServers":{"windlass":{"args":["--project","/home/ann/\"shop\"","mcp"],"command":"/opt/my tools/windlass","env":{"WINDLASS_RUN":"s/1/ab"}}}}"#;
        assert_eq!(arguments(HeadlessDialect::Claude), ["--mcp-config", claude]);
        let codex = r#"mcp_servers.windlass={command = "/opt/my tools/windlass", args = ["--project","/home/ann/\"shop\"","mcp"], env = {"WINDLASS_RUN" = "s/1/ab"}, tool_timeout_sec = 1800}"#;
        assert_eq!(arguments(HeadlessDialect::Codex), ["-c", codex]);
        let goose = r#"WINDLASS_RUN=s/1/ab '/opt/my tools/windlass' --project '/home/ann/"shop"' mcp"#;
        assert_eq!(arguments(HeadlessDialect::Goose), ["--with-extension", goose]);
        assert!(arguments(HeadlessDialect::Gemini).is_empty() && arguments(HeadlessDialect::Opencode).is_empty());
    }

    #[test]
    fn opencode_config_of_the_user_is_kept() {
        let after = |before: Option<&str>| {
            let around =
                before.map(|before| vec![(OPENCODE_CONFIG_VARIABLE.into(), before.into())]).unwrap_or_default();
            let after = add_mcp_environment(HeadlessDialect::Opencode, &server(), around);
            after
                .iter()
                .find(|(name, _)| name == OPENCODE_CONFIG_VARIABLE)
                .map(|(_, value)| value.to_str().unwrap().to_owned())
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
        assert_eq!(add_mcp_environment(HeadlessDialect::Claude, &server(), Vec::new()), Vec::new());
    }
}
