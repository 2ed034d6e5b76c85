//! Events from the stream of a known agent.

/// An event of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// The agent's text and its tool calls, as readable text.
    Text(String),
    /// The name of the agent's conversation.
    Conversation(String),
}
