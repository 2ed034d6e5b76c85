//! A tool: its name, what it takes, and what a model reads about it.

use serde_json::Value;

use crate::shape::{self, Field};

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
