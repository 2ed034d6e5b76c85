//! Calls of agents' own hook systems and their answers, in words.

use crate::conversations;
use windlass_engine::{CallRuling, Event, payload};
use windlass_text as text;

use crate::tone::TextTone;

/// Summarizes an event of the bridge; returns `None` for any other.
pub fn summarize_bridge_event(event: &Event) -> Option<String> {
    Some(match event {
        Event::BridgeCalled(called) => {
            format!("{} at {}", format_caller(&called.agent, &called.conversation), format_call(called))
        }
        Event::BridgeAnswered(answered) => {
            let why = answered.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let told = answered.told.as_ref().map(|told| format!("; told: {told}")).unwrap_or_default();
            let caller = format_caller(&answered.agent, &answered.conversation);
            format!("{caller} at {}: {}{why}{told}", answered.point, describe_answer(answered).1)
        }
        _ => return None,
    })
}

/// Formats the point of a call, its tool and its subject.
pub fn format_call(called: &payload::BridgeCalled) -> String {
    let tool = called.tool.as_ref().map(|tool| format!(", {tool}")).unwrap_or_default();
    let about = called.about.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
    format!("{}{tool}{about}", called.point)
}

/// Describes the answer to a call, without the reason.
pub fn describe_answer(answered: &payload::BridgeAnswered) -> (TextTone, String) {
    let payload::BridgeAnswered { let_go, ruling, retries, max_retries, .. } = answered;
    match (let_go, ruling) {
        (Some(why), _) => (TextTone::Warning, format!("let through, {why}")),
        (None, CallRuling::Block) if answered.point.sends_back() => {
            (TextTone::Warning, format!("sent back ({retries} of {max_retries})"))
        }
        (None, CallRuling::Block) => (TextTone::Warning, "blocked".to_owned()),
        (None, CallRuling::Ask) => (TextTone::Warning, "a person is asked".to_owned()),
        (None, CallRuling::Allow) => (TextTone::Good, "allowed".to_owned()),
        (None, CallRuling::Pass) => (TextTone::Good, "passed".to_owned()),
    }
}

/// Formats the agent and the short id of its conversation.
pub fn format_caller(agent: &str, conversation: &str) -> String {
    format!("{} {}", text::clean_line(agent), conversations::shorten_conversation_id(conversation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_are_shortened() {
        let check = |id: &str, expected: &str| assert_eq!(conversations::shorten_conversation_id(id), expected);
        check("0b7c2f6e-43d1-4d4e-9a52-0d3c9a5f5a11", "0b7c2f6e-43d1");
        check("20261115_1", "20261115_1");
        check("0b7c2f6e-43d1-4d4e-9a52-0d3c9a5f5a11/a81fd", "0b7c2f6e-43d1/a81fd");
        check("\u{1b}[31m\u{202e}äöü äöü äöü", "\\u{1b}[31m\\u{");
        check("", "");
    }
}
