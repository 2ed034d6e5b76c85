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

impl Reply {
    /// Both as one: the stricter ruling, and every word once. Where each wants another input, the first one has it.
    pub fn and(self, other: Self) -> Self {
        Self {
            ruling: self.ruling.and(other.ruling),
            halt: both(self.halt, other.halt),
            context: both(self.context, other.context),
            updated_input: self.updated_input.or(other.updated_input),
            updated_output: self.updated_output.or(other.updated_output),
            message: both(self.message, other.message),
        }
    }
}

impl Ruling {
    fn and(self, other: Self) -> Self {
        let joined = |some: String, more: String| both(Some(some), Some(more)).unwrap_or_default();
        match (self, other) {
            (Self::Allow(some), Self::Allow(more)) => Self::Allow(joined(some, more)),
            (Self::Ask(some), Self::Ask(more)) => Self::Ask(joined(some, more)),
            (Self::Block(some), Self::Block(more)) => Self::Block(joined(some, more)),
            (some, more) => some.max(more),
        }
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
        let reply = |ruling, message: &str| Reply { ruling, message: Some(message.to_owned()), ..Reply::default() };
        let no = |why: &str| Ruling::Block(why.to_owned());
        let fine = || Ruling::Allow("fine".to_owned());
        assert_eq!(reply(fine(), "a").and(reply(no("b"), "a")), reply(no("b"), "a"));
        assert_eq!(reply(no("a"), "a").and(reply(fine(), "b")), reply(no("a"), "a\n\nb"));
        assert_eq!(no("a").and(no("b")), no("a\n\nb"));
        assert_eq!(no("a").and(no("a")), no("a"));
    }
}
