//! The meaning of a piece of text, from which a front end chooses its colour.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextTone {
    Plain,
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
    Name,
}

impl TextTone {
    /// Returns whether a person should look at what has this tone: it is a failure, or something that blocks.
    pub fn needs_attention(self) -> bool {
        matches!(self, Self::Warning | Self::Bad)
    }
}
