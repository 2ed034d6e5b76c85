//! Windlass's entries in settings that are TOML: Kimi Code's hooks, Codex's MCP server.

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, TomlError, Value, value};

use super::{HookEntry, SERVER_NAME, SettingsDocument, SettingsError, SettingsFile, hook_command};
use crate::BridgeAgent;

const HOOKS_KEY: &str = "hooks";
const SERVERS_KEY: &str = "mcp_servers";

pub fn parse_toml_settings(text: &str) -> Result<DocumentMut, SettingsError> {
    text.parse().map_err(|error: TomlError| {
        let shown = error.to_string();
        let place = shown.lines().next().unwrap_or_default();
        SettingsError::Syntax(format!("{place}: {}", error.message()))
    })
}

/// Returns the event and the command of a Windlass hook.
fn read_our_hook(hook: &dyn TableLike, agent: BridgeAgent) -> Option<(String, String)> {
    let text = |name| hook.get(name).and_then(Item::as_str).unwrap_or_default().to_owned();
    Some((text("event"), text("command"))).filter(|(_, command)| hook_command::is_windlass_command(command, agent))
}

fn is_our_server(server: &Item) -> bool {
    let args = server.get("args").and_then(Item::as_array);
    let is_mcp = args.is_some_and(|args| args.len() == 1 && args.get(0).and_then(Value::as_str) == Some("mcp"));
    is_mcp && server.get("command").is_some_and(Item::is_str)
}

impl SettingsDocument for DocumentMut {
    fn add_hooks(&mut self, _: BridgeAgent, hooks: &[HookEntry]) -> Result<(), SettingsError> {
        let list = self.entry(HOOKS_KEY).or_insert(Item::None);
        if list.is_none() || list.as_array().is_some_and(|array| array.is_empty()) {
            *list = Item::ArrayOfTables(ArrayOfTables::new());
        }
        for hook in hooks {
            let mut table = Table::new();
            table.insert("event", value(hook.event));
            table.insert("command", value(&hook.command));
            table.insert("timeout", value(i64::try_from(hook.timeout).expect("timeouts are short")));
            match list {
                Item::ArrayOfTables(tables) => tables.push(table),
                Item::Value(Value::Array(array)) => array.push(table.into_inline_table()),
                _ => return Err(SettingsError::wrong_kind(HOOKS_KEY, "a list of tables")),
            }
        }
        Ok(())
    }

    fn remove_hooks(&mut self, agent: BridgeAgent) -> Result<Vec<(String, String)>, SettingsError> {
        let mut removed = Vec::new();
        let mut is_kept = |hook: Option<&dyn TableLike>| {
            let ours = hook.and_then(|hook| read_our_hook(hook, agent));
            removed.extend(ours.clone());
            ours.is_none()
        };
        let is_empty = match self.get_mut(HOOKS_KEY) {
            Some(Item::ArrayOfTables(tables)) => {
                tables.retain(|table| is_kept(Some(table)));
                tables.is_empty()
            }
            Some(Item::Value(Value::Array(array))) => {
                array.retain(|hook| is_kept(hook.as_inline_table().map(|hook| hook as &dyn TableLike)));
                array.is_empty()
            }
            _ => false,
        };
        if is_empty && !removed.is_empty() {
            self.remove(HOOKS_KEY);
        }
        Ok(removed)
    }

    fn set_server(&mut self, _: &SettingsFile, program: &str) -> Result<(), SettingsError> {
        let mut parent = Table::new();
        parent.set_implicit(true);
        let servers = self.entry(SERVERS_KEY).or_insert(Item::Table(parent));
        let servers = servers.as_table_like_mut().ok_or_else(|| SettingsError::wrong_kind(SERVERS_KEY, "a table"))?;
        match servers.get_mut(SERVER_NAME) {
            None => {
                let mut server = Table::new();
                server.insert("command", value(program));
                server.insert("args", value(toml_edit::Array::from_iter(["mcp"])));
                servers.insert(SERVER_NAME, Item::Table(server));
            }
            Some(server) if is_our_server(server) => server["command"] = value(program),
            Some(_) => return Err(SettingsError::ServerTaken),
        }
        Ok(())
    }

    fn remove_server(&mut self) -> Result<bool, SettingsError> {
        let servers = self.get_mut(SERVERS_KEY).and_then(Item::as_table_like_mut);
        let Some(servers) = servers.filter(|servers| servers.get(SERVER_NAME).is_some_and(is_our_server)) else {
            return Ok(false);
        };
        servers.remove(SERVER_NAME);
        if servers.is_empty() {
            self.remove(SERVERS_KEY);
        }
        Ok(true)
    }
}
