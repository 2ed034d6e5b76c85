//! Errors of tools, with hints.

use std::error::Error;
use std::fmt::{self, Display};

/// Kind of failure that a caller can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolErrorCode {
    /// No tool has that name.
    UnknownTool,
    /// The arguments are wrong.
    Invalid,
    /// A named item does not exist.
    NotFound,
    /// The rules do not allow it in the present state.
    Refused,
    /// No person has trusted the project's configuration.
    Trust,
    /// The project's configuration is wrong.
    Config,
    /// The store cannot be used, or is damaged.
    Store,
    /// Another failure of the machine.
    System,
    /// A person has cancelled the call.
    Interrupted,
}

impl ToolErrorCode {
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::Trust => "trust",
            Self::Config => "config",
            Self::Store => "store",
            Self::System => "system",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A hint for the caller. Each front end words calls of tools and commands of people in its own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerHint {
    /// A sentence without a tool or a command.
    Advice(String),
    /// A tool, and the effect of its call: "shows the tasks".
    Tool { name: &'static str, effect: String },
    /// A command for a person, and its effect.
    Command { line: String, effect: String },
}

impl CallerHint {
    pub fn tool(name: &'static str, effect: impl Into<String>) -> Self {
        Self::Tool { name, effect: effect.into() }
    }

    pub fn command(line: impl Into<String>, effect: impl Into<String>) -> Self {
        Self::Command { line: line.into(), effect: effect.into() }
    }
}

impl<T: Into<String>> From<T> for CallerHint {
    fn from(advice: T) -> Self {
        Self::Advice(advice.into())
    }
}

/// The wording for agents.
impl Display for CallerHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advice(text) => f.write_str(text),
            Self::Tool { name, effect } => write!(f, "`{name}` {effect}"),
            Self::Command { line, effect } => write!(f, "ask a person to run `{line}`: it {effect}"),
        }
    }
}

/// A failed call. It has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    pub code: ToolErrorCode,
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<CallerHint>,
}

impl ToolError {
    pub fn new(code: ToolErrorCode, message: impl Display) -> Self {
        Self { code, message: message.to_string(), causes: Vec::new(), hints: Vec::new() }
    }

    /// Converts an error with all its causes.
    pub fn from_error(code: ToolErrorCode, error: &dyn Error) -> Self {
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        Self { causes: causes.map(ToString::to_string).collect(), ..Self::new(code, error) }
    }

    pub fn with_hint(mut self, hint: impl Into<CallerHint>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns all hints as one text, each worded by the front end.
    pub fn word_hints(&self, word: impl Fn(&CallerHint) -> String) -> Option<String> {
        (!self.hints.is_empty()).then(|| self.hints.iter().map(word).collect::<Vec<_>>().join("; "))
    }
}

impl Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {}
