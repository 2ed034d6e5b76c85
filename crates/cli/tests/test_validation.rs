//! Validation rules in a real project: who may have what run, and when

use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::World;

fn rule(kind: &str, config: &Value) -> String {
    json!({"type": kind, "name": "it", "config": config}).to_string()
}

fn project(config: &str) -> World {
    let world = World::with_tasks(&["Mend it"]).with_windlass();
    world.write(".windlass/config.yaml", config);
    world
}

fn start(rule: &str) -> Vec<&str> {
    vec!["iteration", "start", "T1", "--max-iterations", "9", "--promise", "COMPLETE", "--rule", rule]
}

/// Starts a series with one rule, and has it judged. What the rule came to.
fn judged(world: &World, rule: &str, words: &[&str]) -> Value {
    let series = world.json(&[&start(rule), words].concat())["iterationId"].as_str().unwrap().to_owned();
    let judged = world.json(&[&["iteration", "validate", &series, "--output", "done"], words].concat());
    judged["results"][0].clone()
}

#[test]
fn a_command_of_an_agent_is_run_only_where_a_person_lets_it() {
    let touch = rule("command", &json!({"command": "touch ran"}));
    let world = project("agent_commands: named\n");
    assert_snapshot!(world.fails(&[&start(&touch)[..], &["--trust"]].concat()), @r"
    error: validationRules[0]: `touch ran` may not be run: this project runs only commands that its configuration names (`agent_commands: named`)
    hint: ask a person to add it under `validators:`, or to set `agent_commands: allow`
    [1 refused]
    ");
    world.write(".windlass/config.yaml", "version: 1\n");
    assert_snapshot!(world.fails(&start(&touch)), @r"
    error: validationRules[0]: nobody has trusted this project's configuration, so nothing is run for it
    hint: ask a person to run `windlass trust`, which shows what would run
    [64 trust]
    ");
    assert!(!world.path("ran").exists() && world.lines(&["events", "--type", "series_started"]).is_empty());
    assert_eq!(judged(&world, &touch, &["--trust"])["passed"], true);
    assert!(world.path("ran").exists());
    world.write(".windlass/config.yaml", "agent_commands: deny\nvalidators: {mark: touch ran}\n");
    let named = rule("custom", &json!({"validatorId": "mark"}));
    assert_snapshot!(world.fails(&[&start(&named)[..], &["--trust"]].concat()), @r"
    error: validationRules[0]: this project runs no commands for agents (`agent_commands: deny`)
    hint: use rules of another type, or ask a person to set `agent_commands: named`
    [1 refused]
    ");
}

/// What was allowed when the series was started may no longer be.
#[test]
fn a_configuration_that_has_changed_runs_nothing() {
    let world = project("validators: {mark: touch ran}\n");
    world.ok(&["trust", "--yes"]);
    let named = rule("custom", &json!({"validatorId": "mark"}));
    let series = world.json(&start(&named))["iterationId"].as_str().unwrap().to_owned();
    world.write(".windlass/config.yaml", "validators: {mark: touch other}\n");
    let result = &world.json(&["iteration", "validate", &series])["results"][0];
    assert_eq!(
        result,
        &json!({
            "ruleName": "it",
            "passed": false,
            "message": "nobody has trusted this project's configuration, so nothing is run for it: ask a person to run \
                        `windlass trust`, which shows what would run",
        })
    );
    assert!(!world.path("ran").exists() && !world.path("other").exists());
    world.ok(&["trust", "--yes"]);
    assert_eq!(world.json(&["iteration", "validate", &series])["validationPassed"], true);
    assert!(world.path("other").exists());
}

/// A rule whose command has the same rule looked at would never end.
#[test]
fn rules_do_not_start_rules() {
    let world = project("agent_commands: allow\n");
    world.ok(&["trust", "--yes"]);
    let again = rule("command", &json!({"command": "windlass iteration validate IT-4 --json >inner; false"}));
    let series = world.json(&start(&again))["iterationId"].clone();
    assert_eq!(series, "IT-4");
    world.json(&["iteration", "validate", "IT-4"]);
    let inner: Value = serde_json::from_slice(&std::fs::read(world.path("inner")).unwrap()).unwrap();
    let message = inner["results"][0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("a program that was started to judge work cannot have further ones started"),
        "{message}"
    );
}

/// Whoever ends it gets no half of it: nothing is recorded, and nothing is left running.
#[test]
fn a_validation_that_is_interrupted_leaves_nothing() {
    let world = project("agent_commands: allow\n");
    world.ok(&["trust", "--yes"]);
    world.make_pipe("begun");
    let hangs = rule("command", &json!({"command": "echo $$ >pid; echo >begun; sleep 1000"}));
    let series = world.json(&start(&hangs))["iterationId"].as_str().unwrap().to_owned();
    let mut command = world.command(&["iteration", "validate", &series]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.hear("begun");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let pid: i32 = std::fs::read_to_string(world.path("pid")).unwrap().trim().parse().unwrap();
    assert!(rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_err(), "it is gone");
    assert!(world.lines(&["events", "--type", "validation_finished"]).is_empty());
}

#[test]
fn a_configuration_that_was_trusted_and_is_gone_leaves_a_decision_to_a_person() {
    let touch = rule("command", &json!({"command": "touch ran"}));
    let world = project("agent_commands: deny\n");
    world.ok(&["trust", "--yes"]);
    std::fs::remove_file(world.path(".windlass/config.yaml")).unwrap();
    assert_snapshot!(world.fails(&start(&touch)), @r"
    error: validationRules[0]: nobody has trusted this project's configuration, so nothing is run for it
    hint: ask a person to run `windlass trust`, which shows what would run
    [64 trust]
    ");
    assert!(!world.path("ran").exists());
}

/// Leaves a project whose configuration no person has ever looked at; its store stays this machine's own.
fn forget_trust(world: &World) {
    std::fs::remove_dir_all(world.path("../state/trust")).unwrap();
}

/// A run that runs nothing of the project needs no trust, and gives none to the agent.
#[test]
fn inside_a_run_of_an_untrusted_project_nothing_is_run_for_an_agent() {
    let touch = rule("command", &json!({"command": "touch ran"}));
    let agent = format!(
        "command:windlass iteration start T1 --max-iterations 2 --promise COMPLETE --rule '{touch}'; \
         windlass hooks register T1 --type command --command 'touch ran'; echo '<promise>BLOCKED</promise>'"
    );
    let world = project("version: 1\n");
    forget_trust(&world);
    world.run(&["run", "--task", "T1", "--agent", &agent]);
    assert!(!world.path("ran").exists());
    assert!(world.lines(&["events", "--type", "series_started", "--type", "hook_registered"]).is_empty());
    world.run(&["task", "unblock", "T1"]);
    world.run(&["run", "--task", "T1", "--agent", &agent, "--trust", "--fresh"]);
    assert!(world.path("ran").exists(), "what a person trusts is run");
}

/// Nor does a run within that run.
#[test]
fn a_run_within_a_run_serves_agents_only_where_that_does() {
    let touch = rule("command", &json!({"command": "touch ran"}));
    let inner = format!(
        "windlass iteration start T2 --max-iterations 2 --promise COMPLETE --rule '{touch}' 2>> said
         windlass hooks register T2 --type command --command 'touch ran' 2>> said; echo '<promise>BLOCKED</promise>'"
    );
    let outer =
        "windlass run --task T2 --fresh --agent 'command:sh inner.sh' >> told 2>&1; echo '<promise>BLOCKED</promise>'";
    for (more, is_served) in [(&[][..], false), (&["--trust"], true)] {
        let world = project("version: 1\n");
        forget_trust(&world);
        world.ok(&["task", "add", "Paint it"]);
        world.write("inner.sh", &inner);
        world.write("outer.sh", outer);
        let ran = world.run(&[&["run", "--task", "T1", "--agent", "command:sh outer.sh"], more].concat());
        let said = format!("{ran}{}{}", world.read("told"), world.read("said"));
        assert_eq!(world.json(&["task", "show", "T2"])["state"], "blocked", "{said}");
        let served = world.lines(&["events", "--type", "series_started", "--type", "hook_registered"]).len();
        assert_eq!(served, if is_served { 2 } else { 0 }, "{said}");
        assert_eq!(said.contains("nobody has trusted this project's configuration"), !is_served, "{said}");
    }
}
