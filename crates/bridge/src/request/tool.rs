//! Tools with Claude Code's names, so that one hook works for every agent.
//!
//! Invariants:
//! - The agent's own fields stay; Claude Code's names are added beside them.
//! - Changes of a hook return under the agent's own names, and nothing that was only added here does.

use serde_json::{Map, Value};

use super::patch::FilePatch;

/// A tool before or after its use.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTool {
    /// Claude Code's name of the tool, or the agent's if there is none.
    pub name: String,
    /// The agent's own name.
    pub own_name: String,
    /// Claude Code's names for its other effects: a patch edits files and writes new ones, also from a shell.
    pub also_acts_as: Vec<String>,
    /// The input, under the agent's own keys and Claude Code's.
    pub input: Map<String, Value>,
    /// The input as the agent sent it.
    pub own_input: Map<String, Value>,
    /// Whether the files are those of a patch.
    is_patch: bool,
    /// Claude Code's keys with the agent's keys that they stand for. `None` for a tool of Claude Code.
    renamed: Option<Vec<(&'static str, &'static str)>>,
}

/// Names of equal tools. No two agents use one name for different tools.
const TOOL_NAMES: &[NameAliases] = &[
    ("Bash", &["run_shell_command", "shell", "Shell", "bash", "exec_command", "local_shell", "shell_command"]),
    ("Write", &["write_file", "write", "create"]),
    ("Edit", &["replace", "edit", "apply_patch", "StrReplace", "search_replace"]),
    ("Read", &["read_file", "view", "read", "read_image", "view_image"]),
    ("LS", &["list_directory", "tree"]),
    ("Grep", &["grep_search", "search_file_content", "grep"]),
    ("Glob", &["glob"]),
    ("WebFetch", &["web_fetch", "FetchURL"]),
    ("WebSearch", &["web_search", "google_web_search", "SearchWeb"]),
    ("TodoWrite", &["write_todos", "todo_write", "TodoList", "update_plan"]),
    ("Agent", &["agent", "task", "Task", "invoke_agent", "delegate", "spawn_agent"]),
    ("Skill", &["skill", "activate_skill", "load_skill"]),
    ("NotebookEdit", &["notebook_edit"]),
];

/// Claude Code's name, and the names of other agents.
type NameAliases = (&'static str, &'static [&'static str]);

/// The keys of a tool's input.
const INPUT_KEYS: &[(&str, &[NameAliases])] = &[
    ("Bash", &[("command", &["cmd"])]),
    ("Write", &[("file_path", PATH_KEYS), ("content", &["file_text", "contents"])]),
    (
        "Edit",
        &[("file_path", PATH_KEYS), ("old_string", &["old_str", "before"]), ("new_string", &["new_str", "after"])],
    ),
    ("Read", &[("file_path", PATH_KEYS)]),
    ("LS", &[("path", &["dir_path"])]),
    ("Grep", &[("path", &["dir_path"])]),
    ("Glob", &[("path", &["dir_path"])]),
    ("Agent", &[("subagent_type", &["agent_type", "agent_name"]), ("prompt", &["instructions"])]),
];
const PATH_KEYS: &[&str] = &["path", "target_file"];

impl AgentTool {
    /// Returns a tool of Claude Code.
    pub(super) fn from_claude_code(name: &str, input: Map<String, Value>) -> Self {
        let name = name.to_owned();
        Self {
            own_name: name.clone(),
            name,
            also_acts_as: Vec::new(),
            own_input: input.clone(),
            input,
            is_patch: false,
            renamed: None,
        }
    }

    /// Returns a tool of another agent. `server` is its MCP server, if the agent names it; relative paths begin at `directory`.
    pub(super) fn new(
        own_name: &str,
        own_input: Map<String, Value>,
        server: Option<(&str, &str)>,
        directory: Option<&str>,
    ) -> Self {
        let name = server.map_or_else(|| claude_tool_name(own_name), |(server, tool)| format!("mcp__{server}__{tool}"));
        let mut tool = Self { name, renamed: None, ..Self::from_claude_code(own_name, own_input) };
        tool.renamed = Some(tool.add_claude_keys());
        tool.make_path_absolute(directory);
        tool.add_patched_files(directory);
        tool
    }

    fn add_claude_keys(&mut self) -> Vec<(&'static str, &'static str)> {
        let mut renamed = Vec::new();
        let keys = INPUT_KEYS.iter().find(|(name, _)| *name == self.name).map_or(&[] as &[_], |(_, keys)| keys);
        for (claude, others) in keys {
            if self.input.contains_key(*claude) {
                continue;
            }
            if let Some((own, value)) = others.iter().find_map(|own| Some((*own, self.own_input.get(*own)?.clone()))) {
                self.input.insert((*claude).to_owned(), value);
                renamed.push((*claude, own));
            }
        }
        renamed
    }

    /// Adds the files of a patch: the first as `file_path`, all as `file_paths`. Other file fields do not count, because the
    /// agent applies the patch.
    fn add_patched_files(&mut self, directory: Option<&str>) {
        let patch = match self.name.as_str() {
            "Bash" => FilePatch::from_shell_command(&self.own_input),
            _ if self.own_name == "apply_patch" => FilePatch::from_tool_input(&self.own_input),
            _ => None,
        };
        let Some(patch) = patch else { return };
        let directory =
            patch.directory.map_or(directory.map(str::to_owned), |inner| Some(absolute_path(&inner, directory)));
        let files: Vec<Value> =
            patch.files.iter().map(|file| Value::String(absolute_path(file, directory.as_deref()))).collect();
        let also = [("Edit", true), ("Write", patch.writes)].into_iter().filter(|(name, is)| *is && *name != self.name);
        self.also_acts_as = also.map(|(name, _)| name.to_owned()).collect();
        self.is_patch = true;
        self.input.insert("file_path".to_owned(), files[0].clone());
        self.input.insert("file_paths".to_owned(), Value::Array(files));
    }

    /// Returns all files of a patch.
    pub(super) fn patched_files(&self) -> Vec<Value> {
        let files = if self.is_patch { self.input.get("file_paths") } else { None };
        files.and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Makes the path absolute: Claude Code's paths are, and hooks rely on it.
    fn make_path_absolute(&mut self, directory: Option<&str>) {
        if let Some(Value::String(path)) = self.input.get_mut("file_path") {
            *path = absolute_path(path, directory);
        }
    }

    /// Returns an updated input in the agent's own keys, or `None` if it equals the agent's input.
    pub fn to_own_input(&self, wanted: Map<String, Value>) -> Option<Map<String, Value>> {
        Some(self.restore_own_keys(wanted)).filter(|input| *input != self.own_input)
    }

    /// Renames keys back. Keys that the hook leaves out keep their value.
    fn restore_own_keys(&self, mut wanted: Map<String, Value>) -> Map<String, Value> {
        let Some(renamed) = &self.renamed else { return wanted };
        let mut input = self.own_input.clone();
        for (claude, own) in renamed {
            if let Some(value) = wanted.remove(*claude)
                && self.input.get(*claude) != Some(&value)
            {
                wanted.insert((*own).to_owned(), value);
            }
        }
        for (key, value) in wanted {
            // A value that was only added here must not return to the agent.
            if self.input.get(&key) != Some(&value) {
                input.insert(key, value);
            }
        }
        input
    }
}

fn absolute_path(path: &str, directory: Option<&str>) -> String {
    match directory.filter(|directory| directory.starts_with('/')) {
        Some(directory) if !path.is_empty() && !path.starts_with(['/', '~']) => {
            format!("{}/{}", directory.trim_end_matches('/'), path.trim_start_matches("./"))
        }
        _ => path.to_owned(),
    }
}

fn claude_tool_name(own: &str) -> String {
    let known = TOOL_NAMES.iter().find(|(_, others)| others.contains(&own)).map(|(name, _)| (*name).to_owned());
    known.or_else(|| claude_server_tool_name(own)).unwrap_or_else(|| own.to_owned())
}

/// Returns the name of goose's `server__tool`.
fn claude_server_tool_name(own: &str) -> Option<String> {
    let (server, tool) = own.split_once("__")?;
    (server != "mcp" && !server.is_empty() && !tool.is_empty()).then(|| format!("mcp__{server}__{tool}"))
}
