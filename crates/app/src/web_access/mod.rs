//! Who may use the page: people with a cookie, programs with a token, and holders of a link to one question.

mod records;
mod secret;

use std::fmt::{self, Display};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use records::{AccessRecords, LinkedQuestion, LoginKind, LoginSummary, PageViewer};
pub use secret::AccessSecret;

/// What a viewer may do. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewerRole {
    /// Read everything.
    Look,
    /// Answer questions, review changes, and speak to agents.
    Answer,
    /// Give every command that the page offers.
    Manage,
}

impl ViewerRole {
    pub const ALL: [Self; 3] = [Self::Look, Self::Answer, Self::Manage];

    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Answer => "answer",
            Self::Manage => "manage",
        }
    }
}

impl Display for ViewerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ViewerRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| "it is look, answer or manage".to_owned())
    }
}
