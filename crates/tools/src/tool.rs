//! Definition of a tool: its name, its input, and its description for a model.

use serde_json::Value;

use crate::shape::{self, Field};

/// Whether a call can change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    ReadOnly,
    Writes,
}

/// A tool that agents and people can call by name.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    /// Description for a model: the effect, and when to use it.
    pub description: &'static str,
    /// Arguments of a typical call, as JSON.
    pub example: &'static str,
    pub effect: Effect,
    /// Input fields.
    pub fields: &'static [Field],
}

impl Tool {
    /// Returns the JSON schema of the input.
    pub fn schema(&self) -> Value {
        shape::schema(self.fields)
    }
}
