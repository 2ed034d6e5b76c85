//! What the stream of a known agent tells while a turn goes on.

/// What is heard while a turn goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// What the agent says and the tools that it calls, to show.
    Text(String),
    /// The conversation that it works in.
    Conversation(String),
}
