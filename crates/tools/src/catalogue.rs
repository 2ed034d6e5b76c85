//! The tools that there are.

use serde_json::Value;
use windlass_expr::nearest;

use crate::error::{Code, ToolError};
use crate::shape::{self, Field};
use crate::{checkpoint, hook, iteration, note, session, shown, task};

/// Whether a call can change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    ReadOnly,
    Writes,
}

/// Something that can be asked by name.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    /// For a model: what it does and when to use it.
    pub description: &'static str,
    /// Arguments of a typical call, as JSON.
    pub example: &'static str,
    pub effect: Effect,
    /// What it takes.
    pub fields: &'static [Field],
}

impl Tool {
    /// What it takes, as a JSON Schema.
    pub fn schema(&self) -> Value {
        shape::schema(self.fields)
    }
}

/// Every tool, in the order in which they are listed.
pub fn catalogue() -> &'static [Tool] {
    TOOLS
}

const TOOLS: &[Tool] = &[
    iteration::START,
    iteration::VALIDATE,
    iteration::NEXT,
    iteration::COMPLETE,
    hook::REGISTER,
    hook::EVALUATE,
    hook::LIST,
    hook::CLEAR,
    checkpoint::CREATE,
    checkpoint::LIST,
    checkpoint::RESUME,
    task::CREATE,
    task::GET,
    task::LIST,
    task::UPDATE,
    task::NEXT,
    note::ADD,
    session::COMPLETE,
];

/// The tool of that name.
pub fn find(name: &str) -> Result<&'static Tool, ToolError> {
    TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        ToolError::new(Code::UnknownTool, format!("there is no tool `{}`", shown::text(name))).hint(hint)
    })
}
