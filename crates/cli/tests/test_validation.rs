//! Validation rules in a real project: which programs may run, for which caller, and when

use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::TestWorld;

/// Arguments that start a series on a task with one rule.
fn start_arguments(task: &str, kind: &str, config: &Value) -> String {
    let rule = json!({"type": kind, "name": "it", "config": config});
    let start =
        json!({"taskId": task, "maxIterations": 9, "completionPromises": ["COMPLETE"], "validationRules": [rule]});
    start.to_string()
}

fn command_rule_arguments(task: &str, command: &str) -> String {
    start_arguments(task, "command", &json!({"command": command}))
}

fn create_project(config: &str) -> TestWorld {
    let world = TestWorld::with_tasks(&["Mend it"]).with_windlass();
    world.write(".windlass/config.yaml", config);
    world
}

/// Returns the arguments that name the series of these start arguments.
fn start_series(world: &TestWorld, start: &str) -> String {
    let series = &world.json(&["tool", "call", "iteration_start", start])["iterationId"];
    json!({"iterationId": series}).to_string()
}

#[test]
fn agent_command_runs_only_when_allowed_and_trusted() {
    let touch = command_rule_arguments("T1", "touch ran");
    let world = create_project("agent_commands: named\n");
    assert_snapshot!(world.expect_failure(&["tool", "call", "iteration_start", &touch, "--trust"]), @r"
    error: validationRules[0]: `touch ran` may not be run: this project runs only commands that its configuration names (`agent_commands: named`)
    hint: ask a person to add it under `validators:`, or to set `agent_commands: allow`
    [1 refused]
    ");
    world.write(".windlass/config.yaml", "version: 1\n");
    assert_snapshot!(world.expect_failure(&["tool", "call", "iteration_start", &touch]), @r"
    error: validationRules[0]: this project's configuration is not trusted, so nothing is run for it
    hint: `windlass trust` shows what would run and asks
    [64 trust]
    ");
    assert!(!world.path("ran").exists() && world.json_lines(&["events", "--type", "series_started"]).is_empty());
    let series = world.json(&["tool", "call", "iteration_start", &touch, "--trust"])["iterationId"].clone();
    let series = json!({"iterationId": series}).to_string();
    let judged = world.json(&["tool", "call", "iteration_validate", &series, "--trust"]);
    assert_eq!(judged["results"][0]["passed"], true);
    assert!(world.path("ran").exists());
    world.write(".windlass/config.yaml", "agent_commands: deny\nvalidators: {mark: touch ran}\n");
    let named = start_arguments("T1", "custom", &json!({"validatorId": "mark"}));
    assert_snapshot!(world.expect_failure(&["tool", "call", "iteration_start", &named, "--trust"]), @r"
    error: validationRules[0]: this project runs no commands for agents (`agent_commands: deny`)
    hint: use rules of another type, or ask a person to set `agent_commands: named`
    [1 refused]
    ");
}

/// A command that was allowed at the start of the series may be forbidden later.
#[test]
fn changed_configuration_runs_no_validator_until_trusted() {
    let world = create_project("validators: {mark: touch ran}\n");
    world.run_ok(&["trust", "--yes"]);
    let series = start_series(&world, &start_arguments("T1", "custom", &json!({"validatorId": "mark"})));
    world.write(".windlass/config.yaml", "validators: {mark: touch other}\n");
    let result = &world.json(&["tool", "call", "iteration_validate", &series])["results"][0];
    assert_eq!(
        result,
        &json!({
            "ruleName": "it",
            "passed": false,
            "message": "this project's configuration is not trusted, so nothing is run for it: ask a person to run \
                        `windlass trust`: it shows what would run and asks",
        })
    );
    assert!(!world.path("ran").exists() && !world.path("other").exists());
    world.run_ok(&["trust", "--yes"]);
    assert_eq!(world.json(&["tool", "call", "iteration_validate", &series])["validationPassed"], true);
    assert!(world.path("other").exists());
}

/// A rule whose command evaluates the same rule would never end.
#[test]
fn rules_do_not_start_rules() {
    let world = create_project("agent_commands: allow\n");
    world.run_ok(&["trust", "--yes"]);
    let again = "windlass tool call iteration_validate '{\"iterationId\": \"IT-4\"}' >inner; false";
    let series = start_series(&world, &command_rule_arguments("T1", again));
    assert_eq!(series, r#"{"iterationId":"IT-4"}"#);
    world.json(&["tool", "call", "iteration_validate", &series]);
    let inner: Value = serde_json::from_slice(&std::fs::read(world.path("inner")).unwrap()).unwrap();
    let message = inner["results"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("a program that judges work cannot start more programs"), "{message}");
}

/// An interrupt leaves no partial result: nothing is recorded, and no program is left.
#[test]
fn interrupted_validation_records_nothing_and_terminates_program() {
    let world = create_project("agent_commands: allow\n");
    world.run_ok(&["trust", "--yes"]);
    world.make_pipe("begun");
    let series = start_series(&world, &command_rule_arguments("T1", "echo $$ >pid; echo >begun; sleep 1000"));
    let mut command = world.command(&["tool", "call", "iteration_validate", &series]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.await_pipe("begun");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let pid: i32 = std::fs::read_to_string(world.path("pid")).unwrap().trim().parse().unwrap();
    assert!(rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_err(), "it is gone");
    assert!(world.json_lines(&["events", "--type", "validation_finished"]).is_empty());
}

#[test]
fn agent_command_is_refused_after_trusted_configuration_is_deleted() {
    let touch = command_rule_arguments("T1", "touch ran");
    let world = create_project("agent_commands: deny\n");
    world.run_ok(&["trust", "--yes"]);
    std::fs::remove_file(world.path(".windlass/config.yaml")).unwrap();
    assert_snapshot!(world.expect_failure(&["tool", "call", "iteration_start", &touch]), @r"
    error: validationRules[0]: this project's configuration is not trusted, so nothing is run for it
    hint: `windlass trust` shows what would run and asks
    [64 trust]
    ");
    assert!(!world.path("ran").exists());
}

/// Leaves a project whose configuration no person has ever reviewed; its store stays this machine's own.
fn forget_trust(world: &TestWorld) {
    std::fs::remove_dir_all(world.path("../state/trust")).unwrap();
}

/// An agent that starts a series with a command as its rule, and registers a command as a stop hook.
fn command_requesting_agent(task: &str) -> String {
    let hook = json!({"taskId": task, "hookType": "command", "command": "touch ran"});
    format!(
        "windlass tool call iteration_start '{}' 2>> said; windlass tool call hook_register '{hook}' 2>> said; \
         echo '<promise>BLOCKED</promise>'",
        command_rule_arguments(task, "touch ran")
    )
}

/// A run that runs nothing of the project needs no trust, and gives none to the agent.
#[test]
fn inside_a_run_of_an_untrusted_project_nothing_is_run_for_an_agent() {
    let agent = format!("command:{}", command_requesting_agent("T1"));
    let world = create_project("version: 1\n");
    forget_trust(&world);
    world.run(&["run", "--task", "T1", "--agent", &agent]);
    assert!(!world.path("ran").exists());
    assert!(world.json_lines(&["events", "--type", "series_started", "--type", "hook_registered"]).is_empty());
    world.run(&["task", "unblock", "T1"]);
    world.run(&["run", "--task", "T1", "--agent", &agent, "--trust", "--fresh"]);
    assert!(world.path("ran").exists(), "what a person trusts is run");
}

/// Nor does a run within that run.
#[test]
fn nested_run_allows_agent_commands_only_with_outer_trust() {
    let outer =
        "windlass run --task T2 --fresh --agent 'command:sh inner.sh' >> told 2>&1; echo '<promise>BLOCKED</promise>'";
    for (more, is_served) in [(&[][..], false), (&["--trust"], true)] {
        let world = create_project("version: 1\n");
        forget_trust(&world);
        world.run_ok(&["task", "add", "Paint it"]);
        world.write("inner.sh", command_requesting_agent("T2"));
        world.write("outer.sh", outer);
        let ran = world.run(&[&["run", "--task", "T1", "--agent", "command:sh outer.sh"], more].concat());
        let said = format!("{ran}{}{}", world.read_file("told"), world.read_file("said"));
        assert_eq!(world.json(&["task", "show", "T2"])["state"], "blocked", "{said}");
        let served = world.json_lines(&["events", "--type", "series_started", "--type", "hook_registered"]).len();
        assert_eq!(served, if is_served { 2 } else { 0 }, "{said}");
        assert_eq!(said.contains("this project's configuration is not trusted"), !is_served, "{said}");
    }
}
