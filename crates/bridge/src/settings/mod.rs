//! What is written into agents' own settings so that they call us, and how it is taken away again, as edits of text.
//!
//! ```text
//! files(agent, scope) ─► File ─ with(text) ─► the text with our entries ─ without(text, before) ─► the text from before
//! ```
//!
//! Invariants:
//! - What is not ours keeps every byte: comments, order, blanks, unknown keys.
//! - `with` of what `with` gave is the same text.
//! - `without` of what `with` gave is the text from before, given that text; without it, nothing of ours is left.
//! - A text that cannot be understood is not changed.
//! - A byte order mark stays where it is, and is not in the way.
//!
//! Not here: where files are on this machine, asking, and writing (`cli`).

mod command;
mod hooks;
mod json;
mod servers;
mod table;
#[cfg(test)]
mod tests;
mod toml;
mod unfit;

pub use command::Program;
pub use table::{File, Holds, Scope, event, files, sharers};
pub use unfit::Unfit;

/// What is known of a file as it was before we wrote into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before<'a> {
    Unknown,
    /// Its text; `None` where there was no file.
    Known(Option<&'a str>),
}

/// What some editors put in front of a text.
const MARK: &str = "\u{feff}";

/// A text as it is edited, and what stands in front of it.
fn unmarked(text: &str) -> (&'static str, &str) {
    text.strip_prefix(MARK).map_or(("", text), |text| (MARK, text))
}

impl<'a> Before<'a> {
    fn unmarked(self) -> Self {
        match self {
            Self::Known(Some(text)) => Self::Known(Some(unmarked(text).1)),
            other => other,
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Unknown | Self::Known(None) => None,
            Self::Known(text) => text,
        }
    }

    /// Whether a container was there.
    fn has(self, path: &[&str]) -> bool {
        self.text().is_some_and(|text| json::container(text, path).is_some())
    }

    fn has_member(self, name: &str) -> bool {
        self.text().is_some_and(|text| json::root(text).ok().flatten().is_some_and(|root| root.get(name).is_some()))
    }
}

impl File {
    /// The text with our entries; with the MCP server too, if that is asked for and belongs into this file.
    pub fn with(&self, text: Option<&str>, program: &Program, server: bool) -> Result<String, Unfit> {
        let (mark, text) = unmarked(text.unwrap_or_default());
        let mut text = text.to_owned();
        if self.has_hooks() {
            text = match self.is_toml() {
                true => toml::with_hooks(&text, self.agent, program)?,
                false => hooks::with(&text, self.agent, program)?,
            };
        }
        if self.has_servers() && server {
            text = match self.is_toml() {
                true => toml::with_server(&text, program)?,
                false => servers::with(&text, self, program)?,
            };
        }
        Ok(format!("{mark}{text}"))
    }

    /// The text without our entries; `None` where no file should be left.
    pub fn without(&self, text: &str, before: Before<'_>, server: bool) -> Result<Option<String>, Unfit> {
        let ((mark, text), before) = (unmarked(text), before.unmarked());
        let mut kept = text.to_owned();
        if self.has_servers() && server {
            kept = match self.is_toml() {
                true => toml::without_server(&kept, before)?,
                false => servers::without(&kept, before)?,
            };
        }
        if self.has_hooks() {
            kept = match self.is_toml() {
                true => toml::without_hooks(&kept, self.agent, before)?,
                false => hooks::without(&kept, self.agent, before)?,
            };
        }
        if kept == text {
            return Ok(Some(format!("{mark}{kept}")));
        }
        let rest = if self.is_toml() { Some(kept.trim()) } else { json::around_bare_root(&kept) };
        let left = match (before, rest) {
            (Before::Known(None), Some("")) => None,
            (Before::Unknown, Some("")) if self.is_own => None,
            // There was nothing in it but comments and blanks.
            (Before::Known(Some(was)), Some(rest)) if was.trim() == rest => Some(was.to_owned()),
            _ => Some(kept),
        };
        Ok(left.map(|left| format!("{mark}{left}")))
    }

    /// Whether any entry of ours is in a text.
    pub fn has_ours(&self, text: &str) -> bool {
        self.has_our_hooks(text) || self.has_our_server(text)
    }

    /// Whether the agent calls us by what is in a text.
    pub fn has_our_hooks(&self, text: &str) -> bool {
        let (_, text) = unmarked(text);
        self.has_hooks()
            && match self.is_toml() {
                true => toml::has_hooks(text, self.agent),
                false => hooks::has(text, self.agent).unwrap_or(false),
            }
    }

    pub fn has_our_server(&self, text: &str) -> bool {
        let (_, text) = unmarked(text);
        self.has_servers() && if self.is_toml() { toml::has_server(text) } else { servers::has(text) }
    }
}
