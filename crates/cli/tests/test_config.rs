//! `windlass config check` and `schema`: every mistake is shown in its place

use std::time::{Duration, Instant};

use insta::assert_snapshot;

use crate::support::TestWorld;

fn check_config(world: &TestWorld, text: impl AsRef<[u8]>) -> String {
    world.write(".windlass/config.yaml", text);
    world.expect_failure(&["config", "check"])
}

#[test]
fn config_mistakes_are_reported_with_source_position() {
    let world = TestWorld::new();
    assert_snapshot!(check_config(&world, "version: 1\nhoooks: {}\n"), @"
    error: unknown key `hoooks`
     --> $WORK/.windlass/config.yaml:2:1
      |
    2 | hoooks: {}
      | ^^^^^^
    hint: did you mean `hooks`?
    [64 config]
    ");
    assert_snapshot!(check_config(&world, "hooks:\n  stop:\n    - comand: ./check.sh\n"), @"
    error: unknown key `comand`
     --> $WORK/.windlass/config.yaml:3:7
      |
    3 |     - comand: ./check.sh
      |       ^^^^^^
    hint: did you mean `command`?
    [64 config]
    ");
    assert_snapshot!(check_config(&world, "agent: claude\nagent: codex\n"), @"
    error: the key `agent` is given twice
     --> $WORK/.windlass/config.yaml:2:1
      |
    2 | agent: codex
      | ^^^^^
    hint: keep one of them
    [64 config]
    ");
    assert_snapshot!(check_config(&world, "limits:\n  max_iterations: many\n"), @"
    error: `max_iterations`: expected a whole number, 1 or more, found the text `many`
     --> $WORK/.windlass/config.yaml:2:19
      |
    2 |   max_iterations: many
      |                   ^^^^
    [64 config]
    ");
    assert_snapshot!(check_config(&world, "hooks:\n  stop:\n    - command: ./c\n      timeout: 5 lightyears\n"), @"
    error: `timeout`: expected a number of seconds, or a length of time such as `500ms`, `30s`, `2m`, `4h`, found the text `5 lightyears`
     --> $WORK/.windlass/config.yaml:4:16
      |
    4 |       timeout: 5 lightyears
      |                ^^^^^^^^^^^^
    [64 config]
    ");
    assert_snapshot!(check_config(&world, "hooks:\n  stop:\n    - command: ./c\n      priority: high\n"), @"
    error: `priority`: expected a whole number, found the text `high`
     --> $WORK/.windlass/config.yaml:4:17
      |
    4 |       priority: high
      |                 ^^^^
    [64 config]
    ");
    assert_snapshot!(check_config(&world, "hooks: [stop: {\n"), @"
    error: not valid YAML: unclosed bracket '{'
     --> $WORK/.windlass/config.yaml:1:15
      |
    1 | hooks: [stop: {
      |               ^
    hint: put text that begins with one of `{[@*&!%` in quotes
    [64 config]
    ");
    assert_snapshot!(check_config(&world, b"agent: \"caf\xe9\"\n"), @r#"
    error: not UTF-8 text: byte 0xe9 at offset 11
     --> $WORK/.windlass/config.yaml:1:12
      |
    1 | agent: "caf�"
      |            ^
    hint: save the file as UTF-8
    [64 config]
    "#);
    assert_snapshot!(check_config(&world, "hooks:\n  before_submit: [creat_pr]\n"), @"
    error: unknown built-in hook `creat_pr`
     --> $WORK/.windlass/config.yaml:2:19
      |
    2 |   before_submit: [creat_pr]
      |                   ^^^^^^^^
    hint: did you mean `create_pr`?
    [64 config]
    ");
}

/// A name that no task can have.
#[test]
fn names_of_task_types() {
    let world = TestWorld::new();
    assert_snapshot!(check_config(&world, "task_types:\n  hot fix: {}\n"), @"
    error: `hot fix` is not a task type's name (letters, digits, _ and -, at most 64)
     --> $WORK/.windlass/config.yaml:2:3
      |
    2 |   hot fix: {}
      |   ^^^^^^^
    [64 config]
    ");
}

/// Programs get the place in the message.
#[test]
fn mistakes_as_json() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "version: 1\nhoooks: {}\n");
    assert_snapshot!(world.run(&["config", "check", "--json"]), @r#"
    {"error":{"causes":[],"code":"config","hint":"did you mean `hooks`?","message":"$WORK/.windlass/config.yaml:2:1: unknown key `hoooks`"}}
    [exit 64]
    "#);
}

#[test]
fn config_with_deep_nesting_is_rejected_within_two_seconds() {
    let world = TestWorld::new();
    for text in ["[".repeat(100_000), "{a: ".repeat(25_000), "- ".repeat(50_000)] {
        let began = Instant::now();
        let said = check_config(&world, &text);
        assert!(said.starts_with("error: too much YAML"), "{said}");
        // Two processes were started; the bound is generous for a busy machine.
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

/// A wrong configuration stops no command that only looks at tasks.
#[test]
fn read_only_commands_succeed_despite_invalid_configuration() {
    let world = TestWorld::with_tasks(&["One"]);
    world.write(".windlass/config.yaml", "hoooks: {}\n");
    for words in [&["task", "list"][..], &["task", "show", "T1"], &["events"], &["task", "graph"], &["status"]] {
        world.run_ok(words);
    }
    assert_snapshot!(world.run(&["status"]), @"
    project  $WORK
    its configuration is wrong: `windlass config check` shows where
    tasks    1 ready

    next
    T1  ready  P2  One
    ");
    assert!(world.json(&["status"])["trust"].is_null());
    assert_snapshot!(world.expect_failure(&["task", "add", "Two"]), @"
    error: unknown key `hoooks`
     --> $WORK/.windlass/config.yaml:1:1
      |
    1 | hoooks: {}
      | ^^^^^^
    hint: did you mean `hooks`?
    [64 config]
    ");
    assert_snapshot!(world.run(&["doctor"]), @"
    wrong  configuration
           $WORK/.windlass/config.yaml:1:1: unknown key `hoooks`
           hint: `windlass config check` shows the place
    ok     store          2 events
    [exit 1]
    ");
}

#[test]
fn config_check_accepts_named_file_and_rejects_missing_or_directory() {
    let world = TestWorld::new();
    world.write("other.yaml", "version: 1\nagent: claude\n");
    assert_snapshot!(world.run(&["config", "check", "other.yaml"]), @"
    ok  $WORK/other.yaml
        hooks       none
        task types  none
        agent       claude
    ");
    assert_snapshot!(world.run(&["config", "check", "other.yaml", "--json"]), @r#"
    {"agent":"claude","agents":[],"effectfulHooks":0,"exists":true,"file":"$WORK/other.yaml","hooks":0,"ok":true,"points":{},"taskTypes":[],"validators":[],"warnings":[]}
    "#);
    assert_snapshot!(world.expect_failure(&["config", "check", "missing.yaml"]), @"
    error: $WORK/missing.yaml: there is no such file
    [64 config]
    ");
    assert_snapshot!(world.expect_failure(&["config", "check", "."]), @"
    error: $WORK/.: is a directory, not a file
    hint: name a file, or put one in its place
    [64 config]
    ");
}

#[test]
fn gate_whose_checks_can_only_skip_is_warned_about() {
    let world = TestWorld::new();
    world.write(".windlass/config.yaml", "hooks: {stop: [run_tests], before_submit: [run_tests, create_pr]}\n");
    let told = world.run_ok(&["config", "check"]);
    for point in ["stop", "before_submit"] {
        let warning =
            format!("nothing is checked at `{point}`: `run_tests` finds no tests in this project and can only skip");
        assert!(told.contains(&warning), "{told}");
    }
    world.write("Cargo.toml", "");
    assert!(!world.run_ok(&["config", "check"]).contains("nothing is checked"));
}
