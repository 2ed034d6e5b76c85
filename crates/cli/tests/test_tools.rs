//! `windlass tool`: the tools of agents, for a person or a script.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::hook_project::create_hook_project;

/// Arguments that start a series on T1.
const START_ARGUMENTS: &str = r#"{"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE"]}"#;

/// The arguments that name a new series on T1.
fn start_series(world: &TestWorld) -> Value {
    let answer = world.json(&["tool", "call", "iteration_start", START_ARGUMENTS]);
    json!({"iterationId": answer["iterationId"]})
}

#[test]
fn tools_are_listed_and_described() {
    let world = TestWorld::empty();
    let listed = world.json(&["tool", "list"]);
    let shown = world.run_ok(&["tool", "list"]);
    assert_eq!(shown.lines().count(), listed.as_array().unwrap().len());
    assert!(
        shown.contains("\nhook_register       Register a stop hook, which decides when a task is done.\n"),
        "{shown}"
    );
    assert_snapshot!(world.run_ok(&["tool", "show", "checkpoint_resume"]), @r#"
    checkpoint_resume  Show what a checkpoint saved, the state of its iterations, and the next step.

      taskId (required): one such as T12, as `task_list` shows them
      checkpointId: one such as CP-12, as `checkpoint_list` shows them; default the newest

    Example:
      windlass tool call checkpoint_resume '{"taskId": "T3"}'

    The JSON schema of all arguments: windlass tool show checkpoint_resume --json
    "#);
    assert_eq!(world.json(&["tool", "show", "checkpoint_resume"])["required"], json!(["taskId"]));
}

#[test]
fn arguments_come_from_command_line_or_standard_input() {
    let world = TestWorld::with_tasks(&["one"]);
    let shown = world.run_ok(&["tool", "call", "task_next"]);
    assert!(shown.starts_with("{\n  ") && shown.contains("\n  \"id\": \"T1\",\n"), "{shown}");
    let mut series = start_series(&world);
    series["agentOutput"] = json!("\u{1b}[31mdone\u{1b}[0m\n<promise>COMPLETE</promise>\n");
    let judged =
        world.run_with_input(&["tool", "call", "iteration_validate", "-", "--json"], series.to_string().as_bytes());
    let judged: Value = serde_json::from_str(&judged.stdout).unwrap();
    assert_eq!(judged["completionSignal"], "COMPLETE");
    let long = vec![b'x'; 1024 * 1024 + 1];
    let refused = world.run_with_input(&["tool", "call", "iteration_validate", "-"], &long);
    assert_eq!(refused.code, 64);
    assert!(refused.stderr.contains("standard input has more than 1048576 bytes"), "{}", refused.stderr);
}

#[test]
fn errors_name_tools_and_how_to_see_them() {
    let world = TestWorld::with_tasks(&["one"]);
    start_series(&world);
    let told = [
        world.expect_failure(&["tool", "show", "iteration_strat"]),
        world.expect_failure(&["tool", "call", "iteration_strat"]),
        world.expect_failure(&["tool", "call", "task_get", r#"{"taskId": T1}"#]),
        world.expect_failure(&["tool", "call", "task_get", "[]"]),
        world.expect_failure(&["tool", "call", "task_get", r#"{"taskId": "T9"}"#]),
        world.expect_failure(&["tool", "call", "iteration_next", r#"{"iterationId": "IT-99"}"#]),
        world.expect_failure(&[
            "tool",
            "call",
            "hook_register",
            r#"{"taskId": "T1", "hookType": "rules", "rules": "tddd"}"#,
        ]),
    ];
    assert_snapshot!(told.join("\n"), @"
    error: there is no tool `iteration_strat`
    hint: did you mean `iteration_start`?
    [64 usage]
    error: there is no tool `iteration_strat`
    hint: did you mean `iteration_start`?
    [64 usage]
    error: the arguments are not JSON
    caused by: expected value at line 1 column 12
    hint: `windlass tool show task_get` shows an example
    [64 usage]
    error: arguments: a list is not an object; give the fields by name
    hint: `windlass tool show task_get` shows its arguments and an example
    [64 usage]
    error: there is no task T9
    hint: the tool task_list shows the tasks (`windlass tool show task_list`)
    [1 not_found]
    error: there is no series of iterations IT-99
    hint: the tool iteration_start starts one and returns its id (`windlass tool show iteration_start`); the tool task_get shows the open one (`windlass tool show task_get`)
    [1 not_found]
    error: rules: name no template that can be used: `template`: unknown variant `tddd`, expected one of `tdd`, `security-remediation`, `checkpoint-every`
    hint: `windlass tool show hook_register` shows its arguments and an example
    [64 usage]
    ");
}

/// Commands that stay have hints of their own.
#[test]
fn hints_of_commands_name_commands() {
    let world = TestWorld::new();
    for words in [&["hooks", "list", "--task", "T9"][..], &["task", "show", "T9"]] {
        let told = "error: there is no task T9\nhint: `windlass task list --all` shows every task\n[1 not_found]";
        assert_eq!(world.expect_failure(words), told);
    }
}

#[test]
fn removed_commands_name_their_tool() {
    let world = TestWorld::empty();
    for (line, tool) in [
        ("iteration start T1 --max-iterations 3 --promise COMPLETE", "iteration_start"),
        ("checkpoints list T1", "checkpoint_list"),
        ("hooks register T1", "hook_register"),
        ("--project . hooks clear T1", "hook_clear"),
    ] {
        let told = world.expect_failure(&line.split(' ').collect::<Vec<_>>());
        assert!(told.contains(&format!("\nhint: `windlass tool call {tool}` replaces it\n")), "{told}");
    }
    for group in ["iteration", "checkpoints"] {
        let told = world.expect_failure(&[group]);
        assert!(told.contains("\nhint: `windlass tool list` shows the tools that replace it\n"), "{told}");
    }
}

#[test]
fn registered_command_hook_decides_without_printing_its_output() {
    let world =
        create_hook_project("agent_commands: allow\nhooks: {hook_evaluated: [{name: loud, command: echo loud}]}\n");
    world.run_ok(&["task", "add", "one"]);
    world.write("judge.sh", "jq -e '.agentOutput == \"ready\"' >&2 && exit 0\necho 'not ready' >&2\nexit 2\n");
    world.call_tool("hook_register", &json!({"taskId": "T1", "hookType": "command", "command": "sh judge.sh"}));
    let mut series = start_series(&world);
    series["agentOutput"] = json!("no");
    let judged = world.call_tool("iteration_validate", &series);
    assert_eq!(
        (&judged["completionSignal"], &judged["hookDecision"]["action"]),
        (&json!("CONTINUE"), &json!("continue"))
    );
    assert!(judged["hookDecision"]["nextPrompt"].as_str().unwrap().contains("not ready"), "{judged}");
    series["agentOutput"] = json!("ready");
    let ran = world.run(&["tool", "call", "iteration_validate", &series.to_string(), "--json"]);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    assert!(ran.stdout.contains("\"completionSignal\":\"COMPLETE\""), "{}", ran.stdout);
}

/// Inside a turn an agent claims, and the gates of its session judge.
#[test]
fn inside_a_turn_completing_a_series_is_a_claim() {
    let world = TestWorld::new();
    let agent = "windlass tool call iteration_start \"$(cat start)\" \\
    | jq '{iterationId, completionPromise: \"COMPLETE\"}' | windlass tool call iteration_complete - > completed
windlass task show T1 --json | jq -r .state > state
";
    world.write("start", START_ARGUMENTS);
    world.write("agent.sh", agent);
    std::os::unix::fs::symlink(crate::support::WINDLASS, world.program_directory().join("windlass")).unwrap();
    world.run(&["run", "Fix the login", "--agent", "command:sh agent.sh", "--max-iterations", "1"]);
    let read = |name: &str| std::fs::read_to_string(world.path(name)).unwrap();
    assert_eq!(read("state"), "active\n");
    assert!(read("completed").contains("recorded as a claim"), "{}", read("completed"));
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "completed");
}
