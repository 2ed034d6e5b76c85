//! A reply in an agent's own contract.

use serde_json::{Map, Value, json};

use crate::{Agent, Moment, Reply, Ruling};

/// What is written, and with what we exit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    pub stdout: String,
    pub stderr: String,
    pub exit: u8,
}

impl Words {
    pub fn of(_agent: Agent, moment: Moment, reply: &Reply) -> Self {
        let mut answer = Map::new();
        let mut specific = Map::new();
        let mut words = Self::default();
        match &reply.ruling {
            Ruling::Block(reason) => {
                answer.insert("decision".to_owned(), json!("block"));
                answer.insert("reason".to_owned(), json!(reason));
                if moment == Moment::PreToolUse {
                    specific.insert("permissionDecision".to_owned(), json!("deny"));
                    specific.insert("permissionDecisionReason".to_owned(), json!(reason));
                } else if moment.can_block() {
                    (words.stderr, words.exit) = (reason.clone(), 2);
                }
            }
            Ruling::Pass | Ruling::Allow(_) | Ruling::Ask(_) => {}
        }
        if let Some(context) = &reply.context {
            specific.insert("additionalContext".to_owned(), json!(context));
        }
        if let Some(input) = &reply.updated_input {
            specific.insert("updatedInput".to_owned(), json!(input));
        }
        if let Some(message) = &reply.message {
            answer.insert("systemMessage".to_owned(), json!(message));
        }
        if !specific.is_empty() {
            specific.insert("hookEventName".to_owned(), json!(moment.claude_name()));
            answer.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
        }
        if !answer.is_empty() {
            words.stdout = Value::Object(answer).to_string();
        }
        words
    }
}
