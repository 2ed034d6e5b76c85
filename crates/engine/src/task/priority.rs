//! The priority of a task.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The priority of a task: 0 is the most urgent, 4 the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct TaskPriority(u8);

impl TaskPriority {
    pub const LOWEST: Self = Self(4);
}

impl Default for TaskPriority {
    fn default() -> Self {
        Self(2)
    }
}

impl TryFrom<u8> for TaskPriority {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if number <= 4 { Ok(Self(number)) } else { Err(format!("{number} is not a priority: 0 (most urgent) to 4")) }
    }
}

impl From<TaskPriority> for u8 {
    fn from(priority: TaskPriority) -> Self {
        priority.0
    }
}

impl FromStr for TaskPriority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: u8 = text.parse().map_err(|_| format!("`{text}` is not a priority: 0 (most urgent) to 4"))?;
        number.try_into()
    }
}

impl Display for TaskPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
