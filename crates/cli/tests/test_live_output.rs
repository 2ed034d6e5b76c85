//! The output of a turn in progress, and the ways to name a session.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::TestWorld;
use crate::support::web_page::ServedPage;
use crate::test_run::{RUN, create_agent_project};

const SESSION_NAME: &str = "mend-the-pump-e01275de";

/// An agent that speaks, waits for the test, and ends.
const SPEAKING_AGENT: &str =
    "echo 'I look at the valve.'; echo > started; cat go > /dev/null; echo 'Mended. <promise>COMPLETE</promise>'";

fn create_speaking_project() -> TestWorld {
    let world = create_agent_project("", SPEAKING_AGENT);
    for fifo in ["started", "go"] {
        world.run_command(world.program("mkfifo").arg(fifo));
    }
    world
}

/// A program that the test started, and the lines that it prints.
struct StartedProgram {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl StartedProgram {
    fn new(world: &TestWorld, words: &[&str]) -> Self {
        let mut child = world.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads lines until one has this text.
    #[track_caller]
    fn await_line(&mut self, text: &str) -> String {
        let found = self.lines.by_ref().map(Result::unwrap).find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("no line has {text:?}"))
    }

    fn await_exit(mut self) -> (i32, String) {
        let rest: Vec<String> = self.lines.by_ref().map(Result::unwrap).collect();
        (self.child.wait().unwrap().code().unwrap_or(-1), rest.join("\n"))
    }
}

#[test]
fn followed_logs_show_output_before_turn_ends() {
    let world = create_speaking_project();
    let run = StartedProgram::new(&world, RUN);
    fs::read(world.path("started")).unwrap();
    let mut follower = StartedProgram::new(&world, &["session", "logs", "--follow"]);
    follower.await_line("I look at the valve.");
    let mut json_follower = StartedProgram::new(&world, &["--json", "session", "logs", SESSION_NAME, "--follow"]);
    let line: Value = serde_json::from_str(&json_follower.await_line("live_output")).unwrap();
    assert!(line.to_string().contains("I look at the valve."), "{line}");
    fs::write(world.path("go"), "").unwrap();
    let (code, rest) = follower.await_exit();
    assert_eq!(code, 0, "{rest}");
    assert!(rest.contains("Mended."), "{rest}");
    assert_eq!(rest.matches("I look at the valve.").count(), 0, "the output is shown once: {rest}");
    assert_eq!(json_follower.await_exit().0, 0);
    assert_eq!(run.await_exit().0, 0);
}

#[test]
fn output_of_cancelled_turn_stays_in_logs_and_timeline() {
    let world = create_speaking_project();
    let run = StartedProgram::new(&world, RUN);
    fs::read(world.path("started")).unwrap();
    let mut follower = StartedProgram::new(&world, &["session", "logs", "--follow"]);
    follower.await_line("I look at the valve.");
    world.run_ok(&["session", "cancel", SESSION_NAME]);
    assert_eq!((run.await_exit().0, follower.await_exit().0), (3, 0));
    let logs = world.run_ok(&["session", "logs", SESSION_NAME]);
    assert!(logs.contains("agent: interrupted\n  | I look at the valve.\n"), "{logs}");
    let page = ServedPage::new(&world, &[]);
    let token = ServedPage::create_token(&world, "look");
    let timeline = page.get(&format!("/api/sessions/{SESSION_NAME}"), &token).json();
    let turn = timeline["groups"][1]["items"][0].clone();
    assert_eq!((&turn["kind"], &turn["text"]), (&json!("turn"), &json!("I look at the valve.")), "{timeline}");
    assert_eq!(turn["title"], "interrupted: cancelled");
}

#[test]
fn verbose_run_prints_output_before_turn_ends() {
    let world = create_speaking_project();
    let mut run = StartedProgram::new(&world, &[RUN, &["--verbose"]].concat());
    fs::read(world.path("started")).unwrap();
    run.await_line("I look at the valve.");
    fs::write(world.path("go"), "").unwrap();
    run.await_line("Mended.");
    assert_eq!(run.await_exit().0, 0);
}

#[test]
fn session_is_found_by_task_by_start_of_name_and_by_default() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the valve"]);
    assert_eq!(world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]).code, 0);
    assert_eq!(world.run(RUN).code, 0);
    let found = |words: &[&str]| world.json(&[&["session", "show"], words].concat())["session"].clone();
    assert_eq!(found(&[]), SESSION_NAME);
    assert_eq!(found(&["mend-the-p"]), SESSION_NAME);
    let of_task = found(&["T1"]);
    assert!(of_task.as_str().unwrap().starts_with("t1-"), "{of_task}");
    assert_eq!(
        world.json_lines(&["session", "logs", "T1"]),
        world.json_lines(&["session", "logs", of_task.as_str().unwrap()])
    );
    assert_eq!(world.run(&["run", "Mend the roof", "--agent", "command:sh agent.sh"]).code, 0);
    let error = world.expect_failure(&["session", "show", "mend"]);
    assert!(error.contains("mend-the-roof") && error.contains(SESSION_NAME), "{error}");
    let error = world.expect_failure(&["session", "show", "T9"]);
    assert!(error.contains("T9"), "{error}");
}

#[test]
fn why_without_argument_is_about_newest_session_and_fits_forty_lines() {
    let world = create_agent_project(
        "limits: {max_iterations: 60, thrashing: 0}\nhooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}",
        "echo '<promise>COMPLETE</promise>'",
    );
    world.run(RUN);
    let summary = world.run_ok(&["why"]);
    assert!(summary.contains(SESSION_NAME) && summary.lines().count() <= 40, "{summary}");
    let full = world.run_ok(&["why", "--full"]);
    assert!(full.lines().count() >= summary.lines().count(), "{full}");
}
