//! Tests that the tools for tasks match the commands.

use serde_json::{Value, json};
use windlass_engine::TaskTypes;

use super::test_router;

#[test]
fn task_is_created_read_updated_and_moved() {
    let mut router = test_router();
    let made = router.call_ok("task_create", json!({"title": "Fix the login", "labels": ["bug"], "priority": 0}));
    assert_eq!((&made["id"], &made["state"], &made["priority"]), (&json!("T1"), &json!("ready"), &json!(0)));
    let waits = router.call_ok("task_create", json!({"goal": "Release", "dependsOn": ["T1"], "description": "1.0"}));
    assert_eq!((&waits["state"], &waits["body"]), (&json!("created"), &json!("1.0")));
    assert_eq!(router.call_ok("task_next", json!({}))["id"], "T1");

    let changed =
        router.call_ok("task_update", json!({"taskId": "T1", "addLabels": ["urgent"], "removeLabels": ["bug"]}));
    assert_eq!(changed["labels"], json!(["urgent"]));
    assert_eq!(router.call_ok("task_update", json!({"taskId": "T1", "state": "active"}))["state"], "active");
    let blocked = router.call_ok("task_update", json!({"taskId": "T1", "state": "blocked", "reason": "which server?"}));
    assert_eq!(blocked["blocked"]["reason"], "which server?");
    assert_eq!(router.call_ok("task_update", json!({"taskId": "T1", "state": "ready"}))["state"], "ready");

    router.call_ok("note_add", json!({"taskId": "T1", "text": "the parser is generated", "kind": "tip"}));
    let whole = router.call_ok("task_get", json!({"taskId": "T1"}));
    assert_eq!(whole["notes"][0]["text"], "the parser is generated");
    assert_eq!(whole["edges"][0]["fromId"], "T2");
    assert_eq!(whole["goal"], "Fix the login");
}

#[test]
fn refused_update_names_cause_and_hint() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    router.call_ok("task_create", json!({"goal": "b", "dependsOn": ["T1"]}));
    let mut check =
        |arguments: Value, expected: &str| assert_eq!(router.call_error("task_update", arguments), expected);
    check(json!({"taskId": "T2", "state": "active"}), "[refused] T2 waits for T1\nhint: complete T1 first");
    check(
        json!({"taskId": "T1", "state": "ready"}),
        "[refused] cannot unblock T1: it is ready, and that is possible only from blocked\n\
         hint: `task_get` shows the state of T1",
    );
    check(
        json!({"taskId": "T1", "state": "blocked"}),
        "[invalid] reason: is missing; say why the task is blocked, and what would help",
    );
    check(
        json!({"taskId": "T1", "goal": "c", "state": "active"}),
        "[invalid] state: other fields are given too; move the task in a call of its own",
    );
    check(json!({"taskId": "T1"}), "[invalid] taskId: nothing else is given; give the fields to change");
    check(
        json!({"taskId": "T1", "reason": "why"}),
        "[invalid] reason: only a task that is blocked has one; give it with state `blocked`",
    );
}

#[test]
fn task_list_is_paged() {
    let mut router = test_router();
    for number in 1..=5 {
        router.call_ok("task_create", json!({"goal": format!("task {number}\nmore of it"), "labels": ["x"]}));
    }
    let first = router.call_ok("task_list", json!({"limit": 2}));
    assert_eq!(first["next"], "T2");
    assert_eq!(
        first["tasks"][0],
        json!({"id": "T1", "goal": "task 1", "state": "ready", "priority": 2, "labels": ["x"]})
    );
    let rest = router.call_ok("task_list", json!({"after": first["next"], "label": "x"}));
    assert_eq!((rest["tasks"].as_array().unwrap().len(), &rest["next"]), (3, &Value::Null));
    assert_eq!(router.call_ok("task_list", json!({"limit": 5}))["next"], Value::Null);
    assert_eq!(router.call_ok("task_list", json!({"state": "blocked"}))["tasks"], json!([]));
    assert_eq!(router.call_ok("task_list", json!({"state": "all"}))["tasks"].as_array().unwrap().len(), 5);
}

#[test]
fn next_task_without_ready_task_is_null() {
    let reply = test_router().call_ok("task_next", json!({}));
    assert_eq!(reply, json!({"id": null, "hint": "nothing is ready; `task_list` shows what waits"}));
}

#[test]
fn tools_enforce_task_types() {
    let mut router = test_router();
    let own = Some(["command:true".to_owned()].into());
    let types = [("product", own), ("infra", Some(["ann".to_owned()].into())), ("open", None)];
    router.host.types = TaskTypes::new(types.map(|(name, allowed)| (name.parse().unwrap(), allowed)));
    assert_eq!(
        router.call_error("task_create", json!({"goal": "a", "type": "prodct"})),
        "[invalid] there is no type `prodct`; did you mean `product`? There are infra, open and product"
    );
    router.call_ok("task_create", json!({"goal": "a", "type": "infra", "priority": 0}));
    router.call_ok("task_create", json!({"goal": "b", "type": "product", "priority": 1}));
    let refused = router.call_error("task_update", json!({"taskId": "T1", "type": "legal"}));
    assert_eq!(refused, "[invalid] there is no type `legal`; there are infra, open and product");
    // Outside a session the caller is unknown.
    let nothing = "nothing is ready that is open to all; T1 is of the type `infra`, and only `ann` may";
    assert_eq!(router.call_ok("task_next", json!({})), json!({"id": null, "hint": nothing}));
    router.enter_turn("Fix the login");
    assert_eq!(router.call_ok("task_next", json!({}))["id"], "T2");
    assert_eq!(
        router.call_error("task_update", json!({"taskId": "T1", "state": "active"})),
        "[refused] T1 is of the type `infra`, on which `command:true` may not work; only `ann` may\n\
         hint: `task_next` names one that you may work on"
    );
}

#[test]
fn inside_a_turn_a_note_and_a_claim_are_for_its_task() {
    let mut router = test_router();
    assert!(
        router
            .call_error("note_add", json!({"text": "x"}))
            .starts_with("[invalid] taskId: is missing, and this is not a turn")
    );
    let outside = router.call_error("session_complete", json!({}));
    assert!(outside.contains("`iteration_complete` ends the iterations that you have started"), "{outside}");
    router.enter_turn("Fix the login");
    assert_eq!(router.call_ok("note_add", json!({"text": "x"}))["taskId"], "T1");
    let claimed = router.call_ok("session_complete", json!({"result": "it works", "artifacts": ["src/login.rs"]}));
    assert_eq!((&claimed["session"], &claimed["taskId"]), (&json!("main"), &json!("T1")));
    let task = router.call_ok("task_get", json!({"taskId": "T1"}));
    // A claim completes nothing: the gates do.
    assert_eq!((&task["state"], &task["claim"]["result"]), (&json!("active"), &json!("it works")));
}
