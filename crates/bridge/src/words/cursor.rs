//! Cursor's contract, from its documentation.

use serde_json::{Map, Value};

use super::settle::Settled;
use super::{Words, put};
use crate::{Moment, Reply, Ruling};

pub fn words(moment: Moment, settled: Settled) -> Words {
    let Settled { reply: Reply { ruling, halt, context, updated_input, mut message, .. }, unsaid, .. } = settled;
    let mut answer = Map::new();
    match (moment, ruling) {
        (Moment::Stop | Moment::SubagentStop, Ruling::Block(why)) => put(&mut answer, "followup_message", Some(why)),
        (Moment::UserPromptSubmit, Ruling::Block(why)) => refuse(&mut answer, why),
        (Moment::PreToolUse, Ruling::Block(why)) => {
            put(&mut answer, "permission", Some("deny"));
            put(&mut answer, "user_message", Some(why.as_str()));
            put(&mut answer, "agent_message", Some(why));
        }
        (Moment::PreToolUse, Ruling::Allow(_)) => put(&mut answer, "permission", Some("allow")),
        _ => {}
    }
    if let Some(why) = halt.filter(|_| moment == Moment::UserPromptSubmit) {
        refuse(&mut answer, why);
    }
    if let Some(input) = updated_input {
        // Its documentation has no answer without it, and an answer that is none keeps the tool from being used.
        put(&mut answer, "permission", Some("allow"));
        put(&mut answer, "updated_input", Some(Value::Object(input)));
    }
    put(&mut answer, "additional_context", context);
    if moment == Moment::PreCompact {
        put(&mut answer, "user_message", message.take());
    }
    let mut words = Words::answer(answer, unsaid);
    words.stderr = message.unwrap_or_default();
    words
}

fn refuse(answer: &mut Map<String, Value>, why: String) {
    put(answer, "continue", Some(false));
    put(answer, "user_message", Some(why));
}
