//! Our entry among the MCP servers of settings that are JSON.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::command::Program;
use super::json::{self, Container};
use super::{Before, File, Unfit};

/// Where servers are, and what we are called among them.
pub const LIST: &str = "mcpServers";
pub const NAME: &str = "windlass";

fn entry(file: &File, program: &Program) -> String {
    let command = json::quoted(&program.path);
    match file.name {
        // Copilot's own file says which tools of a server are offered.
        "mcp-config.json" => format!(r#"{{"type": "local", "command": {command}, "args": ["mcp"], "tools": ["*"]}}"#),
        _ => format!(r#"{{"command": {command}, "args": ["mcp"]}}"#),
    }
}

/// Whether a server is one that is written here, whatever its program.
fn is_ours(server: &Object<'_>) -> bool {
    let args = server.get_array("args").map(|args| args.elements.as_slice());
    let mcp = matches!(args, Some([Value::StringLit(arg)]) if arg.value == "mcp");
    mcp && json::string(server, "command").is_some()
}

/// The server of our name, if there is one.
fn find<'a, 'b>(root: &'b Object<'a>) -> Result<Option<&'b Object<'a>>, Unfit> {
    let path = format!("{LIST}.{NAME}");
    match json::object(root, LIST, LIST)? {
        None => Ok(None),
        Some(servers) => json::object(servers, NAME, &path),
    }
}

pub fn has(text: &str) -> bool {
    json::root(text).ok().flatten().is_some_and(|root| find(&root).ok().flatten().is_some_and(is_ours))
}

pub fn with(text: &str, file: &File, program: &Program) -> Result<String, Unfit> {
    let mut text = json::with_root(text)?;
    let root = json::root(&text)?.expect("it was made above");
    match find(&root)? {
        Some(server) if !is_ours(server) => return Err(Unfit::Taken { key: format!("{LIST}.{NAME}") }),
        Some(server) => {
            let command = server.get("command").expect("ours have one").value.range();
            text.replace_range(command.start..command.end, &json::quoted(&program.path));
            return Ok(text);
        }
        None => {}
    }
    if json::object(&root, LIST, LIST)?.is_none() {
        text = Container::from(&root).append(&text, &format!("\"{LIST}\": {{}}"));
    }
    let servers = json::container(&text, &[LIST]).expect("it was made above");
    Ok(servers.append(&text, &format!("\"{NAME}\": {}", entry(file, program))))
}

pub fn without(text: &str, before: Before<'_>) -> Result<String, Unfit> {
    let text = text.to_owned();
    if !has(&text) || before.text().is_some_and(has) {
        return Ok(text);
    }
    let text = json::without_member(&text, &[LIST], NAME, before.text()).unwrap_or(text);
    let is_bare = json::container(&text, &[LIST]).is_some_and(|list| list.is_bare(&text));
    let pruned = (is_bare && !before.has(&[LIST])).then(|| json::without_member(&text, &[], LIST, before.text()));
    Ok(pruned.flatten().unwrap_or(text))
}
