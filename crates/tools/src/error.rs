//! Why a tool did not do what it was asked for, and what to do about it.

use std::error::Error;
use std::fmt::{self, Display};

use serde_json::{Value, json};

/// The kinds of failure that a caller may tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// No tool has that name.
    UnknownTool,
    /// The arguments are wrong.
    Invalid,
    /// What was named does not exist.
    NotFound,
    /// The rules do not allow it in the present state.
    Refused,
    /// Nobody has trusted the project's configuration.
    Trust,
    /// The project's configuration is wrong.
    Config,
    /// The store cannot be used, or is damaged.
    Store,
    /// Anything that the machine refused.
    System,
    /// Somebody asked for the end.
    Interrupted,
}

impl Code {
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

/// A call that failed. Nothing was changed by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    pub code: Code,
    pub message: String,
    pub causes: Vec<String>,
    pub hint: Option<String>,
}

impl ToolError {
    pub fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: message.to_string(), causes: Vec::new(), hint: None }
    }

    /// The error and everything that led to it.
    pub fn from_error(code: Code, error: &dyn Error) -> Self {
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        Self { causes: causes.map(ToString::to_string).collect(), ..Self::new(code, error) }
    }

    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// As one object, the way the command line prints failures.
    pub fn to_json(&self) -> Value {
        json!({"error": {"code": self.code.name(), "message": self.message, "causes": self.causes, "hint": self.hint}})
    }
}

/// All of it, as a model reads it: what is wrong, why, and what to do.
impl Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, "\ncaused by: {cause}"))?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl Error for ToolError {}
