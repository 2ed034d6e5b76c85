//! Tests of a series of iterations that an agent runs by itself.

use serde_json::{Value, json};
use windlass_engine::{Event, EventType, Seq, explain_uncounted};
use windlass_process::Control;
use windlass_store::{Filter, Store};

use super::{Shop, desk};
use crate::router::ToolRouter;

/// Returns a router with a task and a series on it.
fn started(more: Value) -> (ToolRouter<Shop>, String) {
    let mut desk = desk();
    desk.ok("task_create", json!({"goal": "Fix the login"}));
    let mut given = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE", "BLOCKED"]});
    given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let series = desk.ok("iteration_start", given)["iterationId"].as_str().unwrap().to_owned();
    (desk, series)
}

fn rule(name: &str, command: &str) -> Value {
    json!({"type": "command", "name": name, "config": {"command": command}})
}

#[test]
fn the_flow_goes_to_its_end() {
    let mut desk = desk();
    desk.ok("task_create", json!({"title": "Fix the login"}));
    desk.ok("hook_register", json!({"taskId": "T1", "hookType": "default"}));
    let started = desk.ok(
        "iteration_start",
        json!({"taskId": "T1", "maxIterations": 10, "completionPromises": ["<promise>COMPLETE</promise>", "blocked"],
               "validationRules": [rule("tests", "test -e done")]}),
    );
    let id = &started["iterationId"];
    assert_eq!((&started["iterationNumber"], &started["maxIterations"]), (&json!(1), &json!(10)));
    assert_eq!(started["config"]["completionPromises"], json!(["COMPLETE", "BLOCKED"]));
    assert_eq!(started["config"]["circuitBreakerThreshold"], 3);
    assert_eq!(started["config"]["strict"], false);
    assert_eq!(started["config"]["validationRules"][0]["config"]["command"], "test -e done");
    assert_eq!(desk.ok("task_get", json!({"taskId": "T1"}))["state"], "active");

    let first = desk.ok("iteration_validate", json!({"iterationId": id, "agentOutput": "I have begun."}));
    assert_eq!((&first["completionSignal"], &first["validationPassed"]), (&json!("CONTINUE"), &json!(false)));
    assert_eq!((&first["results"][0]["ruleName"], &first["iterationNumber"]), (&json!("tests"), &json!(1)));
    assert_eq!(first["hookDecision"]["action"], "continue");
    assert!(first["hookDecision"]["nextPrompt"].as_str().unwrap().contains("tests"), "{first}");
    assert!(first["feedback"][0].as_str().unwrap().starts_with("tests: "), "{first}");
    let next = desk.ok("iteration_next", json!({"iterationId": id}));
    assert_eq!((&next["iterationNumber"], &next["remainingIterations"]), (&json!(2), &json!(8)));

    std::fs::write(desk.ground.directory.path().join("done"), "").unwrap();
    let said = "It works now.\n<promise>COMPLETE</promise>";
    let second = desk.ok("iteration_validate", json!({"iterationId": id, "agentOutput": said}));
    assert_eq!((&second["completionSignal"], &second["detectedPromise"]), (&json!("COMPLETE"), &json!("COMPLETE")));
    assert_eq!(second["completionPromisesDetected"][0]["content"], "<promise>COMPLETE</promise>");
    let done = desk.ok("iteration_complete", json!({"iterationId": id, "completionPromise": "COMPLETE"}));
    assert_eq!((&done["taskId"], &done["totalIterations"]), (&json!("T1"), &json!(2)));
    assert_eq!(desk.ok("task_get", json!({"taskId": "T1"}))["state"], "completed");
    let told = desk.fails("iteration_next", json!({"iterationId": id}));
    assert!(told.contains("is over; T1 is completed\nhint: `task_create` makes another task"), "{told}");
}

#[test]
fn what_a_series_is_started_with_is_checked() {
    let mut desk = desk();
    desk.ok("task_create", json!({"goal": "a"}));
    let mut told = |more: Value| {
        let mut given = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        desk.fails("iteration_start", given)
    };
    let bad = [
        json!({"maxIterations": 0}),
        json!({"maxIterations": 101}),
        json!({"maxIterations": 2.5}),
        json!({"completionPromises": []}),
        json!({"completionPromises": ["COMPLETE", "<promise>COMPLETE</promise>"]}),
        json!({"completionPromises": ["DONE"]}),
        json!({"completionPromises": "COMPLETE"}),
        json!({"circuitBreakerThreshold": 21}),
        json!({"strict": "yes"}),
        json!({"taskId": "T9"}),
        json!({"validationRules": {}}),
        json!({"validationRules": [{"type": "magic", "name": "a", "config": {}}]}),
        json!({"validationRules": [{"type": "content_pattern", "name": "a",
                                    "config": {"pattern": "(", "target": "agent_output"}}]}),
    ];
    let told: Vec<String> = bad.into_iter().map(&mut told).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    [invalid] maxIterations: 0 is out of bounds; give a whole number from 1 to 100
    [invalid] maxIterations: 101 is out of bounds; give a whole number from 1 to 100
    [invalid] maxIterations: 2.5 is no whole number; give a whole number from 1 to 100
    [invalid] completionPromises: has 0 entries; give a list of at least 1, each COMPLETE, BLOCKED or ESCALATE
    [invalid] completionPromises: has COMPLETE twice
    [invalid] completionPromises[0]: the text `DONE` is no promise; give COMPLETE, BLOCKED or ESCALATE
    [invalid] completionPromises: the text `COMPLETE` is no list; give a list of at least 1, each COMPLETE, BLOCKED or ESCALATE
    [invalid] circuitBreakerThreshold: 21 is out of bounds; give a whole number from 1 to 20
    [invalid] strict: the text `yes` is no boolean; give true or false, without quotes
    [not_found] there is no task T9
    hint: `task_list` shows the tasks
    [invalid] validationRules: it is not a list; give a list of rules, `[{type, name, config}]`
    [invalid] validationRules[0].type: no rule has the type `magic`; it is one of command, content_pattern, coverage, file_existence, custom
    [invalid] validationRules[0].config.pattern: this regular expression cannot be used: found open group without closing ')'; write it without look-around and back references, with few repetitions, and escape what is meant as it stands, such as `\(`; in JSON a backslash is written twice
    "#);
}

#[test]
fn a_strict_series_is_complete_when_its_rules_pass() {
    let (mut desk, id) = started(json!({"strict": true, "validationRules": [rule("tests", "test -e done")]}));
    let said = json!({"iterationId": id, "agentOutput": "<promise>COMPLETE</promise>"});
    let judged = desk.ok("iteration_validate", said.clone());
    assert_eq!(judged["completionSignal"], "CONTINUE");
    let complete = json!({"iterationId": id, "completionPromise": "COMPLETE"});
    assert!(desk.fails("iteration_complete", complete.clone()).contains("is strict"));
    std::fs::write(desk.ground.directory.path().join("done"), "").unwrap();
    assert_eq!(desk.ok("iteration_validate", said)["completionSignal"], "COMPLETE");
    desk.ok("iteration_complete", complete);
}

/// Without hooks the tags decide, independent of the rules. A tag that reports a stuck agent always counts.
#[test]
fn without_hooks_the_promises_decide() {
    let (mut desk, id) = started(json!({"validationRules": [rule("tests", "false")]}));
    let mut signal = |said: &str| {
        let judged = desk.ok("iteration_validate", json!({"iterationId": id, "agentOutput": said}));
        assert_eq!(judged["hookDecision"], Value::Null);
        judged["completionSignal"].as_str().unwrap().to_owned()
    };
    assert_eq!(signal("<promise>COMPLETE</promise>"), "COMPLETE");
    assert_eq!(signal("<promise>ESCALATE</promise>"), "ESCALATE");
    assert_eq!(signal("<promise>BLOCKED</promise>\n<promise>COMPLETE</promise>"), "BLOCKED");
    assert_eq!(signal("I write `<promise>COMPLETE</promise>` when I am done."), "CONTINUE");
    assert_eq!(signal("nothing"), "CONTINUE");
}

#[test]
fn a_promise_that_does_not_count_is_told() {
    let (mut desk, id) = started(json!({"completionPromises": ["BLOCKED", "ESCALATE"]}));
    let mut feedback = |said: &str| {
        let judged = desk.ok("iteration_validate", json!({"iterationId": id, "agentOutput": said}));
        judged["feedback"].clone()
    };
    let unlisted = "COMPLETE does not count: the series was started with BLOCKED, ESCALATE";
    assert_eq!(feedback("<promise>COMPLETE</promise>"), json!([unlisted]));
    let shown = "I write `<promise>COMPLETE</promise>` when I am done.";
    assert_eq!(feedback(shown), json!([explain_uncounted(shown).unwrap()]));
    assert_eq!(feedback("<promise>DONE</promise>"), json!([]));
    assert_eq!(feedback("<promise>BLOCKED</promise>"), json!([]));
    assert_eq!(feedback("more to do"), json!([]));
    let said = json!({"iterationId": id, "agentOutput": "<promise>COMPLETE</promise>"});
    assert_eq!(desk.ok("iteration_validate", said)["completionSignal"], "CONTINUE");
}

#[test]
fn blocked_blocks_the_task() {
    let (mut desk, id) = started(json!({}));
    let told = desk.fails("iteration_complete", json!({"iterationId": id, "completionPromise": "ESCALATE"}));
    assert_eq!(
        told,
        "[refused] IT-4 was not started with ESCALATE, but with COMPLETE, BLOCKED\n\
         hint: `task_update` with state blocked leaves T1 to a person"
    );
    let done = desk.ok("iteration_complete", json!({"iterationId": id, "completionPromise": "BLOCKED"}));
    assert_eq!(done["completionPromise"], "BLOCKED");
    assert_eq!(desk.ok("task_get", json!({"taskId": "T1"}))["state"], "blocked");
    let answer = "hint: `task_update` with state ready unblocks it, once a person has answered";
    let told = desk.fails("iteration_next", json!({"iterationId": id}));
    assert_eq!(told, format!("[refused] IT-4 is over; T1 is blocked\n{answer}"));
    let start = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
    let told = desk.fails("iteration_start", start);
    assert_eq!(told, format!("[refused] no series can be started on T1: it is blocked\n{answer}"));
}

#[test]
fn on_a_task_that_is_over_nothing_is_begun() {
    let (mut desk, id) = started(json!({"completionPromises": ["BLOCKED", "COMPLETE"]}));
    desk.ok("iteration_complete", json!({"iterationId": id, "completionPromise": "COMPLETE"}));
    let hint = "hint: `task_create` makes another task: there is nothing left to do on this one";
    let told = desk.fails("hook_register", json!({"taskId": "T1", "hookType": "default"}));
    assert_eq!(told, format!("[refused] no hook can be registered for T1: it is completed\n{hint}"));
    let start = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
    let told = desk.fails("iteration_start", start);
    assert_eq!(told, format!("[refused] no series can be started on T1: it is completed\n{hint}"));
}

/// The session holds the task, so no other tool can move it.
#[test]
fn inside_a_turn_a_person_is_asked_for_by_the_message() {
    let mut desk = desk();
    desk.enter("Fix the login");
    let given = json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE", "ESCALATE"]});
    let id = desk.ok("iteration_start", given)["iterationId"].clone();
    let hint = "hint: end your message with `<promise>BLOCKED</promise>` and say what is needed";
    for promise in ["BLOCKED", "ESCALATE"] {
        let told = desk.fails("iteration_complete", json!({"iterationId": id, "completionPromise": promise}));
        assert!(told.ends_with(hint), "{told}");
    }
    let told = desk.fails("task_update", json!({"taskId": "T1", "state": "blocked", "reason": "which login?"}));
    assert!(told.ends_with(hint), "{told}");
}

#[test]
fn the_maximum_is_named_and_not_passed() {
    let (mut desk, id) = started(json!({"maxIterations": 2}));
    desk.ok("iteration_next", json!({"iterationId": id}));
    let judged = desk.ok("iteration_validate", json!({"iterationId": id, "agentOutput": "more"}));
    assert_eq!(judged["completionSignal"], "ESCALATE");
    assert_eq!(judged["feedback"], json!(["maximum: this was iteration 2 of 2"]));
    let told = desk.fails("iteration_next", json!({"iterationId": id}));
    assert!(told.contains("is at its maximum of 2 iterations"), "{told}");
}

#[test]
fn ids_that_name_no_series_are_told_apart() {
    let (mut desk, id) = started(json!({}));
    let told = desk.fails("iteration_next", json!({"iterationId": "IT-1"}));
    assert!(told.starts_with("[not_found] there is no series of iterations IT-1\nhint: `iteration_start`"), "{told}");
    for given in ["IT-../1", "T1", "IT-0", "IT-99999999999999999999", ""] {
        assert!(desk.fails("iteration_next", json!({"iterationId": given})).starts_with("[invalid] iterationId: "));
    }
    // Another series replaces it.
    desk.ok("iteration_start", json!({"taskId": "T1", "maxIterations": 1, "completionPromises": ["COMPLETE"]}));
    let told = desk.fails("iteration_validate", json!({"iterationId": id}));
    assert_eq!(told, "[refused] IT-4 is over; T1 goes on in IT-5\nhint: go on with IT-5");
}

#[test]
fn a_call_that_is_called_off_records_nothing() {
    let (mut desk, id) = started(json!({"validationRules": [rule("slow", "sleep 60")]}));
    let before = desk.ground.store.head().unwrap();
    let control = Control::new().apart();
    let called_off = std::thread::scope(|scope| {
        scope.spawn(|| control.call_off());
        desk.call("iteration_validate", json!({"iterationId": id}), &control)
    });
    assert_eq!(called_off.unwrap_err().code.name(), "interrupted");
    assert_eq!(desk.ground.store.head().unwrap(), before);
}

#[test]
fn inside_a_turn_completing_is_a_claim() {
    let mut desk = desk();
    desk.enter("Fix the login");
    let given = json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE"]});
    let id = desk.ok("iteration_start", given)["iterationId"].clone();
    let done = desk.ok("iteration_complete", json!({"iterationId": id, "completionPromise": "COMPLETE"}));
    assert_eq!(done["next"], "recorded as a claim: end your turn, and the gates judge it");
    assert_eq!(desk.ok("task_get", json!({"taskId": "T1"}))["state"], "active");
}

#[test]
fn a_secret_that_an_agent_says_is_not_kept() {
    let (mut desk, series) = started(json!({}));
    desk.ok("iteration_validate", json!({"iterationId": series, "agentOutput": "the token is s3cr3t-value"}));
    let filter = Filter { types: vec![EventType::ValidationFinished], ..Filter::default() };
    let kept = desk.ground.store.read(&filter, Seq::START, 9).unwrap();
    let Event::ValidationFinished(finished) = &kept[0].envelope.event else { panic!("{kept:?}") };
    assert_eq!(finished.output.as_deref(), Some("the token is [secret TOKEN]"));
}
