//! Actions that hooks request in random histories, and the order in which they apply.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use windlass_engine::{ActionRequest, EffectId, Event, EventRecord, Seq};

/// Generates up to three actions, most of which can be applied in some state.
pub fn arbitrary_actions() -> impl Strategy<Value = Vec<ActionRequest>> {
    prop_oneof![3 => Just(vec![]), 2 => vec(prop_oneof![5 => task_changes(), 2 => task_creations(), 1 => impossible_actions()], 1..4)]
}

fn action_request(kind: &str, payload: Value) -> ActionRequest {
    ActionRequest { kind: kind.to_owned(), payload }
}

/// Generates a change of a task. Failing is left out: only that change tells an unready task from a ready one.
fn task_changes() -> impl Strategy<Value = ActionRequest> {
    let change = select(vec!["start", "complete", "block", "unblock", "ready", "set-labels", "addLabels"]);
    (1..=4_u64, change).prop_map(|(task, change)| {
        let payload = match change {
            "block" => json!({"reason": "asked"}),
            "set-labels" | "addLabels" => json!({"labels": ["agent"]}),
            _ => json!({}),
        };
        action_request("update_task", json!({"taskId": format!("T{task}"), "action": change, "payload": payload}))
    })
}

fn task_creations() -> impl Strategy<Value = ActionRequest> {
    (0..=5_u8, 0..=3_u64, any::<bool>()).prop_map(|(priority, parent, bug)| {
        let kind = if bug { json!("bug") } else { Value::Null };
        let parent = if parent == 0 { Value::Null } else { json!(format!("T{parent}")) };
        action_request(
            "createTask",
            json!({"goal": "more", "priority": priority, "parentTaskId": parent, "type": kind}),
        )
    })
}

fn impossible_actions() -> impl Strategy<Value = ActionRequest> {
    select(vec![
        action_request("dance", json!({})),
        action_request("execute_workflow", json!({"workflow": "w"})),
        action_request("create_task", json!({"labels": []})),
        action_request("create_task", json!({"goal": "x", "dependsOn": ["T999"]})),
        action_request("create_task", json!({"goal": "x", "urgency": 1})),
        action_request("log", json!({"type": "Review.Passed"})),
        action_request("update_task", json!({"taskId": "T999", "action": "start"})),
        action_request("log", json!({"type": "task_completed", "nodeId": "T1", "data": {"artifacts": []}})),
        action_request("log", json!({"type": "auto_label_suggestion", "data": {"labels": ["x"], "keywords": []}})),
        action_request("log", json!({"type": "review.passed", "nodeId": "T1", "data": {"score": 3}})),
        action_request("log", Value::Null),
    ])
}

/// Returns the actions that the hooks of one event have requested so far, in the order in which the hooks ended.
pub fn requested_actions(log: &[EventRecord], seq: Seq) -> Vec<ActionRequest> {
    let is_of_event = |effect: &EffectId| effect.seq == seq;
    let finished = log.iter().filter_map(|record| match &record.envelope.event {
        Event::HookFinished(finished) if is_of_event(&finished.effect) => Some(&finished.actions),
        _ => None,
    });
    finished.flatten().cloned().collect()
}
