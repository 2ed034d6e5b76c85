//! Command lines that cannot be understood: 64, in the words of every other failure

use insta::assert_snapshot;

use crate::support::World;

#[test]
fn wrong_values() {
    let world = World::with_tasks(&["One"]);
    assert_snapshot!(world.fails(&["task", "show", "12"]), @"
    error: `12` is not a value for ID
    caused by: `12` is not a task id such as T12
    hint: `windlass task show --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "depend", "T1", "two"]), @"
    error: `two` is not a value for ON
    caused by: `two` is not a task id such as T12
    hint: `windlass task depend --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "--priority", "9"]), @"
    error: `9` is not a value for --priority
    caused by: 9 is no priority: 0 (most urgent) to 4
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "-p", "high"]), @"
    error: `high` is not a value for --priority
    caused by: `high` is no priority: 0 (most urgent) to 4
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "claim", "--lease", "5 lightyears"]), @"
    error: `5 lightyears` is not a value for --lease
    caused by: expected a length of time such as `30s`, `2m`, `4h`
    hint: `windlass task claim --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "claim", "--lease", "0"]), @"
    error: `0` is not a value for --lease
    caused by: must be longer than 0
    hint: `windlass task claim --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "claim", "--owner", "a b"]), @"
    error: `a b` is not a value for --owner
    caused by: `a b` is not an owner's name (letters, digits, _ and -, at most 64)
    hint: `windlass task claim --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "--type", "a b"]), @"
    error: `a b` is not a value for --type
    caused by: `a b` is not a task type's name (letters, digits, _ and -, at most 64)
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "list", "--limit", "0"]), @"
    error: `0` is not a value for --limit
    caused by: expected a whole number from 1 on
    hint: `windlass task list --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "--priority", "-1"]), @"
    error: `-1` is not a value for --priority
    caused by: `-1` is no priority: 0 (most urgent) to 4
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "start", "T1", "--epoch", "one"]), @"
    error: `one` is not a value for --epoch
    caused by: expected a whole number from 0 to 9223372036854775807
    hint: `windlass task start --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn names_that_are_not_on_the_list() {
    let world = World::new();
    assert_snapshot!(world.fails(&["task", "list", "--state", "redy"]), @"
    error: `redy` is not a value for --state
    caused by: there are created, ready, active, submitted, completed, blocked, needs_continuation, failed, deleted
    hint: did you mean `ready`?
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["events", "--type", "task_complete"]), @"
    error: `task_complete` is not a value for --type
    hint: did you mean `task_completed`?
    [64 usage]
    ");
    assert!(world.fails(&["events", "--type", "foo"]).contains("caused by: there are task_created, "));
    assert_snapshot!(world.fails(&["completions", "tcsh"]), @"
    error: `tcsh` is not a value for SHELL
    caused by: there are bash, elvish, fish, powershell, zsh
    hint: did you mean `zsh`?
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "graph", "--format"]), @"
    error: --format needs a value
    caused by: there are text, dot, mermaid, json
    hint: `windlass task graph --help` shows how it is used
    [64 usage]
    ");
}

#[test]
fn wrong_words() {
    let world = World::new();
    assert_snapshot!(world.fails(&["tsk"]), @"
    error: there is no command `tsk`
    hint: did you mean `task`?
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "lst"]), @"
    error: there is no command `lst`
    hint: did you mean `list`?
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["frobnicate"]), @"
    error: there is no command `frobnicate`
    hint: `windlass --help` lists the commands
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "--lable", "y"]), @"
    error: there is no option `--lable`
    hint: did you mean `--label`?
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "-z"]), @"
    error: there is no option `-z`
    hint: `windlass task add --help` lists the options; text that begins with a dash goes after `--`
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "show", "T1", "T2"]), @"
    error: `T2` is one argument too many
    hint: `windlass task show --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add"]), @"
    error: GOAL is missing
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "depend"]), @"
    error: ID and ON are missing
    hint: `windlass task depend --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "--body", "a", "--body-file", "b"]), @"
    error: --body and --body-file exclude each other
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "add", "x", "--body", "a", "--body", "b"]), @"
    error: --body is given more than once
    hint: `windlass task add --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["task", "list", "--json=yes"]), @"
    error: --json takes no value
    hint: `windlass task list --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.fails(&["doctor", "--export", "a", "--restore", "b"]), @"
    error: --export and --restore exclude each other
    hint: `windlass doctor --help` shows how it is used
    [64 usage]
    ");
}

/// Without a command there is help, and the exit code of a mistake.
#[test]
fn no_command() {
    let world = World::empty();
    for words in [&[][..], &["task"], &["config"]] {
        let ran = world.run(words);
        assert!(ran.code == 64 && ran.stdout.is_empty() && ran.stderr.contains("Examples:"), "{words:?}\n{ran}");
        let ran = world.run(&[words, &["--json"]].concat());
        assert!(ran.code == 64 && ran.stdout.starts_with(r#"{"error":{"#) && ran.stderr.is_empty(), "{ran}");
    }
    assert_snapshot!(world.run(&["--json"]), @r#"
    {"error":{"causes":[],"code":"usage","hint":"`windlass --help` lists the commands","message":"a command is missing"}}
    [exit 64]
    "#);
}

#[test]
fn help_is_found_however_it_is_asked_for() {
    let world = World::empty();
    let help = world.ok(&["task", "add", "--help"]);
    assert_eq!(world.ok(&["help", "task", "add"]), help);
    assert_eq!(world.ok(&["task", "help", "add"]), help);
    assert_eq!(world.ok(&["config", "help"]), world.ok(&["config", "--help"]));
    assert_eq!(world.ok(&["help"]), world.ok(&["--help"]));
    assert!(world.ok(&["--version"]).starts_with("windlass "));
    assert!(world.fails(&["help", "frobnicate"]).starts_with("error: there is no command `frobnicate`"));
}
