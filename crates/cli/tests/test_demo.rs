//! `windlass demo`: its output is real, and nothing of it is left

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::TestWorld;

/// A world whose temporary directory is its own.
fn create_demo_directory() -> (TestWorld, PathBuf) {
    let world = TestWorld::empty();
    let temporary = world.path("tmp");
    fs::create_dir(&temporary).unwrap();
    (world, temporary)
}

fn is_empty_directory(directory: &PathBuf) -> bool {
    fs::read_dir(directory).unwrap().count() == 0
}

#[test]
fn demo_with_missing_tmpdir_reports_path_and_hint() {
    let (world, temporary) = create_demo_directory();
    let nowhere = temporary.join("nowhere");
    let ran = world.run_command(world.command(&["demo"]).env("TMPDIR", &nowhere));
    let named = format!("error: cannot make a temporary directory in `{}`\n", nowhere.display());
    assert!(ran.code == 1 && ran.stderr.starts_with(&named), "{ran}");
    assert!(ran.stderr.ends_with("hint: set TMPDIR to a directory that you may write to\n"), "{ran}");
}

#[test]
fn demo_prints_all_loop_steps_and_removes_temporary_files() {
    let (world, temporary) = create_demo_directory();
    let ran = world.run_command(world.command(&["demo"]).env("TMPDIR", &temporary));
    assert!(ran.code == 0 && ran.stderr.is_empty(), "{ran}");
    let mut rest = ran.stdout.as_str();
    // In this order.
    for expected in [
        "FAIL test_lower_case",
        "agent: scripted:play.yaml\n",
        " is trusted\n",
        "T2  created  P2  Write the guide (waits for 1)\n",
        "task T1  Make the tests pass\n",
        "[Hook retry 1/5: ",
        "[Hook retry 2/5: ",
        "  tests ok\n",
        "final delivery turn with one piece of feedback\n  agent: I have read what changed.",
        "T1 is completed\n",
        "task T2  Write the guide\n",
        "Killed\n",
        ", resumed\n",
        "turn interrupted\n",
        "final delivery turn with one piece of feedback\n  agent: I have read what changed.",
        "complete after 3 iterations\n",
        "ok   test_punctuation\n",
        "T2  completed  P2  Write the guide\n",
        ", resumed\n",
        "ok     store",
        "Now in a project of your own:\n",
    ] {
        let found = rest.find(expected);
        rest = &rest[found.unwrap_or_else(|| panic!("{expected:?} is not in\n{rest}"))..][expected.len()..];
    }
    assert!(!ran.stdout.contains("error"), "{ran}");
    let wide = rest.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "what comes next fits on any terminal");
    assert!(is_empty_directory(&temporary), "{:?}", fs::read_dir(&temporary).unwrap().collect::<Vec<_>>());
    assert_eq!(world.run(&["demo", "--json"]).code, 64);
}

/// Interruptions at every step.
#[test]
fn demo_interrupted_by_signal_removes_temporary_files() {
    for (line, signal, code) in
        [("# A small", Signal::INT, 130), ("$ windlass run", Signal::TERM, 143), ("task T2", Signal::HUP, 129)]
    {
        let (world, temporary) = create_demo_directory();
        let mut demo = world.command(&["demo"]);
        let mut child = demo.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut shown = String::new();
        while !shown.starts_with(line) {
            shown.clear();
            assert!(lines.read_line(&mut shown).unwrap() > 0, "{line} is shown");
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        lines.read_to_string(&mut shown).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{shown}");
        assert!(is_empty_directory(&temporary), "{shown}");
    }
}

#[test]
fn demo_with_keep_flag_preserves_project_directory() {
    let (world, temporary) = create_demo_directory();
    let ran = world.run_command(world.command(&["demo", "--keep"]).env("TMPDIR", &temporary));
    assert_eq!(ran.code, 0, "{ran}");
    let place = ran.stdout.lines().find_map(|line| line.strip_prefix("The project is in ")).unwrap().to_owned();
    assert!(fs::read_to_string(PathBuf::from(place).join("GUIDE.md")).unwrap().contains("sh slug.sh"));
}
