//! Claude Code's contract, and those that were made after it.

use serde_json::{Map, Value, json};

use super::contract::{No, Place};
use super::settle::Settled;
use super::{Unsaid, Words, put};
use crate::{Agent, Moment, Reply, Ruling};

pub fn words(agent: Agent, moment: Moment, settled: Settled) -> Words {
    let Settled { contract, reply, mut unsaid } = settled;
    let Reply { ruling, halt, context, updated_input, updated_output, message } = reply;
    let (mut answer, mut specific) = (Map::new(), Map::new());
    let mut aloud = None;
    match ruling {
        Ruling::Pass => {}
        Ruling::Allow(why) => permission(&mut specific, "allow", &why),
        Ruling::Ask(why) => permission(&mut specific, "ask", &why),
        Ruling::Block(why) => {
            put(&mut answer, "decision", Some("block"));
            put(&mut answer, "reason", Some(why.as_str()));
            match contract.no {
                No::Twice => permission(&mut specific, "deny", &why),
                No::Aloud => aloud = Some(why),
                No::Quietly | No::AsContext | No::Never => {}
            }
        }
    }
    if let (Some(input), Some(key)) = (updated_input, contract.updated_input) {
        // Codex takes another input from whoever allows the tool, and its own rules stay.
        if agent == Agent::Codex {
            put(&mut specific, "permissionDecision", Some("allow"));
        }
        put(&mut specific, key, Some(Value::Object(input)));
    }
    put(&mut specific, "updatedToolOutput", updated_output);
    match contract.context {
        Some(Place::Specific) => put(&mut specific, "additionalContext", context),
        Some(Place::Top) => put(&mut answer, "additionalContext", context),
        Some(Place::Message) => put(&mut answer, "message", context),
        None => {}
    }
    if halt.is_some() {
        put(&mut answer, "continue", Some(false));
        put(&mut answer, "stopReason", halt);
    }
    let told = if contract.shows {
        put(&mut answer, "systemMessage", message);
        None
    } else {
        message
    };
    if !specific.is_empty() {
        let event = agent.event(moment).unwrap_or_else(|| moment.claude_name());
        put(&mut specific, "hookEventName", Some(event));
        answer.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
    }
    // With exit code 2 standard error is for the agent.
    if aloud.is_some() && told.is_some() {
        unsaid.push(Unsaid::Message);
    }
    let mut words = Words::answer(answer, unsaid);
    match (aloud, told) {
        (Some(why), _) => (words.stderr, words.exit) = (why, 2),
        (None, told) => words.stderr = told.unwrap_or_default(),
    }
    words
}

fn permission(specific: &mut Map<String, Value>, decision: &str, why: &str) {
    specific.insert("permissionDecision".to_owned(), json!(decision));
    specific.insert("permissionDecisionReason".to_owned(), json!(why));
}
