//! Tests of the program with a real configuration, and of its code in the guide.
#![expect(clippy::disallowed_methods, reason = "tests start programs and read files of their own")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the program in a project with this configuration, and keeps its state in the same directory.
fn run_program(directory: &Path, configuration: &str) -> Output {
    fs::create_dir_all(directory.join(".windlass")).expect("a fresh directory");
    fs::write(directory.join(".windlass/config.yaml"), configuration).expect("a fresh directory");
    Command::new(env!("CARGO_BIN_EXE_windlass-example-configured-hooks"))
        .arg("Fix the login")
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory.join("state"))
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn configured_hook_runs_before_program_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let hook = "version: 1\nhooks:\n  task_created:\n    - command: jq -r .task.goal > heard\n";
    let ran = run_program(directory.path(), hook);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(fs::read_to_string(directory.path().join("heard")).expect("the hook ran"), "Fix the login\n");
    let printed = text(&ran.stdout);
    assert_eq!(printed, "1  system  config_recorded\n2  T1  task_created\n3  T1  task_ready\n");
}

#[test]
fn failing_hook_is_shown_and_task_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let hook =
        "version: 1\nhooks:\n  task_created:\n    - name: lint\n      command: printf 'no \\033[31mluck' >&2; exit 1\n";
    let ran = run_program(directory.path(), hook);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("warning: hook `lint` failed"), "{}", text(&ran.stderr));
    assert!(!text(&ran.stderr).contains('\u{1b}'), "a terminal obeys nothing of it");
}

#[test]
fn configuration_with_mistake_is_an_error_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let ran = run_program(directory.path(), "version: 1\nhoks: {}\n");
    assert!(!ran.status.success());
    assert!(text(&ran.stderr).contains("hoks"), "{}", text(&ran.stderr));
}

#[test]
fn guide_shows_the_program() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/library.md");
    let guide = fs::read_to_string(guide).expect("a guide");
    let program = include_str!("../src/main.rs");
    let shown = &program[program.find("use std::sync").expect("imports")..];
    assert!(guide.contains(shown), "the guide shows another program");
    assert!(shown.lines().count() <= 30, "{} lines", shown.lines().count());
}
