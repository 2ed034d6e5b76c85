//! The encoding of responses for Claude Code, and for agents that follow its contract.

use serde_json::{Map, Value, json};

use windlass_engine::CallRuling;

use super::{BlockEncoding, ContextField, Contract};
use crate::output::put;
use crate::{Agent, AgentHookOutput, AgentHookResponse, Unsupported};

pub fn output(contract: &Contract, response: AgentHookResponse, mut unsupported: Vec<Unsupported>) -> AgentHookOutput {
    let AgentHookResponse { ruling, reason: why, halt, context, updated_input, updated_output, message } = response;
    let Contract { agent, event, .. } = *contract;
    let (mut answer, mut specific) = (Map::new(), Map::new());
    let mut aloud = None;
    match ruling {
        CallRuling::Pass => {}
        CallRuling::Allow => permission(&mut specific, "allow", &why),
        CallRuling::Ask => permission(&mut specific, "ask", &why),
        CallRuling::Block => {
            put(&mut answer, "decision", Some("block"));
            put(&mut answer, "reason", Some(why.as_str()));
            match contract.block {
                BlockEncoding::ToolJson => permission(&mut specific, "deny", &why),
                BlockEncoding::ExitCodeAndJson => aloud = Some(why),
                BlockEncoding::JsonOnly | BlockEncoding::Context | BlockEncoding::Unsupported => {}
            }
        }
    }
    if let (Some(input), Some(key)) = (updated_input, contract.updated_input) {
        // Codex accepts an updated input only with a permission. Its own approval rules still apply.
        if agent == Agent::Codex {
            put(&mut specific, "permissionDecision", Some("allow"));
        }
        put(&mut specific, key, Some(Value::Object(input)));
    }
    put(&mut specific, "updatedToolOutput", updated_output);
    match contract.context {
        Some(ContextField::Specific) => put(&mut specific, "additionalContext", context),
        Some(ContextField::Top) => put(&mut answer, "additionalContext", context),
        Some(ContextField::Message) => put(&mut answer, "message", context),
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
        let event = agent.event_name(event).unwrap_or_else(|| event.claude_name());
        put(&mut specific, "hookEventName", Some(event));
        answer.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
    }
    // With exit code 2, standard error belongs to the agent.
    if aloud.is_some() && told.is_some() {
        unsupported.push(Unsupported::Message);
    }
    let mut output = AgentHookOutput::answer(answer, unsupported);
    match (aloud, told) {
        (Some(why), _) => (output.stderr, output.exit) = (why, 2),
        (None, told) => output.stderr = told.unwrap_or_default(),
    }
    output
}

fn permission(specific: &mut Map<String, Value>, decision: &str, why: &str) {
    specific.insert("permissionDecision".to_owned(), json!(decision));
    specific.insert("permissionDecisionReason".to_owned(), json!(why));
}
