//! Tests of checkpoints: save, list, resume.

use serde_json::{Value, json};

use super::{TestToolHost, test_router};
use crate::router::ToolRouter;

const MINUTE: i64 = 60_000;

#[test]
fn resume_returns_saved_content_and_instructions() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "Fix the login"}));
    router.call_ok("hook_register", json!({"taskId": "T1", "hookType": "default"}));
    let start = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
    let series = router.call_ok("iteration_start", start)["iterationId"].clone();
    router.call_ok("iteration_next", json!({"iterationId": series}));
    let made = router.call_ok(
        "checkpoint_create",
        json!({"taskId": "T1", "trigger": "manual", "executionPhase": "testing", "executionStep": 3,
               "agentContext": {"branch": "fix"}, "draftContent": "fn main() {}", "draftType": "implementation"}),
    );
    assert_eq!((&made["sequence"], &made["trigger"], &made["hasDraft"]), (&json!(1), &json!("manual"), &json!(true)));
    assert_eq!(made["iterationId"], series);
    let resumed = router.call_ok("checkpoint_resume", json!({"taskId": "T1"}));
    assert_eq!(resumed["id"], made["id"]);
    assert_eq!((&resumed["executionPhase"], &resumed["executionStep"]), (&json!("testing"), &json!(3)));
    assert_eq!(
        (&resumed["agentContext"], &resumed["draftContent"]),
        (&json!({"branch": "fix"}), &json!("fn main() {}"))
    );
    assert_eq!((&resumed["iteration"]["iterationNumber"], &resumed["hookCount"]), (&json!(2), &json!(1)));
    insta::assert_snapshot!(resumed["instructions"].as_str().unwrap(), @"
    Continue with T1 (active): Fix the login
    You were in phase testing, at step 3.
    draftContent has your draft.
    IT-5 is at iteration 2 of 5: do its work, then call iteration_validate.
    ");
}

/// Returns the instructions after a resume.
fn resume_instructions(router: &mut ToolRouter<TestToolHost>) -> String {
    let resumed = router.call_ok("checkpoint_resume", json!({"taskId": "T1"}));
    let instructions = resumed["instructions"].as_str().unwrap().to_owned();
    instructions.lines().filter(|line| !line.starts_with("Continue with")).collect::<Vec<_>>().join(" ")
}

#[test]
fn instructions_follow_task_state_and_last_signal() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    let start = json!({"taskId": "T1", "maxIterations": 5, "completionPromises": ["COMPLETE"]});
    let series = router.call_ok("iteration_start", start.clone())["iterationId"].as_str().unwrap().to_owned();
    router.call_ok("checkpoint_create", json!({"taskId": "T1", "trigger": "manual"}));
    let mut after = |said: &str| {
        router.call_ok("iteration_validate", json!({"iterationId": series, "agentOutput": said}));
        resume_instructions(&mut router)
    };
    assert_eq!(after("more"), "IT-4 is at iteration 1 of 5, judged CONTINUE: call iteration_next.");
    let stuck = "`task_update` with state blocked leaves T1 to a person.";
    for word in ["BLOCKED", "ESCALATE"] {
        let expected = format!("IT-4 is at iteration 1 of 5, judged {word}: {stuck}");
        assert_eq!(after(&format!("<promise>{word}</promise>")), expected);
    }
    let complete = "<promise>COMPLETE</promise>";
    assert_eq!(after(complete), "IT-4 is at iteration 1 of 5, judged COMPLETE: call iteration_complete.");
    router.call_ok("task_update", json!({"taskId": "T1", "state": "blocked", "reason": "which login?"}));
    assert_eq!(
        resume_instructions(&mut router),
        "Do not continue yet with T1 (blocked): a \
         A person has to answer first; then `task_update` with state ready unblocks it."
    );
    router.call_ok("task_update", json!({"taskId": "T1", "state": "ready"}));
    let series = router.call_ok("iteration_start", start)["iterationId"].clone();
    router.call_ok("iteration_complete", json!({"iterationId": series, "completionPromise": "COMPLETE"}));
    assert_eq!(resume_instructions(&mut router), "Do no more work on T1 (completed): a There is nothing left to do.");
}

#[test]
fn instructions_inside_a_turn_ask_for_a_person_by_message() {
    let mut router = test_router();
    router.enter_turn("a");
    let start = json!({"taskId": "T1", "maxIterations": 1, "completionPromises": ["COMPLETE"]});
    let series = router.call_ok("iteration_start", start)["iterationId"].clone();
    router.call_ok("checkpoint_create", json!({"taskId": "T1", "trigger": "manual"}));
    router.call_ok("iteration_validate", json!({"iterationId": series, "agentOutput": "more"}));
    let instructions = resume_instructions(&mut router);
    let expected = "judged ESCALATE: end your message with `<promise>BLOCKED</promise>`";
    assert!(instructions.contains(expected), "{instructions}");
}

#[test]
fn checkpoint_list_has_the_newest_five() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    for step in 1..=7 {
        router.call_ok("checkpoint_create", json!({"taskId": "T1", "trigger": "auto_status", "executionStep": step}));
    }
    let listed = router.call_ok("checkpoint_list", json!({"taskId": "T1"}));
    let steps: Vec<&Value> = listed["checkpoints"].as_array().unwrap().iter().map(|it| &it["executionStep"]).collect();
    assert_eq!(
        (steps, &listed["checkpointCount"]),
        (vec![&json!(7), &json!(6), &json!(5), &json!(4), &json!(3)], &json!(5))
    );
    let oldest = listed["checkpoints"][4]["id"].as_str().unwrap();
    assert_eq!(
        router.call_ok("checkpoint_resume", json!({"taskId": "T1", "checkpointId": oldest}))["executionStep"],
        3
    );
}

#[test]
fn expired_checkpoints_are_neither_listed_nor_resumed() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    let first = router.call_ok("checkpoint_create", json!({"taskId": "T1", "trigger": "manual", "expiresIn": 10}));
    router.call_ok("checkpoint_create", json!({"taskId": "T1", "trigger": "error"}));
    router.host.now += 11 * MINUTE;
    assert_eq!(router.call_ok("checkpoint_list", json!({"taskId": "T1"}))["checkpointCount"], 1);
    let error = router.call_error("checkpoint_resume", json!({"taskId": "T1", "checkpointId": first["id"]}));
    assert!(error.contains(" that is kept\nhint: `checkpoint_list` shows"), "{error}");
    router.host.now += 24 * 60 * MINUTE;
    let error = router.call_error("checkpoint_resume", json!({"taskId": "T1"}));
    assert!(error.starts_with("[not_found] T1 has no checkpoint to resume from"), "{error}");
}

#[test]
fn long_draft_is_cut_and_reported() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    let draft = "ä".repeat(50_000);
    let made = router.call_ok("checkpoint_create", json!({"taskId": "T1", "trigger": "manual", "draftContent": draft}));
    assert_eq!(made["draftCutFrom"], 100_000);
    let resumed = router.call_ok("checkpoint_resume", json!({"taskId": "T1"}));
    assert_eq!(resumed["draftContent"].as_str().unwrap().len(), 50 * 1024);
    assert!(resumed["instructions"].as_str().unwrap().contains("(cut: it had 100000 bytes)"));
}

#[test]
fn checkpoint_of_another_task_cannot_be_resumed() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    router.call_ok("task_create", json!({"goal": "b"}));
    let made = router.call_ok("checkpoint_create", json!({"taskId": "T2", "trigger": "manual"}));
    let error = router.call_error("checkpoint_resume", json!({"taskId": "T1", "checkpointId": made["id"]}));
    assert!(error.contains("T1 has no checkpoint CP-"), "{error}");
    let error = router.call_error("checkpoint_create", json!({"taskId": "T1", "trigger": "hook"}));
    assert_eq!(
        error,
        "[invalid] trigger: the text `hook` is not a known word; give one of manual, auto_status, auto_subtask, error"
    );
}
