//! Output to a terminal, a pipe, and a closed reader

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::TestWorld;
use crate::support::terminal::run_in_terminal;

/// More than a pipe holds.
fn create_long_tasks() -> TestWorld {
    let world = TestWorld::new();
    world.write("body.md", "x".repeat(200_000));
    world.run_ok(&["task", "add", "One", "--body-file", "body.md"]);
    world.run_ok(&["task", "add", "Two", "--body-file", "body.md"]);
    world
}

const LONG_COMMANDS: &[&[&str]] = &[
    &["events", "--json"],
    &["task", "list", "--json"],
    &["task", "show", "T1"],
    &["completions", "zsh"],
    &["demo"],
    &["--help"],
];

#[test]
fn command_succeeds_when_reader_closes_at_once() {
    let world = create_long_tasks();
    for words in LONG_COMMANDS {
        let mut child = world.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{words:?}: {ended:?}");
    }
}

#[test]
fn command_succeeds_when_reader_closes_after_one_line() {
    let world = create_long_tasks();
    for words in LONG_COMMANDS {
        let mut child = world.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{words:?}: {ended:?}");
    }
}

/// The failure cannot be written either: the exit code is left.
#[test]
fn failure_with_closed_streams_keeps_its_exit_code() {
    let world = TestWorld::new();
    let mut child =
        world.command(&["task", "show", "T9"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn command_fails_when_output_device_is_full() {
    let world = TestWorld::with_tasks(&["One"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = world.run_command(world.command(&["task", "list"]).stdout(full));
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("error: cannot write the output\ncaused by: "), "{ran}");
}

#[test]
fn colours_on_a_terminal_only() {
    let world = TestWorld::with_tasks(&["One"]);
    for words in
        [&["task", "list"][..], &["status"], &["events"], &["task", "graph"], &["doctor"], &["task", "show", "T9"]]
    {
        let (shown, _) = run_in_terminal(&mut world.command(words), 100);
        assert!(shown.contains("\u{1b}["), "{words:?}: {shown}");
        let (plain, _) = run_in_terminal(world.command(words).env("NO_COLOR", "1"), 100);
        assert!(!plain.contains('\u{1b}'), "{words:?}: {plain}");
        let (dumb, _) = run_in_terminal(world.command(words).env("NO_COLOR", "").env("CLICOLOR", "0"), 100);
        assert!(!dumb.contains('\u{1b}'), "{words:?}: {dumb}");
        let piped = world.run(words);
        assert!(!piped.stdout.contains('\u{1b}') && !piped.stderr.contains('\u{1b}'), "{words:?}: {piped}");
    }
    let (json, _) = run_in_terminal(&mut world.command(&["task", "list", "--json"]), 100);
    assert!(!json.contains('\u{1b}'), "{json}");
}

/// On a terminal a line is cut to its width; in a pipe nothing is cut.
#[test]
fn lines_fit_the_terminal() {
    let world = TestWorld::with_tasks(&[
        "A goal of many words that goes on and on until no one at all wants to read any more of it, 漢字漢字漢字漢字漢字",
    ]);
    for columns in [55, 60, 80, 100] {
        for words in [&["task", "list"][..], &["task", "graph"], &["events"], &["status"]] {
            let (shown, _) = run_in_terminal(world.command(words).env("NO_COLOR", "1"), columns);
            let goal = shown.lines().find(|line| line.contains("  A")).unwrap();
            let wide: usize = goal.chars().map(|c| if c.is_ascii() || c == '…' { 1 } else { 2 }).sum();
            assert!(wide <= usize::from(columns), "{columns}: {goal}");
            assert!(goal.contains('…'), "{goal}");
        }
    }
    assert!(world.run_ok(&["task", "list"]).contains("漢字漢字"));
    // A single task is shown whole.
    let (shown, _) = run_in_terminal(world.command(&["task", "show", "T1"]).env("NO_COLOR", "1"), 80);
    assert!(shown.contains("any more of it, 漢字漢字"), "{shown}");
}

#[test]
fn completions_for_every_shell() {
    let world = TestWorld::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(world.run_ok(&["completions", shell]).contains("undepend"), "{shell}");
        assert_eq!(world.json(&["completions", shell])["shell"], shell);
    }
}

/// In a narrow terminal, lines break between words.
#[test]
fn messages_are_broken_between_words() {
    let world = TestWorld::new();
    let (shown, _) = run_in_terminal(world.command(&["why", "nothing"]).env("NO_COLOR", "1"), 44);
    assert!(
        shown.starts_with(
            "error: `nothing` is no task, session,\n  conversation, stop hook or series of\n  iterations\nhint: "
        ),
        "{shown}"
    );
    assert!(shown.lines().all(|line| line.chars().count() <= 44), "{shown}");
}
