//! Tests of a series of iterations that an agent runs by itself.

use serde_json::{Value, json};
use windlass_engine::{Event, EventType, Seq, explain_uncounted_claim};
use windlass_process::RunControl;
use windlass_store::{EventFilter, Store};

use super::{TestToolHost, test_router};
use crate::router::ToolRouter;

/// Returns a router with a task and a series on it.
fn router_with_series(more: Value) -> (ToolRouter<TestToolHost>, String) {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "Fix the login"}));
    let mut given = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE", "BLOCKED"]});
    given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let series = router.call_ok("iteration_start", given)["iterationId"].as_str().unwrap().to_owned();
    (router, series)
}

fn command_rule(name: &str, command: &str) -> Value {
    json!({"type": "command", "name": name, "config": {"command": command}})
}

#[test]
fn series_runs_from_start_to_completion() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"title": "Fix the login"}));
    router.call_ok("hook_register", json!({"taskId": "T1", "hookType": "default"}));
    let started = router.call_ok(
        "iteration_start",
        json!({"taskId": "T1", "maxIterations": 10, "completionPromises": ["<promise>COMPLETE</promise>", "blocked"],
               "validationRules": [command_rule("tests", "test -e done")]}),
    );
    let id = &started["iterationId"];
    assert_eq!((&started["iterationNumber"], &started["maxIterations"]), (&json!(1), &json!(10)));
    assert_eq!(started["config"]["completionPromises"], json!(["COMPLETE", "BLOCKED"]));
    assert_eq!(started["config"]["circuitBreakerThreshold"], 3);
    assert_eq!(started["config"]["strict"], false);
    assert_eq!(started["config"]["validationRules"][0]["config"]["command"], "test -e done");
    assert_eq!(router.call_ok("task_get", json!({"taskId": "T1"}))["state"], "active");

    let first = router.call_ok("iteration_validate", json!({"iterationId": id, "agentOutput": "I have begun."}));
    assert_eq!((&first["completionSignal"], &first["validationPassed"]), (&json!("CONTINUE"), &json!(false)));
    assert_eq!((&first["results"][0]["ruleName"], &first["iterationNumber"]), (&json!("tests"), &json!(1)));
    assert_eq!(first["hookDecision"]["action"], "continue");
    assert!(first["hookDecision"]["nextPrompt"].as_str().unwrap().contains("tests"), "{first}");
    assert!(first["feedback"][0].as_str().unwrap().starts_with("tests: "), "{first}");
    let next = router.call_ok("iteration_next", json!({"iterationId": id}));
    assert_eq!((&next["iterationNumber"], &next["remainingIterations"]), (&json!(2), &json!(8)));

    std::fs::write(router.host.directory.path().join("done"), "").unwrap();
    let said = "It works now.\n<promise>COMPLETE</promise>";
    let second = router.call_ok("iteration_validate", json!({"iterationId": id, "agentOutput": said}));
    assert_eq!((&second["completionSignal"], &second["detectedPromise"]), (&json!("COMPLETE"), &json!("COMPLETE")));
    assert_eq!(second["completionPromisesDetected"][0]["content"], "<promise>COMPLETE</promise>");
    let done = router.call_ok("iteration_complete", json!({"iterationId": id, "completionPromise": "COMPLETE"}));
    assert_eq!((&done["taskId"], &done["totalIterations"]), (&json!("T1"), &json!(2)));
    assert_eq!(router.call_ok("task_get", json!({"taskId": "T1"}))["state"], "completed");
    let error = router.call_error("iteration_next", json!({"iterationId": id}));
    assert!(error.contains("is over; T1 is completed\nhint: `task_create` makes another task"), "{error}");
}

#[test]
fn series_arguments_are_checked_at_start() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    let mut start_error = |more: Value| {
        let mut given = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        router.call_error("iteration_start", given)
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
    let errors: Vec<String> = bad.into_iter().map(&mut start_error).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    [invalid] maxIterations: 0 is out of bounds; give a whole number from 1 to 100
    [invalid] maxIterations: 101 is out of bounds; give a whole number from 1 to 100
    [invalid] maxIterations: 2.5 is not a whole number; give a whole number from 1 to 100
    [invalid] completionPromises: has 0 entries; give a list of at least 1, each COMPLETE, BLOCKED or ESCALATE
    [invalid] completionPromises: has COMPLETE twice
    [invalid] completionPromises[0]: the text `DONE` is not a promise; give COMPLETE, BLOCKED or ESCALATE
    [invalid] completionPromises: the text `COMPLETE` is not a list; give a list of at least 1, each COMPLETE, BLOCKED or ESCALATE
    [invalid] circuitBreakerThreshold: 21 is out of bounds; give a whole number from 1 to 20
    [invalid] strict: the text `yes` is not a boolean; give true or false, without quotes
    [not_found] there is no task T9
    hint: `task_list` shows the tasks
    [invalid] validationRules: it is not a list; give a list of rules, `[{type, name, config}]`
    [invalid] validationRules[0].type: no rule has the type `magic`; it is one of command, content_pattern, coverage, file_existence, custom
    [invalid] validationRules[0].config.pattern: this regular expression cannot be used: found open group without closing ')'; write it without look-around and back references, with few repetitions, and escape literal characters, such as `\(`; in JSON a backslash is written twice
    "#);
}

#[test]
fn strict_series_completes_only_after_rules_pass() {
    let (mut router, id) =
        router_with_series(json!({"strict": true, "validationRules": [command_rule("tests", "test -e done")]}));
    let said = json!({"iterationId": id, "agentOutput": "<promise>COMPLETE</promise>"});
    let judged = router.call_ok("iteration_validate", said.clone());
    assert_eq!(judged["completionSignal"], "CONTINUE");
    let complete = json!({"iterationId": id, "completionPromise": "COMPLETE"});
    assert!(router.call_error("iteration_complete", complete.clone()).contains("is strict"));
    std::fs::write(router.host.directory.path().join("done"), "").unwrap();
    assert_eq!(router.call_ok("iteration_validate", said)["completionSignal"], "COMPLETE");
    router.call_ok("iteration_complete", complete);
}

/// Without hooks the tags decide, independent of the rules. A tag that reports a stuck agent always counts.
#[test]
fn promise_tags_decide_completion_signal_without_hooks() {
    let (mut router, id) = router_with_series(json!({"validationRules": [command_rule("tests", "false")]}));
    let mut signal = |said: &str| {
        let judged = router.call_ok("iteration_validate", json!({"iterationId": id, "agentOutput": said}));
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
fn uncounted_promise_is_explained() {
    let (mut router, id) = router_with_series(json!({"completionPromises": ["BLOCKED", "ESCALATE"]}));
    let mut feedback = |said: &str| {
        let judged = router.call_ok("iteration_validate", json!({"iterationId": id, "agentOutput": said}));
        judged["feedback"].clone()
    };
    let unlisted = "COMPLETE does not count: the series was started with BLOCKED, ESCALATE";
    assert_eq!(feedback("<promise>COMPLETE</promise>"), json!([unlisted]));
    let shown = "I write `<promise>COMPLETE</promise>` when I am done.";
    assert_eq!(feedback(shown), json!([explain_uncounted_claim(shown).unwrap()]));
    assert_eq!(feedback("<promise>DONE</promise>"), json!([]));
    assert_eq!(feedback("<promise>BLOCKED</promise>"), json!([]));
    assert_eq!(feedback("more to do"), json!([]));
    let said = json!({"iterationId": id, "agentOutput": "<promise>COMPLETE</promise>"});
    assert_eq!(router.call_ok("iteration_validate", said)["completionSignal"], "CONTINUE");
}

#[test]
fn blocked_promise_blocks_the_task() {
    let (mut router, id) = router_with_series(json!({}));
    let error = router.call_error("iteration_complete", json!({"iterationId": id, "completionPromise": "ESCALATE"}));
    assert_eq!(
        error,
        "[refused] IT-4 was not started with ESCALATE, but with COMPLETE, BLOCKED\n\
         hint: `task_update` with state blocked leaves T1 to a person"
    );
    let done = router.call_ok("iteration_complete", json!({"iterationId": id, "completionPromise": "BLOCKED"}));
    assert_eq!(done["completionPromise"], "BLOCKED");
    assert_eq!(router.call_ok("task_get", json!({"taskId": "T1"}))["state"], "blocked");
    let answer = "hint: `task_update` with state ready unblocks it, once a person has answered";
    let error = router.call_error("iteration_next", json!({"iterationId": id}));
    assert_eq!(error, format!("[refused] IT-4 is over; T1 is blocked\n{answer}"));
    let start = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
    let error = router.call_error("iteration_start", start);
    assert_eq!(error, format!("[refused] no series can be started on T1: it is blocked\n{answer}"));
}

#[test]
fn completed_task_accepts_no_series_and_no_hook() {
    let (mut router, id) = router_with_series(json!({"completionPromises": ["BLOCKED", "COMPLETE"]}));
    router.call_ok("iteration_complete", json!({"iterationId": id, "completionPromise": "COMPLETE"}));
    let hint = "hint: `task_create` makes another task: this one is completed";
    let error = router.call_error("hook_register", json!({"taskId": "T1", "hookType": "default"}));
    assert_eq!(error, format!("[refused] no hook can be registered for T1: it is completed\n{hint}"));
    let start = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
    let error = router.call_error("iteration_start", start);
    assert_eq!(error, format!("[refused] no series can be started on T1: it is completed\n{hint}"));
}

/// The session holds the task, so no other tool can move it.
#[test]
fn blocking_inside_a_turn_needs_the_final_message() {
    let mut router = test_router();
    router.enter_turn("Fix the login");
    let given = json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE", "ESCALATE"]});
    let id = router.call_ok("iteration_start", given)["iterationId"].clone();
    let hint = "hint: end your message with `<promise>BLOCKED</promise>` and say what is needed";
    for promise in ["BLOCKED", "ESCALATE"] {
        let error = router.call_error("iteration_complete", json!({"iterationId": id, "completionPromise": promise}));
        assert!(error.ends_with(hint), "{error}");
    }
    let error = router.call_error("task_update", json!({"taskId": "T1", "state": "blocked", "reason": "which login?"}));
    assert!(error.ends_with(hint), "{error}");
}

#[test]
fn series_does_not_pass_its_maximum() {
    let (mut router, id) = router_with_series(json!({"maxIterations": 2}));
    router.call_ok("iteration_next", json!({"iterationId": id}));
    let judged = router.call_ok("iteration_validate", json!({"iterationId": id, "agentOutput": "more"}));
    assert_eq!(judged["completionSignal"], "ESCALATE");
    assert_eq!(judged["feedback"], json!(["maximum: this was iteration 2 of 2"]));
    let error = router.call_error("iteration_next", json!({"iterationId": id}));
    assert!(error.contains("is at its maximum of 2 iterations"), "{error}");
}

#[test]
fn unknown_and_closed_series_have_distinct_errors() {
    let (mut router, id) = router_with_series(json!({}));
    let error = router.call_error("iteration_next", json!({"iterationId": "IT-1"}));
    assert!(error.starts_with("[not_found] there is no series of iterations IT-1\nhint: `iteration_start`"), "{error}");
    for given in ["IT-../1", "T1", "IT-0", "IT-99999999999999999999", ""] {
        assert!(
            router.call_error("iteration_next", json!({"iterationId": given})).starts_with("[invalid] iterationId: ")
        );
    }
    // Another series replaces it.
    router.call_ok("iteration_start", json!({"taskId": "T1", "maxIterations": 1, "completionPromises": ["COMPLETE"]}));
    let error = router.call_error("iteration_validate", json!({"iterationId": id}));
    assert_eq!(error, "[refused] IT-4 is over; T1 continues in IT-5\nhint: continue with IT-5");
}

#[test]
fn cancelled_call_records_nothing() {
    let (mut router, id) = router_with_series(json!({"validationRules": [command_rule("slow", "sleep 60")]}));
    let before = router.host.store.head().unwrap();
    let control = RunControl::new().with_own_cancel();
    let called_off = std::thread::scope(|scope| {
        scope.spawn(|| control.cancel_own_runs());
        router.call_tool("iteration_validate", json!({"iterationId": id}), &control)
    });
    assert_eq!(called_off.unwrap_err().code.name(), "interrupted");
    assert_eq!(router.host.store.head().unwrap(), before);
}

#[test]
fn inside_a_turn_completing_is_a_claim() {
    let mut router = test_router();
    router.enter_turn("Fix the login");
    let given = json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE"]});
    let id = router.call_ok("iteration_start", given)["iterationId"].clone();
    let done = router.call_ok("iteration_complete", json!({"iterationId": id, "completionPromise": "COMPLETE"}));
    assert_eq!(done["next"], "recorded as a claim: end your turn, and the gates judge it");
    assert_eq!(router.call_ok("task_get", json!({"taskId": "T1"}))["state"], "active");
}

#[test]
fn secret_in_agent_output_is_masked_in_log() {
    let (mut router, series) = router_with_series(json!({}));
    router.call_ok("iteration_validate", json!({"iterationId": series, "agentOutput": "the token is s3cr3t-value"}));
    let filter = EventFilter { types: vec![EventType::ValidationFinished], ..EventFilter::default() };
    let kept = router.host.store.read_events(&filter, Seq::START, 9).unwrap();
    let Event::ValidationFinished(finished) = &kept[0].envelope.event else { panic!("{kept:?}") };
    assert_eq!(finished.output.as_deref(), Some("the token is [secret TOKEN]"));
}
