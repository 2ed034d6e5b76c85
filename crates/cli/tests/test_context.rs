//! The context that all judges of a turn share: validation rules of the configuration, and facts of a project's own.

use std::fs;

use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::hook_project::{COMPLETING_AGENT, create_hook_project};

const RUN_T1: &[&str] = &["run", "--task", "T1", "--agent", "command:sh agent.sh"];

fn read_json(world: &TestWorld, name: &str) -> Value {
    serde_json::from_slice(&fs::read(world.path(name)).unwrap()).unwrap()
}

#[test]
fn stop_hooks_of_both_kinds_get_one_context() {
    let world = create_hook_project(
        "version: 1
validation:
  - {type: file_existence, name: config_there, config: {paths: [.windlass/config.yaml]}}
hooks:
  stop:
    - {name: configured, command: cat > configured.json}
    - name: ruled
      rules:
        - when: \"agentOutput != '' and iteration == 1 and (validationResults | selectattr('passed') | list | length) == 1\"
          action: complete
        - action: escalate
          reason: the rules see something else
",
    );
    world.write("agent.sh", COMPLETING_AGENT);
    world.run_ok(&["task", "add", "One"]);
    world.call_tool(
        "hook_register",
        &json!({"taskId": "T1", "hookType": "command", "command": "cat > registered.json"}),
    );
    world.run_ok(RUN_T1);
    let (configured, registered) = (read_json(&world, "configured.json"), read_json(&world, "registered.json"));
    for name in registered.as_object().unwrap().keys().filter(|name| *name != "completionPromises") {
        assert_eq!(configured[name], registered[name], "{name}");
    }
    assert_eq!(configured["completionPromises"][0]["type"], "COMPLETE");
    assert_eq!(registered["completionPromises"][0]["type"], "COMPLETE");
    assert_eq!(configured["validationResults"][0]["ruleName"], "config_there");
    assert_eq!(configured["validationResults"][0]["passed"], true);
    assert_eq!((&configured["taskId"], &configured["iteration"]), (&json!("T1"), &json!(1)));
    assert!(configured["agentOutput"].as_str().unwrap().contains("COMPLETE"), "{configured}");
}

#[test]
fn configured_rule_that_fails_closes_the_gate_for_its_type_alone() {
    let world = create_hook_project(
        "version: 1
validation: []
task_types:
  release:
    validation:
      - {type: file_existence, name: notes, config: {paths: [NOTES.md]}}
",
    );
    world.write("agent.sh", COMPLETING_AGENT);
    world.run_ok(&["task", "add", "One", "--type", "release"]);
    world.run_ok(&["task", "add", "Two"]);
    let ran = world.run(&[RUN_T1, &["--max-iterations", "2"]].concat());
    assert!(ran.code != 0 && ran.stdout.contains("notes"), "{ran}");
    assert_ne!(world.json(&["task", "show", "T1", "--json"])["state"], "completed", "{ran}");
    let finished = world.event_payloads("hook_finished");
    assert_eq!((&finished[0]["hook"], &finished[0]["outcome"]), (&json!("validation"), &json!("continue")));
    assert_eq!(finished[0]["results"][0]["ruleName"], "notes");
    world.run_ok(&["run", "--task", "T2", "--agent", "command:sh agent.sh"]);
}

#[test]
fn own_fact_is_kept_shown_and_heard() {
    let world = create_hook_project(
        r#"version: 1
hooks:
  task_completed:
    - name: review
      command: |
        echo '{"actions": [{"type": "log", "payload": {"type": "review.passed", "nodeId": "T1", "data": {"score": 3, "by": ["ann"]}}}]}'
  review.passed:
    - {name: hear, when: event.data.score > 2, command: cat > heard.json}
    - {name: miss, when: event.data.score > 3, command: touch missed}
  review.failed:
    - {name: other, command: touch missed}
"#,
    );
    world.run_ok(&["task", "add", "One"]);
    world.run_ok(&["task", "complete", "T1"]);
    let logged = world.json_lines(&["events", "--type", "review.passed", "--json"]);
    assert_eq!(logged.len(), 1);
    assert_eq!((&logged[0]["type"], &logged[0]["nodeId"]), (&json!("review.passed"), &json!("T1")));
    assert_eq!(logged[0]["data"], json!({"score": 3, "by": ["ann"]}));
    let heard = read_json(&world, "heard.json");
    assert_eq!((&heard["point"], &heard["event"]["data"]["score"]), (&json!("review.passed"), &json!(3)));
    assert_eq!((&heard["event"]["type"], &heard["task_id"]), (&json!("review.passed"), &json!("T1")));
    assert!(!world.has_file("missed"));
    let shown = world.run_ok(&["events", "--type", "review.passed"]);
    assert!(shown.contains("review.passed") && shown.contains(r#"{"by":["ann"],"score":3}"#), "{shown}");
    assert!(world.run_ok(&["hooks", "history", "--hook", "hear"]).contains("review.passed"));
    assert!(world.run_ok(&["hooks", "list", "--point", "review.passed"]).contains("hear"));
    assert!(world.expect_failure(&["events", "--type", "Review.passed"]).contains("Review.passed"));
}

#[test]
fn field_that_an_event_does_not_have_is_found_when_the_file_is_read() {
    let world = TestWorld::new();
    for (config, words) in [
        (
            "hooks: {task_completed: [{command: 'true', when: event.data.reslt == ''}]}",
            "did you mean `event.data.result`?",
        ),
        ("hooks: {task_ready: [{command: 'true', when: event.data.x}]}", "`event.data` has no fields here"),
        ("hooks: {Review.Passed: [{command: 'true'}]}", "write it in lower case with a namespace: `review.passed`"),
        ("hooks: {stop: [{command: 'true', name: validation}]}", "no hook can have the name `validation`"),
        ("validation: [{type: command, name: t, config: {cmd: x}}]", "validation[0].config"),
        ("validation: [{type: custom, name: t, config: {validatorId: lint}}]", "unknown validator `lint`"),
        ("task_types: {x: {hooks: {session_start: []}}}", "a task type has no hooks at `session_start`"),
    ] {
        world.write("other.yaml", config);
        let wrong = world.expect_failure(&["config", "check", "other.yaml"]);
        assert!(wrong.contains(words), "{config}\n{wrong}");
    }
    world.write("other.yaml", "hooks: {review.passed: [{command: 'true', when: event.data.anything == 1}]}");
    world.run_ok(&["config", "check", "other.yaml"]);
}

#[test]
fn hooks_of_agents_are_listed_and_tried() {
    let world = create_hook_project(
        "version: 1
agents:
  fast:
    command: sh agent.sh
    hooks:
      before_submit: [{name: lint, command: ./lint.sh, priority: 200}]
      stop: [{name: fast-stop, command: exit 2}]
",
    );
    let list = world.run_ok(&["hooks", "list", "--point", "before_submit", "--agent", "fast"]);
    let (lint, default) = (list.find("lint").unwrap(), list.find("create_pr (default)").unwrap());
    assert!(lint < default, "{list}");
    assert!(world.run_ok(&["hooks", "list"]).contains("Agents with hooks of their own: fast (--agent)"));
    let tried = world.run_ok(&["hooks", "test", "stop", "--agent", "fast", "--run"]);
    assert!(tried.contains("fast-stop") && tried.contains("verdict      block"), "{tried}");
    assert!(world.expect_failure(&["hooks", "test", "stop", "--agent", "fats"]).contains("did you mean `fast`?"));
}

#[test]
fn one_registered_hook_is_removed_and_switched_by_its_id() {
    let world = TestWorld::with_tasks(&["One"]);
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "default"}));
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "promise"}));
    let clear = ["tool", "call", "hook_clear", r#"{"taskId": "T1", "hookId": "HOOK-4"}"#];
    assert!(world.expect_failure(&["hooks", "disable", "HOOK-3", "--dry-run"]).contains("there is nothing to show"));
    assert_eq!(world.run_ok(&["hooks", "disable", "HOOK-3"]), "HOOK-3 of T1 is disabled\n");
    assert_eq!(world.json(&clear)["hooksCleared"], 1);
    assert_eq!(world.run_ok(&["hooks", "list", "--task", "T1"]), "HOOK-3  default  (disabled)\n");
    assert_eq!(world.run_ok(&["hooks", "enable", "HOOK-3"]), "HOOK-3 of T1 is enabled\n");
    assert!(world.expect_failure(&clear).contains("is not registered for T1"));
    assert!(world.expect_failure(&["hooks", "disable", "HOOK-99"]).contains("there is no stop hook HOOK-99"));
}

#[test]
fn hooks_list_names_the_rules_that_judge_tasks_of_a_type_first() {
    let rule = |name: &str| format!("{{type: file_existence, name: {name}, config: {{paths: [a]}}}}");
    let world = create_hook_project(&format!(
        "validation: [{}, {}]\nhooks: {{stop: [{{name: check, command: 'true', priority: 1}}]}}\n\
         task_types: {{tdd: {{validation: [{}]}}, free: {{validation: []}}}}\n",
        rule("one"),
        rule("two"),
        rule("three")
    ));
    let rows = |words: &[&str]| -> Vec<(String, String)> {
        let planned = world.json(&[&["hooks", "list", "--point", "stop"], words].concat());
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        planned["hooks"].as_array().unwrap().iter().map(|row| (text(row, "name"), text(row, "what"))).collect()
    };
    let row = |name: &str, what: &str| (name.to_owned(), what.to_owned());
    assert_eq!(rows(&[]), [row("validation", "one, two"), row("check", "true")]);
    assert_eq!(rows(&["--type", "tdd"]), [row("validation", "three"), row("check", "true")]);
    assert_eq!(rows(&["--type", "free"]), [row("check", "true")]);
    let shown = world.run_ok(&["hooks", "list", "--point", "stop"]);
    assert!(shown.contains("validation  one, two  (before the others, under `validation`)\n"), "{shown}");
    assert!(world.run_ok(&["hooks", "show", "validation"]).contains("one, two"));
}
