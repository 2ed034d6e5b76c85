//! The entries in an agent's own settings that make it call Windlass: adding and removing them, as edits of text.
//!
//! ```text
//! settings_files(agent, scope) ─► SettingsFile ─ add_entries(text) ─► text with entries ─ remove_entries(text) ─► text without
//! ```
//!
//! Invariants:
//! - Other values and comments stay. Blanks and line ends may change; the saved copy serves for an exact undo.
//! - Adding existing entries changes nothing.
//! - A text that cannot be parsed is refused.
//!
//! Not here: the location of files on this machine, the saved copy, questions, and writing (`cli`).

mod hook_command;
mod json;
mod settings_layout;
#[cfg(test)]
mod tests;
mod toml;

use std::fmt::Display;

use crate::BridgeAgent;
pub use hook_command::ProgramPath;
use settings_layout::HookEntry;
pub use settings_layout::{
    SettingsFile, SettingsPurpose, SettingsScope, agents_sharing_file, settings_event_name, settings_files,
};

/// The name of Windlass's MCP server.
const SERVER_NAME: &str = "windlass";
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Settings that cannot be edited safely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("{0}")]
    Syntax(String),
    #[error("`{key}` is not {wanted}")]
    Kind { key: String, wanted: &'static str },
    #[error("`{key}` is there twice")]
    Duplicate { key: String },
    #[error("the MCP server `{SERVER_NAME}` exists already, and runs another command")]
    ServerTaken,
}

impl SettingsError {
    fn wrong_kind(key: &str, wanted: &'static str) -> Self {
        Self::Kind { key: key.to_owned(), wanted }
    }
}

/// Parsed settings that keep their original text.
trait SettingsDocument: Display {
    fn add_hooks(&mut self, agent: BridgeAgent, hooks: &[HookEntry]) -> Result<(), SettingsError>;
    /// Removes Windlass's hooks and the lists that become empty. Returns the event and the command of each hook.
    fn remove_hooks(&mut self, agent: BridgeAgent) -> Result<Vec<(String, String)>, SettingsError>;
    /// Adds Windlass's MCP server, or updates the program of the existing one.
    fn set_server(&mut self, file: &SettingsFile, program: &str) -> Result<(), SettingsError>;
    /// Removes Windlass's MCP server. Returns whether it was there.
    fn remove_server(&mut self) -> Result<bool, SettingsError>;
}

impl SettingsFile {
    fn parse_document(&self, text: &str) -> Result<Box<dyn SettingsDocument>, SettingsError> {
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        Ok(match self.name.ends_with(".toml") {
            true => Box::new(toml::parse_toml_settings(text)?),
            false => Box::new(json::parse_json_settings(text)?),
        })
    }

    /// Returns the text with Windlass's hooks, and with its MCP server if `server` is set.
    pub fn add_entries(
        &self,
        text: Option<&str>,
        program: &ProgramPath,
        server: bool,
    ) -> Result<String, SettingsError> {
        let text = text.unwrap_or_default();
        let mut document = self.parse_document(text)?;
        if self.has_hooks() {
            let wanted = settings_layout::build_hook_entries(self.agent, program);
            let mut found = document.remove_hooks(self.agent)?;
            let mut expected: Vec<_> =
                wanted.iter().map(|hook| (hook.event.to_owned(), hook.command.clone())).collect();
            found.sort();
            expected.sort();
            match found == expected {
                true => document = self.parse_document(text)?,
                false => document.add_hooks(self.agent, &wanted)?,
            }
        }
        if self.has_servers() && server {
            document.set_server(self, &program.path)?;
        }
        Ok(restore_byte_order_mark(text, &document.to_string()))
    }

    /// Returns the text without Windlass's hooks, and without its MCP server if `server` is set.
    pub fn remove_entries(&self, text: &str, server: bool) -> Result<String, SettingsError> {
        let mut document = self.parse_document(text)?;
        let has_hooks = self.has_hooks() && !document.remove_hooks(self.agent)?.is_empty();
        let has_server = self.has_servers() && server && document.remove_server()?;
        Ok(if has_hooks || has_server { restore_byte_order_mark(text, &document.to_string()) } else { text.to_owned() })
    }

    /// Returns whether a text makes the agent call Windlass.
    pub fn has_our_hooks(&self, text: &str) -> bool {
        let found = self.parse_document(text).and_then(|mut document| document.remove_hooks(self.agent));
        self.has_hooks() && found.is_ok_and(|found| !found.is_empty())
    }

    pub fn has_our_server(&self, text: &str) -> bool {
        self.has_servers()
            && self.parse_document(text).and_then(|mut document| document.remove_server()).unwrap_or(false)
    }
}

/// Returns whether a text has neither values nor comments, except for the format's version.
pub fn is_empty_settings(text: &str) -> bool {
    let rest: String = text.trim_start_matches(BYTE_ORDER_MARK).split_whitespace().collect();
    matches!(rest.as_str(), "" | "{}" | r#"{"version":1}"#)
}

/// Restores the byte order mark of the old text.
fn restore_byte_order_mark(old: &str, new: &str) -> String {
    format!("{}{new}", if old.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { "" })
}
