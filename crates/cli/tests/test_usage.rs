//! Command lines that cannot be parsed: exit code 64, with the usual form of failures

use insta::assert_snapshot;

use crate::support::TestWorld;

#[test]
fn invalid_argument_values_are_reported_with_hint() {
    let world = TestWorld::with_tasks(&["One"]);
    assert_snapshot!(world.expect_failure(&["task", "show", "12"]), @"
    error: invalid value '12' for '<ID>': `12` is not a task id such as T12
    hint: `windlass task show --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "depend", "T1", "two"]), @"
    error: invalid value 'two' for '<ON>': `two` is not a task id such as T12
    hint: `windlass task depend --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--priority", "9"]), @"
    error: invalid value '9' for '--priority <N>': 9 is not a priority: 0 (most urgent) to 4
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "-p", "high"]), @"
    error: invalid value 'high' for '--priority <N>': `high` is not a priority: 0 (most urgent) to 4
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "claim", "--lease", "5 lightyears"]), @"
    error: invalid value '5 lightyears' for '--lease <DURATION>': expected a length of time such as `30s`, `2m`, `4h`
    hint: `windlass task claim --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "claim", "--lease", "0"]), @"
    error: invalid value '0' for '--lease <DURATION>': must be longer than 0
    hint: `windlass task claim --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "claim", "--owner", "a b"]), @"
    error: invalid value 'a b' for '--owner <NAME>': `a b` is not an owner's name (letters, digits, _ and -, at most 64)
    hint: `windlass task claim --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--type", "a b"]), @"
    error: invalid value 'a b' for '--type <TYPE>': `a b` is not a task type's name (letters, digits, _ and -, at most 64)
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "list", "--limit", "0"]), @"
    error: invalid value '0' for '--limit <N>': expected a whole number from 1 on
    hint: `windlass task list --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--priority", "-1"]), @"
    error: invalid value '-1' for '--priority <N>': `-1` is not a priority: 0 (most urgent) to 4
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "start", "T1", "--epoch", "one"]), @"
    error: invalid value 'one' for '--epoch <N>': expected a whole number from 0 to 9223372036854775807
    hint: `windlass task start --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn names_that_are_not_on_the_list() {
    let world = TestWorld::new();
    assert_snapshot!(world.expect_failure(&["task", "list", "--state", "redy"]), @"
    error: invalid value 'redy' for '--state <STATE>' [possible values: created, ready, active, submitted, completed, blocked, needs_continuation, failed, deleted]
    hint: did you mean `ready`? `windlass task list --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["events", "--type", "task_complete"]), @"
    error: invalid value 'task_complete' for '--type <TYPE>' [possible values: task_created, task_ready, task_waiting, task_claimed, lease_expired, task_started, task_updated, completion_claimed, workspace_opened, submission_started, task_submitted, merge_started, pipeline_failed, task_rejected, change_opened, change_merged, task_completed, task_blocked, task_unblocked, task_answered, task_needs_continuatio…
    hint: did you mean `task_completed`? `windlass events --help` shows how it is used
    [64 usage]
    ");
    assert!(world.expect_failure(&["events", "--type", "foo"]).contains("[possible values: task_created, "));
    assert_snapshot!(world.expect_failure(&["completions", "tcsh"]), @"
    error: invalid value 'tcsh' for '<SHELL>' [possible values: bash, elvish, fish, powershell, zsh]
    hint: did you mean `zsh`? `windlass completions --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "graph", "--format"]), @"
    error: a value is required for '--format <FORMAT>' but none was supplied [possible values: text, dot, mermaid, json]
    hint: `windlass task graph --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn unknown_or_conflicting_arguments_are_reported_with_hint() {
    let world = TestWorld::new();
    assert_snapshot!(world.expect_failure(&["tsk"]), @"
    error: unrecognized subcommand 'tsk'
    hint: did you mean `task`? `windlass --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "lst"]), @"
    error: unrecognized subcommand 'lst'
    hint: did you mean `list`? `windlass task --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["frobnicate"]), @"
    error: unrecognized subcommand 'frobnicate'
    hint: `windlass --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--lable", "y"]), @"
    error: unexpected argument '--lable' found
    hint: did you mean `--label`? `windlass task add --help` shows how it is used; text that begins with a dash goes after `--`
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "-z"]), @"
    error: unexpected argument '-z' found
    hint: `windlass task add --help` shows how it is used; text that begins with a dash goes after `--`
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "show", "T1", "T2"]), @"
    error: unexpected argument 'T2' found
    hint: `windlass task show --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add"]), @"
    error: the following required arguments were not provided: <GOAL>
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "depend"]), @"
    error: the following required arguments were not provided: <ID> <ON>
    hint: `windlass task depend --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--body", "a", "--body-file", "b"]), @"
    error: the argument '--body <TEXT>' cannot be used with '--body-file <FILE>'
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--body", "a", "--body", "b"]), @"
    error: the argument '--body <TEXT>' cannot be used multiple times
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "list", "--json=yes"]), @"
    error: unexpected value 'yes' for '--json' found; no more were expected
    hint: `windlass task list --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["doctor", "--export", "a", "--restore", "b"]), @"
    error: the argument '--export <FILE>' cannot be used with '--restore <FILE>'
    hint: `windlass doctor --help` shows how it is used
    [64 usage]
    ");
}

/// Without a command there is help, and the exit code of a mistake.
#[test]
fn missing_command_prints_help_and_fails() {
    let world = TestWorld::empty();
    for words in [&[][..], &["task"], &["config"]] {
        let ran = world.run(words);
        assert!(ran.code == 64 && ran.stdout.is_empty() && ran.stderr.contains("Examples:"), "{words:?}\n{ran}");
        let ran = world.run(&[words, &["--json"]].concat());
        assert!(ran.code == 64 && ran.stdout.starts_with(r#"{"error":{"#) && ran.stderr.is_empty(), "{ran}");
    }
    assert_snapshot!(world.run(&["--json"]), @r#"
    {"error":{"causes":[],"code":"usage","hint":"`windlass --help` shows how it is used","message":"a command is missing"}}
    [exit 64]
    "#);
}

#[test]
fn help_is_found_however_it_is_asked_for() {
    let world = TestWorld::empty();
    let help = world.run_ok(&["task", "add", "--help"]);
    assert_eq!(world.run_ok(&["help", "task", "add"]), help);
    assert_eq!(world.run_ok(&["task", "help", "add"]), help);
    assert_eq!(world.run_ok(&["config", "help"]), world.run_ok(&["config", "--help"]));
    assert_eq!(world.run_ok(&["help"]), world.run_ok(&["--help"]));
    assert!(world.run_ok(&["--version"]).starts_with("windlass "));
    assert!(world.expect_failure(&["help", "frobnicate"]).starts_with("error: unrecognized subcommand 'frobnicate'"));
}
