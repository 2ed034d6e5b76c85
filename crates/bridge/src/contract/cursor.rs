//! The encoding of responses for Cursor, from its documentation.

use serde_json::{Map, Value};

use windlass_engine::CallRuling;

use crate::output::put;
use crate::{AgentHookEvent, AgentHookOutput, AgentHookResponse, Unsupported};

pub fn output(event: AgentHookEvent, response: AgentHookResponse, unsupported: Vec<Unsupported>) -> AgentHookOutput {
    let AgentHookResponse { ruling, reason: why, halt, context, updated_input, mut message, .. } = response;
    let mut answer = Map::new();
    match (event, ruling) {
        (AgentHookEvent::Stop | AgentHookEvent::SubagentStop, CallRuling::Block) => {
            put(&mut answer, "followup_message", Some(why))
        }
        (AgentHookEvent::UserPromptSubmit, CallRuling::Block) => refuse(&mut answer, why),
        (AgentHookEvent::PreToolUse, CallRuling::Block) => {
            put(&mut answer, "permission", Some("deny"));
            put(&mut answer, "user_message", Some(why.as_str()));
            put(&mut answer, "agent_message", Some(why));
        }
        (AgentHookEvent::PreToolUse, CallRuling::Allow) => put(&mut answer, "permission", Some("allow")),
        _ => {}
    }
    if let Some(why) = halt.filter(|_| event == AgentHookEvent::UserPromptSubmit) {
        refuse(&mut answer, why);
    }
    if let Some(input) = updated_input {
        // The documentation shows no answer without a permission, and an invalid answer blocks the tool.
        put(&mut answer, "permission", Some("allow"));
        put(&mut answer, "updated_input", Some(Value::Object(input)));
    }
    put(&mut answer, "additional_context", context);
    if event == AgentHookEvent::PreCompact {
        put(&mut answer, "user_message", message.take());
    }
    let mut output = AgentHookOutput::answer(answer, unsupported);
    output.stderr = message.unwrap_or_default();
    output
}

fn refuse(answer: &mut Map<String, Value>, why: String) {
    put(answer, "continue", Some(false));
    put(answer, "user_message", Some(why));
}
