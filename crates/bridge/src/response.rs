//! The response to an agent, independent of its contract.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use windlass_engine::CallRuling;

/// The result of all hooks of one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentHookResponse {
    /// The decision about the action. `Block`: the tool is denied, the prompt is rejected, the agent does not stop, and after a
    /// tool it reads the reason.
    pub ruling: CallRuling,
    /// The reason, for the agent or the user.
    pub reason: String,
    /// The reason to end the agent altogether (`continue: false`).
    pub halt: Option<String>,
    /// Context for the agent.
    pub context: Option<String>,
    /// The input that replaces the tool's input.
    pub updated_input: Option<Map<String, Value>>,
    /// The output that replaces the tool's output for the agent.
    pub updated_output: Option<Value>,
    /// A message for the user.
    pub message: Option<String>,
}

impl AgentHookResponse {
    /// Returns a response with only a message for the user.
    pub fn with_message(text: String) -> Self {
        Self { message: Some(text), ..Self::default() }
    }

    /// Merges two responses: the stricter ruling, and every text once. The first updated input and output count.
    pub fn merge_responses(self, other: Self) -> Self {
        let (ruling, reason) = match self.ruling.cmp(&other.ruling) {
            Ordering::Less => (other.ruling, other.reason),
            Ordering::Greater => (self.ruling, self.reason),
            Ordering::Equal => {
                (self.ruling, join_distinct_texts(Some(self.reason), Some(other.reason)).unwrap_or_default())
            }
        };
        Self {
            ruling,
            reason,
            halt: join_distinct_texts(self.halt, other.halt),
            context: join_distinct_texts(self.context, other.context),
            updated_input: self.updated_input.or(other.updated_input),
            updated_output: self.updated_output.or(other.updated_output),
            message: join_distinct_texts(self.message, other.message),
        }
    }

    /// Replaces the ruling and its reason.
    pub(crate) fn replace_ruling(&mut self, ruling: CallRuling, reason: String) {
        (self.ruling, self.reason) = (ruling, reason);
    }
}

fn join_distinct_texts(some: Option<String>, more: Option<String>) -> Option<String> {
    match (some, more) {
        (Some(some), Some(more)) if !some.lines().eq(more.lines()) => Some(format!("{some}\n\n{more}")),
        (some, more) => some.or(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_response_keeps_stricter_ruling_without_repetition() {
        let reply = |(ruling, reason): (CallRuling, &str), message: &str| AgentHookResponse {
            ruling,
            reason: reason.to_owned(),
            ..AgentHookResponse::with_message(message.to_owned())
        };
        let (no, fine) = (|why| (CallRuling::Block, why), (CallRuling::Allow, "fine"));
        assert_eq!(reply(fine, "a").and(reply(no("b"), "a")), reply(no("b"), "a"));
        assert_eq!(reply(no("a"), "a").and(reply(fine, "b")), reply(no("a"), "a\n\nb"));
        assert_eq!(reply(no("a"), "").and(reply(no("b"), "")).reason, "a\n\nb");
        assert_eq!(reply(no("a"), "").and(reply(no("a"), "")).reason, "a");
    }
}
