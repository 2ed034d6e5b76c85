//! The answer to an agent, in our words.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use windlass_engine::CallRuling;

/// What hooks have come to about one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentHookResponse {
    /// What happens to what is about to happen. `Block`: the tool is denied, the prompt is not taken, the agent does not
    /// stop, and after a tool it is told why.
    pub ruling: CallRuling,
    /// Why, in words for the agent or the person who hears the ruling.
    pub reason: String,
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

impl AgentHookResponse {
    /// Returns a response that only tells the person something.
    pub fn message(text: String) -> Self {
        Self { message: Some(text), ..Self::default() }
    }

    /// Both as one: the stricter ruling, and every word once. Where each wants another input, the first one has it.
    pub fn and(self, other: Self) -> Self {
        let (ruling, reason) = match self.ruling.cmp(&other.ruling) {
            Ordering::Less => (other.ruling, other.reason),
            Ordering::Greater => (self.ruling, self.reason),
            Ordering::Equal => (self.ruling, both(Some(self.reason), Some(other.reason)).unwrap_or_default()),
        };
        Self {
            ruling,
            reason,
            halt: both(self.halt, other.halt),
            context: both(self.context, other.context),
            updated_input: self.updated_input.or(other.updated_input),
            updated_output: self.updated_output.or(other.updated_output),
            message: both(self.message, other.message),
        }
    }

    /// Replaces the ruling and its reason.
    pub(crate) fn rule(&mut self, ruling: CallRuling, reason: String) {
        (self.ruling, self.reason) = (ruling, reason);
    }
}

fn both(some: Option<String>, more: Option<String>) -> Option<String> {
    match (some, more) {
        (Some(some), Some(more)) if !some.lines().eq(more.lines()) => Some(format!("{some}\n\n{more}")),
        (some, more) => some.or(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_one_holds_and_no_word_comes_twice() {
        let reply = |(ruling, reason): (CallRuling, &str), message: &str| AgentHookResponse {
            ruling,
            reason: reason.to_owned(),
            ..AgentHookResponse::message(message.to_owned())
        };
        let (no, fine) = (|why| (CallRuling::Block, why), (CallRuling::Allow, "fine"));
        assert_eq!(reply(fine, "a").and(reply(no("b"), "a")), reply(no("b"), "a"));
        assert_eq!(reply(no("a"), "a").and(reply(fine, "b")), reply(no("a"), "a\n\nb"));
        assert_eq!(reply(no("a"), "").and(reply(no("b"), "")).reason, "a\n\nb");
        assert_eq!(reply(no("a"), "").and(reply(no("a"), "")).reason, "a");
    }
}
