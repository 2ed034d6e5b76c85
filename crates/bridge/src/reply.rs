//! What is to be answered, in our words.

use serde_json::{Map, Value};

/// What hooks have come to at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    pub ruling: Ruling,
    /// The agent is to end altogether, and why (`continue: false`).
    pub halt: Option<String>,
    /// For the agent to read.
    pub context: Option<String>,
    /// What the tool is to be called with instead.
    pub updated_input: Option<Map<String, Value>>,
    /// What the agent is to read instead of what the tool answered.
    pub updated_output: Option<Value>,
    /// For the person who sits there.
    pub message: Option<String>,
}

/// What happens to what is about to happen. Mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Ruling {
    /// Nobody has said anything: as the agent would without us.
    #[default]
    Pass,
    /// A tool may be used without asking the person.
    Allow(String),
    /// The person is to be asked whether the tool may be used.
    Ask(String),
    /// It does not happen: the tool is denied, the prompt is not taken, the agent does not stop. After a tool it is told why.
    Block(String),
}
