//! Patches for `apply_patch`, which is a tool of its own or a program in a shell.

use serde_json::{Map, Value};

/// The files of a patch.
#[derive(Debug, PartialEq)]
pub struct FilePatch {
    /// The files as the patch names them. There is at least one.
    pub files: Vec<String>,
    /// Whether the patch creates a file: adds one, or moves one there.
    pub writes: bool,
    /// The base of relative paths, if it is not the agent's working directory.
    pub directory: Option<String>,
}

const FILE_MARKERS: [(&str, bool); 4] =
    [("*** Update File:", false), ("*** Add File:", true), ("*** Delete File:", false), ("*** Move to:", true)];

impl FilePatch {
    /// Returns the patch of a tool that takes only a patch, under any key.
    pub fn from_tool_input(input: &Map<String, Value>) -> Option<Self> {
        Self::parse_patch(&input.values().filter_map(value_as_text).collect::<Vec<_>>().join("\n"))
    }

    /// Returns the patch of a shell command that calls `apply_patch`. A doubtful command counts as one, so that guards check it.
    pub fn from_shell_command(input: &Map<String, Value>) -> Option<Self> {
        let command = ["command", "cmd"].iter().find_map(|key| value_as_text(input.get(*key)?))?;
        let called = ["apply_patch", "applypatch"].iter().find_map(|name| command.find(name))?;
        let patch = Self::parse_patch(&command)?;
        let within = ["workdir", "working_directory", "cwd"].iter().find_map(|key| input.get(*key)?.as_str());
        let within = within.filter(|within| !within.is_empty()).map(str::to_owned);
        let directory = match (within, entered_directory(&command[..called])) {
            (Some(within), Some(entered)) if !entered.starts_with('/') => Some(format!("{within}/{entered}")),
            (within, entered) => entered.or(within),
        };
        Some(Self { directory, ..patch })
    }

    fn parse_patch(text: &str) -> Option<Self> {
        let (mut files, mut writes): (Vec<String>, bool) = (Vec::new(), false);
        for line in text.lines().map(str::trim) {
            let named = FILE_MARKERS.iter().find_map(|(mark, writes)| Some((line.strip_prefix(mark)?.trim(), *writes)));
            let Some((file, is_new)) = named.filter(|(file, _)| !file.is_empty()) else { continue };
            writes |= is_new;
            if !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
        (!files.is_empty()).then_some(Self { files, writes, directory: None })
    }
}

/// Returns a text, or a list of words as lines.
fn value_as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")),
        _ => None,
    }
}

/// Returns the directory of a leading `cd DIRECTORY &&`.
fn entered_directory(before: &str) -> Option<String> {
    let line = before.lines().last()?.trim();
    let directory = line.strip_prefix("cd ")?.strip_suffix("&&")?.trim();
    let is_one = !directory.is_empty() && !directory.contains(['$', '`', ';', '&', '|']);
    is_one.then(|| directory.trim_matches(['\'', '"']).to_owned())
}
