//! Windlass's entries in settings that are JSON with comments.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::{ParseOptions, json};

use super::{HookEntry, SERVER_NAME, SettingsDocument, SettingsError, SettingsFile, hook_command};
use crate::BridgeAgent;

const SERVERS_KEY: &str = "mcpServers";

pub fn parse_json_settings(text: &str) -> Result<CstRootNode, SettingsError> {
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    CstRootNode::parse(text, &options).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        SettingsError::Syntax(format!("line {line}, column {column}: {}", error.kind()))
    })
}

/// Returns the only member with this name.
fn find_member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, SettingsError> {
    let mut found = object.properties().into_iter().filter(|member| member.decoded_name().as_deref() == Some(name));
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(SettingsError::Duplicate { key: name.to_owned() }),
        (member, None) => Ok(member),
    }
}

fn find_or_create_object(parent: &CstObject, name: &str) -> Result<CstObject, SettingsError> {
    find_member(parent, name)?;
    parent.object_value_or_create(name).ok_or_else(|| SettingsError::wrong_kind(name, "an object"))
}

fn root_object(root: &CstRootNode) -> Result<CstObject, SettingsError> {
    root.object_value_or_create().ok_or_else(|| SettingsError::wrong_kind("the file", "an object"))
}

/// Removes a member with an empty value that has no comments.
fn remove_if_empty(member: CstObjectProp) {
    let is_blank = |node: &CstNode| node.is_token() || node.is_whitespace() || node.is_newline();
    if member.value().is_some_and(|value| value.children().iter().all(is_blank)) {
        member.remove();
    }
}

fn string_member(object: &CstObject, name: &str) -> Option<String> {
    object.get(name)?.value()?.as_string_lit()?.decoded_value().ok()
}

/// Returns the command of a Windlass hook.
fn find_our_command(hook: &CstNode, agent: BridgeAgent) -> Option<String> {
    let hook = hook.as_object()?;
    ["command", "bash"]
        .iter()
        .find_map(|name| string_member(&hook, name))
        .filter(|text| hook_command::is_windlass_command(text, agent))
}

/// Returns a new entry for an event's list. It has no matcher, so it applies to everything.
fn build_event_entry(agent: BridgeAgent, hook: &HookEntry) -> CstInputValue {
    let (command, timeout) = (hook.command.as_str(), hook.timeout);
    match agent {
        BridgeAgent::Copilot => json!({"type": "command", "bash": command, "timeoutSec": timeout}),
        BridgeAgent::Cursor => json!({"command": command, "timeout": timeout}),
        _ => json!({"hooks": [{"type": "command", "command": command, "timeout": timeout}]}),
    }
}

fn is_our_server(server: &CstObject) -> bool {
    let args = server.array_value("args").map(|args| args.elements()).unwrap_or_default();
    let is_mcp = |arg: &CstNode| arg.as_string_lit().is_some_and(|arg| arg.decoded_value().as_deref() == Ok("mcp"));
    string_member(server, "command").is_some() && args.len() == 1 && args.iter().all(is_mcp)
}

impl SettingsDocument for CstRootNode {
    fn add_hooks(&mut self, agent: BridgeAgent, hooks: &[HookEntry]) -> Result<(), SettingsError> {
        let root = root_object(self)?;
        if matches!(agent, Agent::Copilot | Agent::Cursor) && root.get("version").is_none() {
            root.append("version", json!(1));
        }
        let events = find_or_create_object(&root, "hooks")?;
        for hook in hooks {
            find_member(&events, hook.event)?;
            let list = events.array_value_or_create(hook.event);
            let list = list.ok_or_else(|| SettingsError::wrong_kind(&format!("hooks.{}", hook.event), "a list"))?;
            list.ensure_multiline();
            list.append(build_event_entry(agent, hook));
        }
        Ok(())
    }

    fn remove_hooks(&mut self, agent: BridgeAgent) -> Result<Vec<(String, String)>, SettingsError> {
        let mut removed = Vec::new();
        let Some(root) = self.object_value() else { return Ok(removed) };
        let Some(hooks) = find_member(&root, "hooks")? else { return Ok(removed) };
        for event in hooks.object_value().map(|events| events.properties()).unwrap_or_default() {
            let name = event.decoded_name().unwrap_or_default();
            let before = removed.len();
            for rule in event.array_value().map(|rules| rules.elements()).unwrap_or_default() {
                let list = rule.as_object().and_then(|rule| rule.array_value("hooks"));
                let candidates = list.as_ref().map_or_else(|| vec![rule.clone()], CstArray::elements);
                let first = removed.len();
                for hook in candidates {
                    if let Some(command) = find_our_command(&hook, agent) {
                        removed.push((name.clone(), command));
                        hook.remove();
                    }
                }
                if removed.len() > first && list.is_some_and(|list| list.elements().is_empty()) {
                    rule.remove();
                }
            }
            if removed.len() > before {
                remove_if_empty(event);
            }
        }
        if !removed.is_empty() {
            remove_if_empty(hooks);
        }
        Ok(removed)
    }

    fn set_server(&mut self, file: &SettingsFile, program: &str) -> Result<(), SettingsError> {
        let servers = find_or_create_object(&root_object(self)?, SERVERS_KEY)?;
        match find_member(&servers, SERVER_NAME)?.map(|server| server.object_value()) {
            None => {
                let server = match file.name {
                    // Copilot's own file lists which tools of a server are offered.
                    "mcp-config.json" => json!({"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}),
                    _ => json!({"command": program, "args": ["mcp"]}),
                };
                servers.append(SERVER_NAME, server);
            }
            Some(Some(server)) if is_our_server(&server) => {
                server.get("command").expect("our server has a command").set_value(json!(program));
            }
            Some(_) => return Err(SettingsError::ServerTaken),
        }
        Ok(())
    }

    fn remove_server(&mut self) -> Result<bool, SettingsError> {
        let Some(root) = self.object_value() else { return Ok(false) };
        let Some(servers) = find_member(&root, SERVERS_KEY)? else { return Ok(false) };
        let server = servers.object_value().and_then(|servers| servers.object_value(SERVER_NAME));
        let Some(server) = server.filter(is_our_server).and_then(|server| server.parent()?.as_object_prop()) else {
            return Ok(false);
        };
        server.remove();
        remove_if_empty(servers);
        Ok(true)
    }
}
