//! The encoding of responses for Cursor, from its documentation.

use serde_json::{Map, Value};

use windlass_engine::CallRuling;

use crate::output::insert_if_some;
use crate::{AgentHookEvent, AgentHookOutput, AgentHookResponse, UnsupportedPart};

pub fn encode_output(
    event: AgentHookEvent,
    response: AgentHookResponse,
    unsupported: Vec<UnsupportedPart>,
) -> AgentHookOutput {
    let AgentHookResponse { ruling, reason: why, halt, context, updated_input, mut message, .. } = response;
    let mut answer = Map::new();
    match (event, ruling) {
        (AgentHookEvent::Stop | AgentHookEvent::SubagentStop, CallRuling::Block) => {
            insert_if_some(&mut answer, "followup_message", Some(why))
        }
        (AgentHookEvent::UserPromptSubmit, CallRuling::Block) => insert_refusal(&mut answer, why),
        (AgentHookEvent::PreToolUse, CallRuling::Block) => {
            insert_if_some(&mut answer, "permission", Some("deny"));
            insert_if_some(&mut answer, "user_message", Some(why.as_str()));
            insert_if_some(&mut answer, "agent_message", Some(why));
        }
        (AgentHookEvent::PreToolUse, CallRuling::Allow) => insert_if_some(&mut answer, "permission", Some("allow")),
        _ => {}
    }
    if let Some(why) = halt.filter(|_| event == AgentHookEvent::UserPromptSubmit) {
        insert_refusal(&mut answer, why);
    }
    if let Some(input) = updated_input {
        // The documentation shows no answer without a permission, and an invalid answer blocks the tool.
        insert_if_some(&mut answer, "permission", Some("allow"));
        insert_if_some(&mut answer, "updated_input", Some(Value::Object(input)));
    }
    insert_if_some(&mut answer, "additional_context", context);
    if event == AgentHookEvent::PreCompact {
        insert_if_some(&mut answer, "user_message", message.take());
    }
    let mut output = AgentHookOutput::from_json_object(answer, unsupported);
    output.stderr = message.unwrap_or_default();
    output
}

fn insert_refusal(answer: &mut Map<String, Value>, why: String) {
    insert_if_some(answer, "continue", Some(false));
    insert_if_some(answer, "user_message", Some(why));
}
