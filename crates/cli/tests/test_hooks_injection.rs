//! Hostile text in `{{task_content}}` and `{{error}}`: it arrives byte for byte, and nothing of it is ever run
//!
//! This goes through the whole program: from the command line or an agent into the log, and from there into a shell. The places
//! of a value inside a command are tested in `crates/hooks/tests/scripts.rs`.

use std::fs;

use serde_json::json;

use crate::support::TestWorld;
use crate::support::hook_project::create_hook_project;
use crate::test_run::RUN;

/// Attacks on a shell; `X` is the mark that shows a success.
const ATTACKS: &[&str] = &[
    "$(X)",
    "`X`",
    "; X",
    "& X",
    "| X",
    "&& X",
    "|| X",
    "\nX\n",
    "\r\nX",
    "'; X; '",
    "\"; X; \"",
    "\"$(X)\"",
    "'$(X)'",
    "\\$(X)",
    "\\`X\\`",
    "${Y:-$(X)}",
    "${Y:=`X`}",
    "$((`X`))",
    "<(X)",
    ">(X)",
    "> pwned",
    ">> pwned",
    "< /etc/passwd",
    "(X)",
    "{ X; }",
    "! X",
    "#\nX",
    "EOF\nX\nEOF",
    "END\nX",
    "$'\\n'X",
    "$'\\x60'X$'\\x60'",
    "x=$(X)",
    "X;exit 2",
    "eval X",
    "sh -c X",
    "if X; then X; fi",
    "case X in *) X;; esac",
    "() { :;}; X",
    "() { X; }",
    "$IFS$(X)",
    "$@ $* $# $? $$ $!",
    "$PATH $HOME $WINDLASS_TASK_ID",
    "~ ~root *",
    "* ? [a-z] {a,b}",
    "-n",
    "--",
    "-e \\n",
    "%s %d %n",
    "\\",
    "\\\\",
    "'",
    "\"",
    "''",
    "\"\"",
    "'\"'\"'",
    "\\'",
    "\\\"",
    "`",
    "$",
    "$(",
    "${",
    "$((",
    "((",
    "[[",
    "{{error}}",
    "{{task_content}}",
    "{{ task_id }}",
    "{% for %}",
    "${{x}}",
    "{{{{",
    "}}",
    "a\tb",
    "  two  blanks  ",
    "\u{b}\u{c}",
    "\u{1}\u{2}\u{7f}",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}]0;title\u{7}",
    "\u{202e}evil\u{202c}",
    "é ü 漢字 🦀",
    "\u{feff}bom",
    "\u{2028}line\u{2029}",
    "\u{a0}nbsp",
    "a\nb\nc",
    "a\\\nb",
    "a\n\n\nb",
    "trailing \\",
];

/// Text around an attack.
const ATTACK_CONTEXTS: [&str; 4] = ["a {} b", "'{}'", "\"{}\"", "a'{}\"b"];

/// Every attack by itself.
fn attack_commands() -> impl Iterator<Item = String> {
    ATTACKS.iter().map(|text| text.replace('X', "touch pwned"))
}

/// A project that keeps a value from both of its places in a command.
fn create_recording_project(point: &str, name: &str) -> TestWorld {
    let command = "printf %s {{NAME}} >bare; printf %s \"{{NAME}}\" >quoted".replace("NAME", name);
    create_hook_project(&format!("hooks: {{{point}: [{{name: keep, command: '{command}'}}]}}"))
}

#[track_caller]
fn check_recorded_value(world: &TestWorld, value: &str) {
    for file in ["bare", "quoted"] {
        let arrived = fs::read(world.path(file)).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&arrived), value, "{file}");
        fs::remove_file(world.path(file)).unwrap();
    }
    assert!(!world.has_file("pwned"), "{value:?}");
}

#[test]
fn hostile_goal_reaches_hook_command_without_shell_execution() {
    let world = create_recording_project("task_created", "task_content");
    for value in attack_commands().filter(|value| !value.trim().is_empty()) {
        let ran = world.run(&["task", "add", "--", &value]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{value:?}\n{ran}");
        check_recorded_value(&world, &value);
    }
    // A value that is too long for a variable travels in a file.
    world.write("body", "$(touch pwned) `touch pwned`\n".repeat(4_000));
    world.run_ok(&["task", "add", "Long", "--body-file", "body"]);
    let body = fs::read_to_string(world.path("body")).unwrap();
    // A shell that reads a file into a word drops the newlines at its end.
    check_recorded_value(&world, &format!("Long\n\n{}", body.trim_end()));
}

/// An error is any text of an agent or a program, with control characters.
#[test]
fn hostile_error_reaches_hook_command_without_shell_execution() {
    let world = create_recording_project("on_error", "error");
    for (value, around) in attack_commands().zip(ATTACK_CONTEXTS.iter().cycle()) {
        let value = around.replace("{}", &value);
        world.write("payload", json!({"error": value}).to_string());
        let ran = world.run(&["hooks", "test", "on_error", "--payload", "payload", "--run"]);
        assert_eq!(ran.code, 0, "{value:?}\n{ran}");
        check_recorded_value(&world, &value);
    }
}

/// The agent fails in the real loop, with every attack at once.
#[test]
fn hostile_agent_error_reaches_on_error_hook_without_execution() {
    let world = create_recording_project("on_error", "error");
    let line = attack_commands().filter(|text| !text.contains(char::is_control)).collect::<Vec<_>>().join(" ");
    world.write("attacks", line);
    world.write("agent.sh", "cat attacks >&2; exit 1");
    world.run(&[RUN, &["--max-iterations", "1"]].concat());
    let error = world.event_payloads("iteration_failed")[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("$(touch pwned)") && error.contains("`touch pwned`"), "{error}");
    check_recorded_value(&world, &error);
}
