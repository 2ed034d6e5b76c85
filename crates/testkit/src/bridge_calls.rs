//! Calls of agents' own hook systems in random histories: the calls, their verdicts, and the expected counts.

use std::collections::BTreeMap;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use windlass_engine::{
    BlockingBridgeHook, BridgeCall, BridgeCaller, CallRuling, CallVerdict, Event, EventRecord, HookPoint,
};

/// Generates one of two conversations.
pub fn arbitrary_caller() -> impl Strategy<Value = BridgeCaller> {
    select(vec!["one", "two"])
        .prop_map(|name| BridgeCaller { agent: "claude".to_owned(), conversation: name.to_owned() })
}

/// Generates mostly the stop event, the only one with a count.
pub fn arbitrary_point() -> impl Strategy<Value = HookPoint> {
    prop_oneof![4 => Just(HookPoint::Stop), 1 => Just(HookPoint::PreToolUse)]
}

pub fn arbitrary_call() -> impl Strategy<Value = BridgeCall> {
    (arbitrary_caller(), arbitrary_point(), prop::bool::weighted(0.2)).prop_map(|(caller, point, anew)| BridgeCall {
        caller,
        tool: (!point.is_stop()).then(|| "Bash".to_owned()),
        matched: if point.is_stop() { vec![] } else { vec!["Bash".to_owned()] },
        point,
        tool_input: json!({"command": "ls"}),
        tool_response: json!({}),
        prompt: String::new(),
        output: String::new(),
        about: "ls".to_owned(),
        anew,
        max_retries: 3,
    })
}

pub fn arbitrary_verdict() -> impl Strategy<Value = CallVerdict> {
    let ruling = prop_oneof![5 => Just(CallRuling::Block), 1 => Just(CallRuling::Pass), 1 => Just(CallRuling::Ask)];
    let reason = option::of(select(vec!["the tests fail", "the lint fails"]).prop_map(str::to_owned));
    (ruling, reason, option::of(0..4_u32), 0..5_u32).prop_map(|(ruling, reason, max_send_backs, max_retries)| {
        CallVerdict {
            ruling,
            reason,
            objectors: vec![BlockingBridgeHook { hook: "check".to_owned(), max_send_backs }],
            max_retries,
            told: None,
        }
    })
}

/// Returns how often each conversation was sent back since a fresh start or a pass, from the log alone.
pub fn count_send_backs(log: &[EventRecord]) -> BTreeMap<(String, String), u32> {
    let mut counts = BTreeMap::new();
    for record in log {
        match &record.envelope.event {
            Event::BridgeCalled(called) if called.anew => {
                counts.remove(&(called.agent.clone(), called.conversation.clone()));
            }
            Event::BridgeAnswered(answered) if answered.point.is_stop() && answered.let_go.is_none() => {
                let key = (answered.agent.clone(), answered.conversation.clone());
                match answered.ruling {
                    CallRuling::Block => *counts.entry(key).or_default() += 1,
                    _ => drop(counts.remove(&key)),
                }
            }
            _ => {}
        }
    }
    counts
}
