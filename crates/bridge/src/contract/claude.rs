//! The encoding of responses for Claude Code, and for agents that follow its contract.

use serde_json::{Map, Value, json};

use windlass_engine::CallRuling;

use super::{AgentContract, BlockEncoding, ContextField};
use crate::output::insert_if_some;
use crate::{AgentHookOutput, AgentHookResponse, BridgeAgent, UnsupportedPart};

pub fn encode_output(
    contract: &AgentContract,
    response: AgentHookResponse,
    mut unsupported: Vec<UnsupportedPart>,
) -> AgentHookOutput {
    let AgentHookResponse { ruling, reason: why, halt, context, updated_input, updated_output, message } = response;
    let AgentContract { agent, event, .. } = *contract;
    let (mut answer, mut specific) = (Map::new(), Map::new());
    let mut aloud = None;
    match ruling {
        CallRuling::Pass => {}
        CallRuling::Allow => insert_permission(&mut specific, "allow", &why),
        CallRuling::Ask => insert_permission(&mut specific, "ask", &why),
        CallRuling::Block => {
            insert_if_some(&mut answer, "decision", Some("block"));
            insert_if_some(&mut answer, "reason", Some(why.as_str()));
            match contract.block {
                BlockEncoding::ToolJson => insert_permission(&mut specific, "deny", &why),
                BlockEncoding::ExitCodeAndJson => aloud = Some(why),
                BlockEncoding::JsonOnly | BlockEncoding::Context | BlockEncoding::Unsupported => {}
            }
        }
    }
    if let (Some(input), Some(key)) = (updated_input, contract.updated_input) {
        // Codex accepts an updated input only with a permission. Its own approval rules still apply.
        if agent == BridgeAgent::Codex {
            insert_if_some(&mut specific, "permissionDecision", Some("allow"));
        }
        insert_if_some(&mut specific, key, Some(Value::Object(input)));
    }
    insert_if_some(&mut specific, "updatedToolOutput", updated_output);
    match contract.context {
        Some(ContextField::Specific) => insert_if_some(&mut specific, "additionalContext", context),
        Some(ContextField::Top) => insert_if_some(&mut answer, "additionalContext", context),
        Some(ContextField::Message) => insert_if_some(&mut answer, "message", context),
        None => {}
    }
    if halt.is_some() {
        insert_if_some(&mut answer, "continue", Some(false));
        insert_if_some(&mut answer, "stopReason", halt);
    }
    let separate_message = if contract.shows_messages {
        insert_if_some(&mut answer, "systemMessage", message);
        None
    } else {
        message
    };
    if !specific.is_empty() {
        let event = agent.event_name(event).unwrap_or_else(|| event.claude_event_name());
        insert_if_some(&mut specific, "hookEventName", Some(event));
        answer.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
    }
    // With exit code 2, standard error belongs to the agent.
    if aloud.is_some() && separate_message.is_some() {
        unsupported.push(UnsupportedPart::Message);
    }
    let mut output = AgentHookOutput::from_json_object(answer, unsupported);
    match (aloud, separate_message) {
        (Some(why), _) => (output.stderr, output.exit) = (why, 2),
        (None, separate_message) => output.stderr = separate_message.unwrap_or_default(),
    }
    output
}

fn insert_permission(specific: &mut Map<String, Value>, decision: &str, why: &str) {
    specific.insert("permissionDecision".to_owned(), json!(decision));
    specific.insert("permissionDecisionReason".to_owned(), json!(why));
}
