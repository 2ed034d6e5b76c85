//! Definition of a tool: its name, its input, and its description for a model.

use serde_json::Value;

use crate::schema::{self, ToolField};

/// Whether a call can change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    ReadOnly,
    Writes,
}

/// A tool that agents and people can call by name.
#[derive(Debug)]
pub struct ToolDefinition {
    pub name: &'static str,
    /// Description for a model: the effect, and when to use it.
    pub description: &'static str,
    /// Arguments of a typical call, as JSON.
    pub example: &'static str,
    pub effect: ToolEffect,
    /// Input fields.
    pub fields: &'static [ToolField],
}

impl ToolDefinition {
    /// Returns the JSON schema of the input.
    pub fn input_schema(&self) -> Value {
        schema::schema(self.fields)
    }
}
