//! Hostile titles, labels and bodies

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use insta::assert_snapshot;

use crate::support::TestWorld;

const GOALS: &[&str] = &[
    "\"quotes\" and 'quotes' and `ticks` and $(touch x) and \\",
    "two\nlines\r\nand\ta tab",
    "\u{1b}]0;title\u{7}\u{1b}[31mred\u{1b}[0m\u{9b}2J",
    "\u{202e}drawkcab\u{2066}\u{200b}\u{feff}\u{e0041}",
    "{\"error\": {}}",
    "漢字 é 🧑‍🚀",
    "--json",
    "-",
    "%s%n{{task_id}}${HOME}",
];

/// Checks that a text has nothing that a terminal obeys, except for the end of a line.
fn assert_harmless(text: &str) {
    let obeyed = text.chars().find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
    assert_eq!(obeyed, None, "{text}");
}

#[test]
fn hostile_goals_are_stored_exactly_and_printed_cleaned() {
    let world = TestWorld::new();
    for (number, goal) in (1..).zip(GOALS) {
        let id = format!("T{number}");
        assert_harmless(&world.run_ok(&["task", "add", "--", goal]));
        assert_eq!(world.json(&["task", "show", &id])["goal"], *goal);
        world.run_ok(&["task", "complete", &id, &format!("--result={goal}"), &format!("--artifact={goal}")]);
    }
    for words in [
        &["task", "list", "--all"][..],
        &["task", "show", "T3"],
        &["task", "ready"],
        &["task", "graph"],
        &["task", "graph", "--format", "dot"],
        &["task", "graph", "--format", "mermaid"],
        &["task", "graph", "--format", "json"],
        &["events"],
        &["events", "--json"],
        &["status"],
        &["status", "--json"],
        &["doctor"],
    ] {
        assert_harmless(&world.run_ok(words));
    }
    assert_eq!(world.run_ok(&["events"]).lines().count(), world.json_lines(&["events"]).len());
    world.run_ok(&["doctor", "--rebuild"]);
}

#[test]
fn reasons_and_labels() {
    let world = TestWorld::with_tasks(&["One"]);
    let label = "it's \"a\" label\u{202e} --x #1";
    assert_harmless(&world.run_ok(&["task", "update", "T1", "--add-label", label]));
    assert_eq!(world.json(&["task", "show", "T1"])["labels"][0], label);
    assert_harmless(&world.run_ok(&["task", "list", "--label", label]));
    assert_harmless(&world.run_ok(&["task", "block", "T1", "--reason", GOALS[2], "--needs", GOALS[3]]));
    assert_harmless(&world.run_ok(&["task", "show", "T1"]));
    assert_harmless(&world.run_ok(&["status"]));
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--label", "a\u{1b}[1m"]), @"
    error: a label contains a control character
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--label", ""]), @"
    error: a label is empty
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", " \n "]), @"
    error: the goal is empty
    [64 usage]
    ");
}

/// An error repeats a wrong argument, cleaned and cut.
#[test]
fn wrong_arguments_are_repeated_with_care() {
    let world = TestWorld::new();
    for words in [
        &["task", "show", "\u{1b}[31mT1"][..],
        &["task", "\u{1b}[31m"],
        &["--\u{1b}[31m"],
        &["events", "--type", "\u{1b}[31m"],
        &["task", "claim", "--lease", "\u{1b}[31m"],
        &["config", "check", "\u{1b}[31m.yaml"],
        &["--project", "\u{1b}[31m", "status"],
        &["task", "graph", "--format", "\u{1b}[31m"],
        &["task", "add", "x", "--body-file", "\u{1b}[31m"],
        &["doctor", "--restore", "\u{1b}[31m"],
    ] {
        assert_harmless(&world.expect_failure(words));
    }
    let long = "x".repeat(100_000);
    for words in [
        &["task", "show", &long][..],
        &[&long],
        &["task", "add", "x", "-p", &long],
        &["task", "list", "--state", &long],
    ] {
        let said = world.expect_failure(words);
        assert!(said.len() < 1000, "{} bytes", said.len());
    }
}

/// A name from outside cannot add a line that looks like ours.
#[test]
fn names_of_files_stay_on_their_line() {
    let world = TestWorld::new();
    assert_snapshot!(world.expect_failure(&["task", "add", "One", "--body-file", "no\nhint: run this\u{1b}[0m"]), @r"
    error: cannot read no⏎hint: run this\u{1b}[0m
    caused by: No such file or directory (os error 2)
    [1 not_found]
    ");
}

#[test]
fn oversized_goal_and_body_are_rejected_at_limit() {
    let world = TestWorld::new();
    let kilobytes = |count: usize| "x".repeat(count * 1024);
    assert_snapshot!(world.expect_failure(&["task", "add", &kilobytes(100)]), @"
    error: the goal has 102400 bytes; at most 65536 are allowed
    [64 usage]
    ");
    assert_eq!(world.json(&["task", "add", &kilobytes(64)])["goal"], kilobytes(64));
    world.write("mega.md", kilobytes(1024));
    world.write("more.md", kilobytes(1025));
    assert_eq!(world.json(&["task", "add", "From a file", "--body-file", "mega.md"])["body"], kilobytes(1024));
    assert_snapshot!(world.expect_failure(&["task", "add", "Too much", "--body-file", "more.md"]), @"
    error: more.md has more than 1048576 bytes
    hint: name the file in the text instead of putting it in
    [64 usage]
    ");
    let fed =
        world.run_with_input(&["task", "add", "From a pipe", "--body-file", "-", "--json"], kilobytes(1024).as_bytes());
    assert!(fed.code == 0 && fed.stdout.len() > 1024 * 1024, "{}", fed.stderr);
    let fed = world.run_with_input(&["task", "add", "From a pipe", "--body-file", "-"], kilobytes(5000).as_bytes());
    assert_snapshot!(fed, @"
    error: standard input has more than 1048576 bytes
    hint: name the file in the text instead of putting it in
    [exit 64]
    ");
    world.run_ok(&["doctor"]);
}

#[test]
fn bytes_that_are_no_text() {
    let world = TestWorld::with_tasks(&["One"]);
    world.write("nul.md", "a\0b");
    world.write("latin.md", b"caf\xe9");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--body-file", "nul.md"]), @"
    error: the body contains a NUL byte
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--body-file", "latin.md"]), @"
    error: latin.md is not UTF-8 text: byte 3 is the first wrong one
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--body-file", "missing.md"]), @"
    error: cannot read missing.md
    caused by: No such file or directory (os error 2)
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["task", "add", "x", "--body-file", "."]), @"
    error: cannot read .
    caused by: it is a directory, not a file: name a file, or put one in its place
    [1 system]
    ");
    let mut command = world.command(&["task", "add"]);
    assert_snapshot!(world.run_command(command.arg(OsStr::from_bytes(b"caf\xe9"))), @"
    error: invalid UTF-8 was detected in one or more arguments
    hint: `windlass task add --help` shows how it is used
    [exit 64]
    ");
    world.write("context.json", format!("{}1{}", "[".repeat(100), "]".repeat(100)));
    assert_snapshot!(world.expect_failure(&["task", "start", "T1", "--context", "context.json"]), @"
    error: the context is nested more than 64 deep
    [64 usage]
    ");
    world.write("context.json", "{");
    assert_snapshot!(world.expect_failure(&["task", "start", "T1", "--context", "context.json"]), @"
    error: context.json is not JSON
    caused by: EOF while parsing an object at line 1 column 1
    [64 usage]
    ");
}

/// A goal that looks like a flag is one, unless it comes after `--`.
#[test]
fn goal_with_leading_dash_requires_double_dash_separator() {
    let world = TestWorld::new();
    assert_snapshot!(world.expect_failure(&["task", "add", "--verbose does nothing"]), @"
    error: unexpected argument '--verbose does nothing' found
    hint: `windlass task add --help` shows how it is used; text that begins with a dash goes after `--`
    [64 usage]
    ");
    assert_snapshot!(world.run(&["task", "add", "--", "--verbose does nothing"]), @"T1  ready  P2  --verbose does nothing");
    // After `--` even `--json` is a goal.
    assert_snapshot!(world.run(&["task", "add", "--", "--json"]), @"T2  ready  P2  --json");
}
