//! The example configurations of the specification load unchanged, and do what it says.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{CommandOutput, TestWorld, WINDLASS};
use crate::test_run::{RUN, create_agent_project};

/// Six points of a session's life, with the programs of a Go project.
const LIFECYCLE: &str = r#"
version: 1

hooks:
  session_start:
    - command: "git pull --rebase"
      timeout: 30
    - command: "go build ./..."
      timeout: 60
      pipe_output: true

  pre_iteration:
    - command: "golangci-lint run ./..."
      timeout: 30
      pipe_output: true

  post_iteration:
    - command: "go test ./... -short"
      timeout: 120
      pipe_output: true
    - command: "curl -X POST $SLACK_WEBHOOK -d '{\"text\": \"Iteration {{iteration}} done\"}'"
      timeout: 5

  session_end:
    - command: "git push origin HEAD"
      timeout: 30
    - command: "./scripts/notify-complete.sh {{session}}"
      timeout: 10

  on_task_complete:
    - command: "./scripts/validate-task.sh {{task_id}}"
      timeout: 30
      pipe_output: true

  on_error:
    - command: "git diff HEAD"
      timeout: 10
      pipe_output: true
"#;

const TRACER_BULLET: &str = r#"
hooks:
  post_iteration:
    - command: "echo 'Test output for agent'"
      pipe_output: true
    - command: "echo 'Side effect only'"
"#;

const TASK_TYPES: &str = "
hooks:
  before_submit:
    - rebase_on_main
    - create_pr

task_types:
  product:
    hooks:
      before_submit:
        - rebase_on_main
        - run_tests
        - create_pr
      before_merge:
        - gatekeeper: [qa, architecture]
    agents:
      implementer: [implementer-1, implementer-2]
      gatekeeper: [gatekeeper-qa]

  infrastructure:
    hooks:
      before_submit:
        - rebase_on_main
        - create_pr
    agents:
      implementer: [implementer-1]

  hotfix:
    hooks:
      before_submit:
        - run_tests
        - create_pr
    agents:
      implementer: [implementer-1, implementer-2]
";

/// A stand-in for a program: it records its call, prints a line, and may do something more.
fn write_stand_in(file: &Path, more: &str) {
    let record = r#"called="${0##*/} $*"; echo "$WINDLASS_POINT ${WINDLASS_ITERATION:--}: $called" >> calls"#;
    fs::write(file, format!("#!/bin/sh\n{record}\necho \"said by $called\"\n{more}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A project of the lifecycle, with all of its programs. Its tests complete T1; its agent claims T2, fails in its second
/// iteration, and is done in its third.
fn create_lifecycle_project() -> TestWorld {
    let agent = r#"
echo "agent $turn" >> calls
case $turn in
1) windlass task complete T2 > claimed; echo 'Half of it.' ;;
2) echo 'the network is gone' >&2; exit 7 ;;
3) echo 'I see.' ;;
4) echo 'All of it.'; echo '<promise>COMPLETE</promise>' ;;
5) echo 'Thank you.'; echo '<promise>COMPLETE</promise>' ;;
esac"#;
    let world = create_agent_project(&format!("{LIFECYCLE}\nlimits: {{failure_span: 1ms}}\n"), agent);
    symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    fs::create_dir(world.path("scripts")).unwrap();
    let completes = r#"case "$WINDLASS_ITERATION $*" in "1 test"*) windlass task complete T1 > /dev/null ;; esac"#;
    for (program, more) in [("git", ""), ("golangci-lint", ""), ("curl", ""), ("go", completes)] {
        write_stand_in(&world.program_directory().join(program), more);
    }
    for script in ["scripts/notify-complete.sh", "scripts/validate-task.sh"] {
        write_stand_in(&world.path(script), "");
    }
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Draw the pump"]);
    world.run_ok(&["task", "add", "Paint the pump"]);
    world
}

fn run_session(world: &TestWorld) -> CommandOutput {
    world.run_command(world.command(RUN).env("SLACK_WEBHOOK", "https://hooks.test/x"))
}

/// Returns the output of hooks in a prompt, in order.
fn prompt_feedback(world: &TestWorld, turn: u32) -> Vec<String> {
    let prompt = fs::read_to_string(world.path(&format!("prompt.{turn}"))).unwrap();
    let piece = |piece: &str| {
        let (hook, rest) = piece.split_once("\n```text\n").unwrap();
        format!("{hook}: {}", rest.split("\n```").next().unwrap())
    };
    prompt.split("[Hook feedback]: ").skip(1).map(piece).collect()
}

#[test]
fn session_runs_each_hook_at_its_point_with_values() {
    let world = create_lifecycle_project();
    let ran = run_session(&world);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!(fs::read_to_string(world.path("calls")).unwrap(), @r#"
    session_start -: git pull --rebase
    session_start -: go build ./...
    pre_iteration 1: golangci-lint run ./...
    agent 1
    on_task_complete 1: validate-task.sh T2
    post_iteration 1: go test ./... -short
    on_task_complete 1: validate-task.sh T1
    post_iteration 1: curl -X POST https://hooks.test/x -d {"text": "Iteration 1 done"}
    pre_iteration 2: golangci-lint run ./...
    agent 2
    on_error 2: git diff HEAD
    agent 3
    pre_iteration 3: golangci-lint run ./...
    agent 4
    post_iteration 3: go test ./... -short
    post_iteration 3: curl -X POST https://hooks.test/x -d {"text": "Iteration 3 done"}
    agent 5
    post_iteration 3: go test ./... -short
    post_iteration 3: curl -X POST https://hooks.test/x -d {"text": "Iteration 3 done"}
    on_task_complete 3: validate-task.sh T3
    session_end 3: git push origin HEAD
    session_end 3: notify-complete.sh mend-the-pump-e01275de
    "#);
}

#[test]
fn piped_hook_output_alone_reaches_agent_in_order() {
    let world = create_lifecycle_project();
    let ran = run_session(&world);
    assert_eq!(ran.code, 0, "{ran}");
    let told = (1..=5).map(|turn| format!("turn {turn}\n  {}", prompt_feedback(&world, turn).join("\n  ")));
    assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"
    turn 1
      session_start[1]: said by go build ./...
      pre_iteration[0]: said by golangci-lint run ./...
    turn 2
      on_task_complete[0] (about T2): said by validate-task.sh T2
      on_task_complete[0] (about T1): said by validate-task.sh T1
      post_iteration[0]: said by go test ./... -short
      pre_iteration[0]: said by golangci-lint run ./...
    turn 3
      on_task_complete[0] (about T2) (you may have seen this before): said by validate-task.sh T2
      on_task_complete[0] (about T1) (you may have seen this before): said by validate-task.sh T1
      post_iteration[0] (you may have seen this before): said by go test ./... -short
      pre_iteration[0] (you may have seen this before): said by golangci-lint run ./...
      on_error[0]: said by git diff HEAD
    turn 4
      pre_iteration[0]: said by golangci-lint run ./...
    turn 5
      post_iteration[0]: said by go test ./... -short
    ");
}

/// An agent in its turn can complete a task that has no holder, as a hook can; only the session completes its own task.
#[test]
fn only_what_is_completed_counts_as_completed() {
    let world = create_lifecycle_project();
    assert_eq!(run_session(&world).code, 0);
    assert_snapshot!(world.run(&["task", "list", "--all"]), @"
    T1  completed  P2  Draw the pump
    T2  completed  P2  Paint the pump
    T3  completed  P2  Mend the pump
    ");
    assert_snapshot!(fs::read_to_string(world.path("claimed")).unwrap(), @"T2  completed  P2  Paint the pump");
}

#[test]
fn piped_hook_output_appears_in_second_iteration_prompt() {
    let world = create_agent_project(TRACER_BULLET, "echo turn $turn");
    assert_eq!(world.run(&[RUN, &["--max-iterations", "2"]].concat()).code, 3);
    let prompt = |turn: u32| fs::read_to_string(world.path(&format!("prompt.{turn}"))).unwrap();
    let seen: Vec<bool> = (1..=3).map(|turn| prompt(turn).contains("Test output for agent")).collect();
    assert_eq!(seen, [false, true, true]);
    assert!((1..=3).all(|turn| !prompt(turn).contains("Side effect only")));
}

#[test]
fn types_of_tasks_have_the_hooks_that_they_say() {
    let world = TestWorld::empty();
    world.write(".windlass/config.yaml", TASK_TYPES);
    let checked = world.json(&["config", "check"]);
    assert_eq!(checked["ok"], true);
    // The example does not say how its agents are started. No test needs them yet.
    let warnings: Vec<&str> =
        checked["warnings"].as_array().unwrap().iter().map(|it| it["message"].as_str().unwrap()).collect();
    let agents = ["implementer-1", "implementer-2", "gatekeeper-qa"];
    let unknown = agents.map(|name| format!("`{name}` is not a known agent"));
    let unchecked = ["hotfix", "product"].map(|name| {
        format!(
            "nothing is checked at `before_submit` for tasks of the type `{name}`: `run_tests` finds no tests in this project \
             and can only skip"
        )
    });
    assert_eq!(warnings, [&unknown[..], &unchecked].concat());
    let check = |words: &[&str], expected: &[(&str, &[&str])]| {
        let listed = world.json_lines(&[&["hooks", "list"], words].concat());
        for (point, hooks) in expected {
            let rows = listed.iter().filter(|row| row["point"] == *point);
            let rows = rows.flat_map(|row| row["hooks"].as_array().unwrap());
            let found: Vec<&str> = rows.map(|row| row["what"].as_str().unwrap().split(" (").next().unwrap()).collect();
            assert_eq!(found, *hooks, "{words:?} {point}");
        }
    };
    let project: &[&str] = &["rebase_on_main", "create_pr"];
    check(&[], &[("before_submit", project), ("before_merge", &[])]);
    let product: &[&str] = &["rebase_on_main", "run_tests", "create_pr"];
    check(&["--type", "product"], &[("before_submit", product), ("before_merge", &["gatekeeper: qa, architecture"])]);
    check(&["--type", "infrastructure"], &[("before_submit", project), ("before_merge", &[])]);
    check(&["--type", "hotfix"], &[("before_submit", &["run_tests", "create_pr"]), ("before_merge", &[])]);
    world.write(".windlass/config.yaml", "version: 1\n");
    let default = &world.json_lines(&["hooks", "list", "--point", "before_submit"])[0]["hooks"][0];
    let place = json!("default, for tasks in worktrees");
    assert_eq!((&default["name"], &default["definedAt"]), (&json!("create_pr (default)"), &place));
    assert_eq!((&default["runs"], &default["note"]), (&json!(true), &json!(null)));
    for name in ["create_pr", "create_pr (default)"] {
        assert_eq!(world.json(&["hooks", "show", name])["points"], "before_submit");
    }
    let refused = world.expect_failure(&["hooks", "test", "before_submit"]);
    assert!(refused.contains("`create_pr (default)` runs there for tasks in worktrees"), "{refused}");
    world.write(".windlass/config.yaml", "worktrees: false\n");
    assert_eq!(world.json(&["hooks", "show", "create_pr"])["runs"], false);
}

/// An agent that one type names, and that has no command, holds up no task of another type.
#[test]
fn task_waits_only_for_agents_that_its_type_needs() {
    let stub = "cat > /dev/null; echo done > done-$WINDLASS_TASK_ID; echo '<promise>COMPLETE</promise>'";
    let begun = |config: &str| {
        let world = TestWorld::empty();
        let git = "git init -q -b main && git config user.name ann && git config user.email ann@shop.test &&
                   echo .windlass > .gitignore && git add . && git commit -qm Begin";
        assert_eq!(world.run_command(world.program("sh").args(["-c", git])).code, 0);
        world.write(".windlass/config.yaml", config);
        world.run_ok(&["trust", "--yes"]);
        world.run_ok(&["init"]);
        world.run_ok(&["task", "add", "Anything"]);
        world.run_ok(&["task", "add", "A product", "--type", "product"]);
        world.run_ok(&["task", "add", "Plumbing", "--type", "infrastructure"]);
        world
    };
    // Unchanged.
    let world = begun(TASK_TYPES);
    let ran = world.run(&["run", "--agent", &format!("command:{stub}")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran}");
    assert!(ran.stdout.contains("  T1 is completed\n"), "{ran}");
    assert!(ran.stdout.contains("  left: T2  ready  A product: implementer-1, implementer-2 may\n"), "{ran}");
    let refused = world.expect_failure(&["run", "--workers", "1"]);
    assert!(refused.contains("`implementer-1` is not an agent that this version can drive"), "{refused}");

    // With an implementer, and without a possible gatekeeper.
    let started = format!("agents:\n  implementer-1: {{command: \"{stub}\"}}\n{TASK_TYPES}");
    for words in [&["run", "--agent", "implementer-1"][..], &["run", "--workers", "1", "--agent", "implementer-1"]] {
        let world = begun(&started);
        let ran = world.run(words);
        assert_eq!(ran.code, 0, "{ran}");
        let states: Vec<String> = world
            .json_lines(&["task", "list", "--all", "--json"])
            .iter()
            .map(|task| task["state"].to_string())
            .collect();
        assert_eq!(states, ["\"completed\"", "\"ready\"", "\"completed\""], "{ran}");
        let left = ran.stdout.lines().find(|line| line.trim_start().starts_with("left: T2")).unwrap();
        assert!(left.ends_with("A product: `gatekeeper-qa` is not a known agent"), "{ran}");
        // There is no other task.
        let refused = world.run(words);
        assert_eq!(refused.code, 64, "{refused}");
        assert!(refused.stderr.contains("it is to judge tasks of the type `product`"), "{refused}");
    }
    // An agent without a description works on nothing; the other one of the type does.
    let world = begun(&started);
    let ran = world.run(&["run", "--workers", "1"]);
    assert!(ran.stdout.contains("\ndone: T3\n"), "{ran}");
    assert!(ran.stdout.contains("\nleft: T2  A product: `gatekeeper-qa` is not a known agent\n"), "{ran}");

    // With a gatekeeper all tasks are worked on.
    let judge = r#"  gatekeeper-qa: {command: "cat > /dev/null; echo '{\"approved\": true, \"summary\": \"Fine.\"}'"}"#;
    let all = started
        .replace("agents:\n  implementer-1", &format!("test_command: 'true'\nagents:\n{judge}\n  implementer-1"));
    let world = begun(&all);
    let ran = world.run(&["run", "--workers", "2", "--agent", "implementer-1"]);
    assert!(ran.code == 0 && ran.stdout.contains("\ndone: T1, T2, T3\n"), "{ran}");
}
