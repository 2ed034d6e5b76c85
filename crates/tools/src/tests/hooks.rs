//! Tests of stop hooks: register, evaluate, list, clear.

use serde_json::{Value, json};

use super::{TestToolHost, test_router};
use crate::router::ToolRouter;
use crate::validation::{AgentCommandPermission, ExecutionTrust};

/// Returns a router with a task, these hooks, and a series with these rules.
fn router_with_hooks(hooks: &[Value], rules: Value) -> (ToolRouter<TestToolHost>, String) {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "Fix the login"}));
    for hook in hooks {
        let mut given = hook.clone();
        given["taskId"] = json!("T1");
        router.call_ok("hook_register", given);
    }
    let started = router.call_ok(
        "iteration_start",
        json!({"taskId": "T1", "maxIterations": 9, "completionPromises": ["COMPLETE", "BLOCKED", "ESCALATE"],
               "validationRules": rules}),
    );
    let id = started["iterationId"].as_str().unwrap().to_owned();
    (router, id)
}

fn output_pattern_rules(pattern: &str) -> Value {
    let config = json!({"pattern": pattern, "target": "agent_output"});
    json!([{"type": "content_pattern", "name": "says", "config": config}])
}

#[track_caller]
fn check_ruling(router: &mut ToolRouter<TestToolHost>, id: &str, said: &str, expected: (&str, &str)) {
    let answer = router.call_ok("hook_evaluate", json!({"iterationId": id, "agentOutput": said}));
    assert_eq!((answer["hookId"].as_str().unwrap(), answer["action"].as_str().unwrap()), expected, "{answer}");
}

#[test]
fn registration_returns_all_fields() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    let made =
        router.call_ok("hook_register", json!({"taskId": "T1", "hookType": "default", "metadata": {"why": "safety"}}));
    assert_eq!(
        made,
        json!({"hookId": "HOOK-3", "taskId": "T1", "hookType": "default", "enabled": true, "metadata": {"why": "safety"}})
    );
    router.call_ok("hook_register", json!({"taskId": "T1", "hookType": "promise", "enabled": false}));
    assert_eq!(
        router.call_ok("hook_list", json!({"taskId": "T1"})),
        json!({"taskId": "T1", "hookCount": 2, "hooks": [
            {"id": "HOOK-3", "enabled": true, "metadata": {"type": "default", "why": "safety"}},
            {"id": "HOOK-4", "enabled": false, "metadata": {"type": "promise"}},
        ]})
    );
    assert_eq!(router.call_ok("hook_clear", json!({"taskId": "T1"})), json!({"taskId": "T1", "hooksCleared": 2}));
    assert_eq!(router.call_ok("hook_clear", json!({"taskId": "T1"}))["hooksCleared"], 0);
    assert_eq!(router.call_ok("hook_list", json!({"taskId": "T1"}))["hooks"], json!([]));
}

#[test]
fn hook_list_has_commands_and_rules() {
    let rules = json!([{"when": "iteration > 3", "action": "escalate"}]);
    let hooks = [
        json!({"hookType": "command", "command": "./check"}),
        json!({"hookType": "rules", "rules": rules}),
        json!({"hookType": "rules", "rules": {"template": "checkpoint-every", "every": 3}}),
        json!({"hookType": "rules", "rules": [{"action": "continue", "reason": "x".repeat(5000)}]}),
    ];
    let (mut router, _) = router_with_hooks(&hooks, json!([]));
    let listed = &router.call_ok("hook_list", json!({"taskId": "T1"}))["hooks"];
    assert_eq!((&listed[0]["command"], listed[0].get("rules")), (&json!("./check"), None));
    assert_eq!((&listed[1]["rules"], listed[1].get("command")), (&rules, None));
    assert_eq!(listed[2]["rules"], json!({"template": "checkpoint-every", "every": 3}));
    assert_eq!(listed[3]["rules"], "5035 bytes of rules");
}

#[test]
fn invalid_registration_names_the_field() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    let bad = [
        json!({"hookType": "custom"}),
        json!({"hookType": "command"}),
        json!({"hookType": "rules"}),
        json!({"hookType": "default", "command": "true"}),
        json!({"hookType": "promise", "rules": "tdd"}),
        json!({"hookType": "rules", "rules": []}),
        json!({"hookType": "rules", "rules": "tddd"}),
        json!({"hookType": "rules", "rules": [{"when": "itteration > 3", "action": "escalate"}]}),
        json!({"hookType": "rules", "rules": [{"when": "iteration > 3", "action": "stop"}]}),
        json!({"hookType": "default", "metadata": "x"}),
    ];
    let mut errors = Vec::new();
    for mut given in bad {
        given["taskId"] = json!("T1");
        errors.push(router.call_error("hook_register", given));
    }
    insta::assert_snapshot!(errors.join("\n"), @r#"
    [invalid] hookType: the text `custom` is not a known word; give one of default, validation, promise, command, rules
    [invalid] command: is missing; give the command that decides
    [invalid] rules: is missing; give the name of a template (tdd, security-remediation, checkpoint-every) or a list such as [{"when": "iteration > 3", "action": "escalate"}]
    [invalid] command: only hookType `command` has one; leave it out, or give that type
    [invalid] rules: only hookType `rules` has them; leave them out, or give that type
    [invalid] rules: is an empty list; give at least one rule
    [invalid] rules: name no template that can be used: `template`: unknown variant `tddd`, expected one of `tdd`, `security-remediation`, `checkpoint-every`
    [invalid] rules[0].when: unknown name `itteration`; did you mean `iteration`?
    [invalid] rules[0].action cannot be read: unknown variant `stop`, expected one of `complete`, `continue`, `escalate`
    [invalid] metadata: the text `x` is not an object; give an object
    "#);
}

#[test]
fn evaluation_without_hooks_records_nothing() {
    let (mut router, id) = router_with_hooks(&[], json!([]));
    let head = router.host.store.head().unwrap();
    let answer =
        router.call_ok("hook_evaluate", json!({"iterationId": id, "agentOutput": "<promise>COMPLETE</promise>"}));
    assert_eq!(
        answer,
        json!({"hookId": "default", "taskId": "T1", "iteration": 1, "action": "continue",
               "reason": "No hooks registered for this task", "nextPrompt": null, "checkpointCreated": false,
               "metadata": {}})
    );
    assert_eq!(router.host.store.head().unwrap(), head);
}

#[test]
fn first_final_ruling_counts_else_the_last_one() {
    let hooks = ["validation", "promise", "default"].map(|kind| json!({"hookType": kind}));
    let (mut router, id) = router_with_hooks(&hooks, output_pattern_rules("all green"));
    check_ruling(&mut router, &id, "all green", ("HOOK-3", "complete"));
    check_ruling(&mut router, &id, "<promise>ESCALATE</promise>", ("HOOK-4", "escalate"));
    check_ruling(&mut router, &id, "red", ("HOOK-5", "continue"));
}

#[test]
fn disabled_hook_is_skipped() {
    let hooks = [json!({"hookType": "promise"}), json!({"hookType": "validation", "enabled": false})];
    let (mut router, id) = router_with_hooks(&hooks, output_pattern_rules("all green"));
    check_ruling(&mut router, &id, "all green", ("HOOK-3", "continue"));
}

#[test]
fn promises_decide_if_every_hook_is_disabled() {
    let (mut router, id) =
        router_with_hooks(&[json!({"hookType": "validation", "enabled": false})], output_pattern_rules("all green"));
    let judged =
        router.call_ok("iteration_validate", json!({"iterationId": id, "agentOutput": "<promise>COMPLETE</promise>"}));
    assert_eq!((&judged["completionSignal"], judged.get("hookDecision")), (&json!("COMPLETE"), None));
}

#[test]
fn checkpoint_of_hook_includes_the_draft() {
    let check = |data: Value, draft: &str, kind: Value, context: Value| {
        let rules = json!([{"action": "continue", "reason": "go on", "checkpointData": data}]);
        let (mut router, id) = router_with_hooks(&[json!({"hookType": "rules", "rules": rules})], json!([]));
        router.call_ok("hook_evaluate", json!({"iterationId": id, "draftContent": "shown", "draftType": "design"}));
        let kept = router.call_ok("checkpoint_resume", json!({"taskId": "T1"}));
        assert_eq!((&kept["draftContent"], &kept["draftType"]), (&json!(draft), &kind));
        assert_eq!(kept["agentContext"], context);
        let judged = router.call_ok("iteration_validate", json!({"iterationId": id}));
        assert_eq!(judged["checkpointCreated"], true);
    };
    check(json!({"executionPhase": "testing"}), "shown", json!("design"), Value::Null);
    check(json!({"branch": "fix"}), "shown", json!("design"), json!({"branch": "fix"}));
    check(json!({"draftContent": "own"}), "own", Value::Null, Value::Null);
}

/// Results of an earlier call would let work pass that is broken by now.
#[test]
fn hooks_see_fresh_results() {
    let (mut router, id) = router_with_hooks(&[json!({"hookType": "validation"})], output_pattern_rules("all green"));
    check_ruling(&mut router, &id, "all green", ("HOOK-3", "complete"));
    check_ruling(&mut router, &id, "red again", ("HOOK-3", "continue"));
    let judged = router.call_ok("iteration_validate", json!({"iterationId": id, "agentOutput": "all green"}));
    assert_eq!(
        (&judged["completionSignal"], &judged["hookDecision"]["hookId"]),
        (&json!("COMPLETE"), &json!("HOOK-3"))
    );
}

#[test]
fn rules_look_at_the_whole_context() {
    let rules = json!([
        {"when": "'src/auth.rs' in filesModified and draftType == 'implementation'", "action": "complete",
         "reason": "{{ filesModified | length }} files"},
        {"allOf": ["executionPhase == 'testing'", "iteration == 1"], "action": "escalate", "reason": "{{ taskId }}"},
        {"action": "continue", "reason": "go on", "checkpointData": {"executionPhase": "testing"}},
    ]);
    let (mut router, id) = router_with_hooks(&[json!({"hookType": "rules", "rules": rules})], json!([]));
    let answer = router.call_ok("hook_evaluate", json!({"iterationId": id}));
    assert_eq!((&answer["action"], &answer["checkpointCreated"]), (&json!("continue"), &json!(true)));
    let answer = router.call_ok("hook_evaluate", json!({"iterationId": id}));
    assert_eq!((&answer["action"], &answer["reason"]), (&json!("escalate"), &json!("T1")));
    let given = json!({"iterationId": id, "filesModified": ["src/auth.rs"], "draftContent": "x",
                       "draftType": "implementation"});
    let answer = router.call_ok("hook_evaluate", given);
    assert_eq!((&answer["action"], &answer["reason"]), (&json!("complete"), &json!("1 files")));
}

#[test]
fn command_hook_decides_by_json_answer_or_exit_code() {
    let check = |command: &str, action: &str, reason: &str, prompt: Value| {
        let (mut router, id) = router_with_hooks(&[json!({"hookType": "command", "command": command})], json!([]));
        let answer = router.call_ok("hook_evaluate", json!({"iterationId": id, "agentOutput": "hello"}));
        let said = (answer["action"].as_str().unwrap(), answer["reason"].as_str().unwrap(), &answer["nextPrompt"]);
        assert_eq!(said, (action, reason, &prompt), "{command}");
    };
    check("true", "complete", "the command agrees", Value::Null);
    let answer = r#"echo '{"action": "continue", "reason": "not yet", "nextPrompt": "run the tests"}'"#;
    check(answer, "continue", "not yet", json!("run the tests"));
    check("grep -q '\"agentOutput\":\"hello\"' && echo said >&2 && exit 2", "continue", "said", json!("said"));
    check(r#"echo '{"action": "escalate", "reason": "a person"}'"#, "escalate", "a person", Value::Null);
    check("echo broken >&2; exit 1", "escalate", "the hook failed: exit 1: broken", Value::Null);
}

#[test]
fn command_hook_needs_permission() {
    let mut router = test_router();
    router.call_ok("task_create", json!({"goal": "a"}));
    let given = json!({"taskId": "T1", "hookType": "command", "command": "./check"});
    router.host.permission.agent_commands = AgentCommandPermission::Named;
    let error = router.call_error("hook_register", given.clone());
    assert!(
        error.starts_with("[refused] command: `./check` may not be run") && error.contains("validators:"),
        "{error}"
    );
    router.host.permission.trust = ExecutionTrust::Untrusted;
    assert!(router.call_error("hook_register", given).contains("windlass trust"));
    let rules = json!([{"type": "command", "name": "a", "config": {"command": "true"}}]);
    let start =
        json!({"taskId": "T1", "maxIterations": 1, "completionPromises": ["COMPLETE"], "validationRules": rules});
    assert!(router.call_error("iteration_start", start).starts_with("[trust] validationRules[0]: "));
}
