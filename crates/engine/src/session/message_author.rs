//! The authors of messages to the agent. A person is never mistaken for a hook, nor an agent for a person.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageAuthor {
    #[default]
    Hook,
    /// A person, outside every run.
    Person,
    /// An agent, during its turn.
    Agent,
    /// Windlass itself.
    Windlass,
}

impl MessageAuthor {
    pub fn is_hook(&self) -> bool {
        *self == Self::Hook
    }

    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }
}
