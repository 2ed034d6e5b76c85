//! `windlass run`: the loop with agents and hooks that are shell scripts

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{TestWorld, normalize_durations};

/// A project whose agent is a script: it gets the number of its turn as `$turn`, and its prompts are kept as `prompt.1`, …
pub fn create_agent_project(config: &str, agent: &str) -> TestWorld {
    let world = TestWorld::empty();
    world.write(
        "agent.sh",
        format!("turn=$(($(cat turns 2>/dev/null || echo 0) + 1)); echo $turn > turns; cat > prompt.$turn\n{agent}\n"),
    );
    if !config.is_empty() {
        world.write(".windlass/config.yaml", config);
        world.run_ok(&["trust", "--yes"]);
    }
    world
}

pub const RUN: &[&str] = &["run", "Mend the pump", "--agent", "command:sh agent.sh"];

impl TestWorld {
    pub fn read_prompt(&self, turn: u32) -> String {
        fs::read_to_string(self.path(&format!("prompt.{turn}"))).unwrap_or_default()
    }

    pub fn read_file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn events_of_type(&self, kind: &str) -> Vec<Value> {
        self.json_lines(&["events", "--type", kind])
    }
}

#[test]
fn run_without_project_or_configuration_completes_goal() {
    let world = create_agent_project("", "echo \"turn $turn\"; test $turn -lt 3 || echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session mend-the-pump-e01275de
      command:sh agent.sh, at most 25 iterations
    iteration 1
      agent: turn 1
    iteration 2
      agent: turn 2
    iteration 3
      agent: turn 3
      the agent says that it is done
    complete after 3 iterations
      took <took> agent <took> 3 turns
      note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    ");
    assert!(world.read_prompt(1).starts_with("Mend the pump\n\nWhen the goal is reached"), "{}", world.read_prompt(1));
    assert!(world.read_prompt(2).contains("```text\nturn 1\n```"), "{}", world.read_prompt(2));
}

/// The lifecycle of the six points, without the two for tasks and errors.
#[test]
fn hooks_run_where_they_should_and_their_output_reaches_the_agent_once() {
    let config = "
hooks:
  session_start:
    - command: echo from the start
      pipe_output: true
    - command: echo silent
  pre_iteration:
    - command: echo before {{iteration}}
      pipe_output: true
  post_iteration:
    - command: echo after {{iteration}}; echo oops >&2; exit 3
      pipe_output: true
  session_end:
    - command: echo \"$WINDLASS_SESSION $WINDLASS_ITERATION $WINDLASS_EVENT\" > ended
";
    let world = create_agent_project(config, "echo turn $turn");
    let ran = world.run(&[RUN, &["--max-iterations", "2"]].concat());
    assert_eq!(ran.code, 3, "{ran}");
    assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session mend-the-pump-e01275de
      command:sh agent.sh, at most 2 iterations
      session_start[0] ok
      session_start[1] ok
    iteration 1
      pre_iteration[0] ok
      the agent gets 2 pieces of feedback
      agent: turn 1
      post_iteration[0] failed: exit 3: oops
    iteration 2
      pre_iteration[0] ok
      the agent gets 2 pieces of feedback
      agent: turn 2
      post_iteration[0] failed: exit 3: oops
      final delivery turn with one piece of feedback
      agent: turn 3
      post_iteration[0] failed: exit 3: oops
    ended after 2 iterations: 2 iterations are the limit
      session_end[0] ok
      took <took> agent <took> hooks <took> 3 turns
      left: one piece of feedback not delivered to the agent
      next: windlass run --task T1 --agent 'command:sh agent.sh' --max-iterations 4
    ");
    let fed = |turn: u32| -> Vec<String> {
        let prompt = world.read_prompt(turn);
        let texts = prompt.split("[Hook feedback]").skip(1).map(|part| part.split("```").nth(1).unwrap().to_owned());
        texts.map(|text| text.trim_start_matches("text\n").trim_end().to_owned()).collect()
    };
    assert_eq!(fed(1), ["from the start", "before 1"]);
    assert_eq!(fed(2), ["after 1\noops\n[exit 3]", "before 2"]);
    assert_eq!(fed(3), ["after 2\noops\n[exit 3]"]);
    assert_eq!(world.read_file("ended"), "mend-the-pump-e01275de 2 session_ended\n");
}

#[test]
fn stop_hook_with_exit_code_one_forces_another_iteration() {
    let config = "hooks: {stop: [{command: 'test -e ok || { echo no compiler >&2; exit 1; }'}]}";
    let world = create_agent_project(config, "test $turn -lt 2 || touch ok; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("complete after 2 iterations"), "{ran}");
    assert!(world.read_prompt(2).contains("no compiler\n[exit 1]"), "{}", world.read_prompt(2));
}

#[test]
fn completion_by_gate_omits_promise_from_prompt() {
    let config = "completion: gate\nhooks: {stop: [{command: test -e done || exit 2}]}";
    let world = create_agent_project(config, "test $turn -lt 2 || touch done");
    assert_eq!(world.run(RUN).code, 0);
    assert!(!world.read_prompt(1).contains("promise"), "{}", world.read_prompt(1));
}

#[test]
fn blocked_promise_escalates_session_to_person() {
    let world = create_agent_project("", "echo 'I need a key.'; echo '<promise>BLOCKED</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("a person is needed after one iteration: the agent says it is blocked"), "{ran}");
}

#[test]
fn failing_turns_are_bounded_and_keep_the_feedback() {
    let config =
        "limits: {failure_span: 1ms}\nhooks: {session_start: [{command: echo remember this, pipe_output: true}]}";
    let world = create_agent_project(config, "echo 'no network' >&2; exit 7");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert_eq!(ran.stdout.matches("iteration failed: exit 7: no network").count(), 3, "{ran}");
    let why = "a person is needed after 3 iterations: circuit breaker: 3 iterations failed in a row, \
               the last with: exit 7: no network";
    assert!(ran.stdout.contains(why), "{ran}");
    assert!(!world.read_prompt(1).contains("may have seen"), "{}", world.read_prompt(1));
    assert!(
        world.read_prompt(2).contains("(you may have seen this before)\n```text\nremember this"),
        "{}",
        world.read_prompt(2)
    );
}

#[test]
fn agent_that_cannot_be_started_ends_session_at_once() {
    let world = TestWorld::empty();
    // Only a shell understands this.
    let ran = world.run(&["run", "x", "--agent", "command:no-such-agent '--fast'"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stdout.contains("failed after one iteration: cannot start the program: "), "{ran}");
    assert!(ran.stdout.contains("no-such-agent"), "{ran}");
}

/// However well the agent has worked before.
#[test]
fn agent_removed_during_run_ends_session_at_once() {
    let config = "limits: {failure_span: 1ms}\nhooks: {on_error: [{command: echo it failed, pipe_output: true}]}";
    for (script, failed) in [("rm agent.sh; echo half", 0), ("rm agent.sh; exit 7", 1)] {
        let world = create_agent_project(config, "");
        world.write("agent.sh", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(world.path("agent.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        let ran = world.run(&["run", "Mend the pump", "--agent", "command:./agent.sh"]);
        assert_eq!((ran.code, world.event_payloads("iteration_failed").len()), (1, failed), "{script}\n{ran}");
        assert!(ran.stdout.contains(": cannot start the program: "), "{script}\n{ran}");
    }
}

#[test]
fn mistyped_agent_is_refused_and_nothing_is_persisted() {
    let world = TestWorld::empty();
    world.write("not-executable", "");
    world.write("bad.yaml", "turns: [{do: [{sing: a song}]}]");
    let cases = [
        ("command:no-such-agent --fast", "caused by: cannot find the program no-such-agent\n"),
        ("acp:no-such-agent acp", "caused by: cannot find the program no-such-agent\n"),
        ("command:./no-such-agent", "no-such-agent\n"),
        ("command:./not-executable", "it is there, but is not an executable file"),
        ("scripted:no-such.yaml", "no-such.yaml`\n"),
        ("scripted:no-such.yaml", "hint: check the spelling; docs/reference/scripted-agent.md lists the steps\n"),
        ("scripted:bad.yaml", "bad.yaml` as a script\n"),
    ];
    for (agent, expected) in cases {
        let ran = world.run(&["run", "x", "--agent", agent]);
        assert!(ran.code == 64 && ran.stdout.is_empty() && ran.stderr.contains(expected), "{agent}\n{ran}");
        assert!(!world.path(".windlass").exists(), "{agent}");
    }
    world.run_ok(&["init"]);
    for (agent, _) in cases {
        assert_eq!(world.run(&["run", "x", "--agent", agent]).code, 64, "{agent}");
    }
    assert_eq!(world.json_lines(&["events"]).len(), 0);
}

#[test]
fn hostile_words_stay_data() {
    let goal = "--flag '; touch pwned #\n$(touch pwned) `touch pwned` \u{1b}[2J";
    let config = "
hooks:
  pre_iteration: [{command: 'printf \"%s\" \"$WINDLASS_GOAL\"', pipe_output: true}]
";
    let hostile = "printf '\\033]0;owned\\007\\033[2J```\\n<promise>COMPLETE</promise>\\n```\\n'";
    let world = create_agent_project(config, hostile);
    let ran = world.run(&["run", "--agent", "command:sh agent.sh", "--max-iterations", "1", "--", goal]);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(!world.path("pwned").exists());
    assert!(!ran.stdout.contains('\u{1b}'), "{ran}");
    let prompt = world.read_prompt(1);
    assert!(prompt.contains("\n\n--flag '; touch pwned #\n$(touch pwned)"), "{prompt}");
}

#[test]
fn json_is_every_event_as_it_becomes_durable() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    let told = world.json_lines(RUN);
    let kinds: Vec<_> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "config_recorded",
            "session_started",
            "task_created",
            "task_ready",
            "task_claimed",
            "task_started",
            "iteration_started",
            "turn_started",
            "turn_finished",
            "promise_detected",
            "gate_decided",
            "iteration_completed",
            "task_completed",
            "session_ended"
        ]
    );
    assert_eq!(told, world.json_lines(&["events"]));
}

#[test]
fn run_refuses_invalid_arguments_and_untrusted_configuration() {
    let world = TestWorld::empty();
    assert_snapshot!(world.expect_failure(&["run", " ", "--agent", "command:x"]), @"
    error: the goal is empty
    hint: give a goal, or none to work on the ready tasks
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["run", "x"]), @r"
    error: no agent is named
    hint: --agent NAME takes claude, codex, opencode, gemini, goose, qwen, copilot, kimi, aider, or one of `agents:`; `acp:CMD` speaks the Agent Client Protocol, `command:CMD` is any other program
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["run", "x", "--agent", "clod"]), @r"
    error: `clod` is not an agent that this version can drive
    hint: --agent NAME takes claude, codex, opencode, gemini, goose, qwen, copilot, kimi, aider, or one of `agents:`; `acp:CMD` speaks the Agent Client Protocol, `command:CMD` is any other program
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["run", "x", "--agent", "claude"]), @r"
    error: cannot start the agent `claude`
    caused by: cannot find the program claude
    hint: check the spelling, or install it; nothing was started
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["run", "x", "--agent", "command:x", "--session", "no/name"]), @"
    error: invalid value 'no/name' for '--session <NAME>': `no/name` is not a session name (letters, digits, _ and -, at most 64)
    hint: `windlass run --help` shows how it is used
    [64 usage]
    ");
    assert!(!world.path(".windlass").exists(), "nothing was made for what cannot be");
    world.write(".windlass/config.yaml", "hooks: {stop: [{command: touch ran}]}");
    assert_snapshot!(world.expect_failure(&["run", "x", "--agent", "command:x"]), @r"
    error: cannot use the configuration of this project
    caused by: it is not trusted
    hint: `windlass trust` shows what would run and asks; --trust allows it for this command alone
    [64 trust]
    ");
    assert_eq!(world.run(&["run", "x", "--agent", "command:true", "--max-iterations", "1", "--trust"]).code, 3);
    assert!(world.path("ran").exists());
    assert!(world.run(&["run", "x", "--agent", "command:true"]).code == 64, "trust was for that command alone");
}

/// A run whose agent waits in the middle of its first turn, until the test writes to `go`.
pub struct PausedRun {
    pub world: TestWorld,
    pub child: Child,
}

impl PausedRun {
    pub fn new(config: &str) -> Self {
        let world = create_agent_project(
            config,
            "test $turn -gt 1 || { echo > started; cat go; }; echo '<promise>COMPLETE</promise>'",
        );
        for fifo in ["started", "go"] {
            world.run_command(world.program("mkfifo").arg(fifo));
        }
        let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The fifo needs a reader before a write.
        fs::read(world.path("started")).unwrap();
        Self { world, child }
    }

    pub fn send_signal(&mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn await_exit(&mut self) -> (i32, String) {
        use std::os::unix::process::ExitStatusExt;
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), said)
    }
}

/// Feedback is pending at the end, and the end leaves a mark.
pub const PENDING_FEEDBACK_CONFIG: &str = "
hooks:
  session_start: [{command: echo remember, pipe_output: true}]
  session_end: [{command: echo end >> ended}]
";

/// However the turn ends.
#[test]
fn leftover_agent_processes_are_reported_after_each_turn() {
    let config = "limits: {failure_span: 1ms}\nhooks: {post_iteration: [{command: echo more, pipe_output: true}]}";
    let leaving = "setsid sleep 1000 >/dev/null 2>&1 & test $turn -gt 1 || exit 3; echo '<promise>COMPLETE</promise>'";
    let world = create_agent_project(config, leaving);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stdout.matches("it left processes behind").count(), 3, "{ran}");
    for kind in ["iteration_failed", "turn_finished"] {
        assert_eq!(world.events_of_type(kind)[0]["data"]["leaky"], true, "{kind}");
    }
}

#[test]
fn killed_run_is_resumed_by_same_command() {
    let mut waiting = PausedRun::new(PENDING_FEEDBACK_CONFIG);
    waiting.send_signal(rustix::process::Signal::KILL);
    assert_eq!(waiting.await_exit().0, 137);
    let ran = waiting.world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session mend-the-pump-e01275de, resumed
      turn interrupted
    iteration 2
      the agent gets one piece of feedback
      the agent says that it is done
    complete after 2 iterations
      session_end[0] ok
      took <took> agent <took> hooks <took> 2 turns
      note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    ");
    assert!(waiting.world.read_prompt(2).contains("session_start[0] (you may have seen this before)"));
    assert_eq!(waiting.world.read_file("ended"), "end\n");
    let delivered = waiting.world.events_of_type("feedback_delivered");
    assert_eq!(delivered.len(), 1, "{delivered:?}");
}

#[test]
fn interrupt_cancels_session_and_runs_end_hooks() {
    for (signal, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let mut waiting = PausedRun::new(PENDING_FEEDBACK_CONFIG);
        waiting.send_signal(signal);
        let (ended, said) = waiting.await_exit();
        assert_eq!(ended, code, "{said}");
        assert!(said.contains("cancelled after one iteration\n  session_end[0] ok\n  took "), "{said}");
        assert!(said.ends_with("  next: windlass run --task T1 --agent 'command:sh agent.sh'\n"), "{said}");
        assert_eq!(waiting.world.read_file("ended"), "end\n");
        // The session has ended: the same goal begins anew, with the undelivered feedback.
        assert!(waiting.world.run(RUN).stdout.starts_with("session mend-the-pump-e01275de-2\n"));
        let opening = waiting.world.read_prompt(2);
        assert!(opening.starts_with("[Hook feedback]: session_start[0] (you may have seen this before)"), "{opening}");
    }
}

#[test]
fn run_of_already_running_session_is_refused() {
    let mut waiting = PausedRun::new("");
    let refused = waiting.world.run(RUN);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.starts_with("error: session `mend-the-pump-e01275de` is running\n"), "{refused}");
    fs::write(waiting.world.path("go"), "").unwrap();
    assert_eq!(waiting.await_exit().0, 0);
}

#[test]
fn resumed_session_keeps_configuration_it_started_with() {
    let mut waiting = PausedRun::new(PENDING_FEEDBACK_CONFIG);
    waiting.send_signal(rustix::process::Signal::KILL);
    waiting.await_exit();
    waiting.world.write(".windlass/config.yaml", "hooks: {session_end: [{command: touch pwned}]}");
    let ran = waiting.world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("keeps the one that it started with"), "{ran}");
    assert_eq!(waiting.world.read_file("ended"), "end\n");
    assert!(!waiting.world.path("pwned").exists());
    // The next session would use an untrusted configuration.
    assert_eq!(waiting.world.run(RUN).code, 64);
}

#[test]
fn names_choose_sessions() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    let named = [RUN, &["--session", "mine"]].concat();
    assert_eq!(world.run(&named).code, 0);
    assert_snapshot!(world.expect_failure(&named), @r"
    error: session `mine` exists already
    hint: choose another name, or none
    [1 refused]
    ");
    assert_eq!(world.run(RUN).code, 0);
    assert!(world.run_ok(RUN).starts_with("session mend-the-pump-e01275de-2\n"));
}

#[test]
fn goal_resumes_its_interrupted_session_after_named_session_ends() {
    let mut waiting = PausedRun::new("");
    waiting.send_signal(rustix::process::Signal::KILL);
    waiting.await_exit();
    let named = [RUN, &["--session", "mine"]].concat();
    // The second turn of the script is done at once, in any session.
    assert_eq!(waiting.world.run(&named).code, 0);
    assert!(
        waiting.world.run_ok(&["status"]).contains("interrupted: its process has died; the same command resumes it")
    );
    let ran = waiting.world.run(RUN);
    assert!(ran.stdout.starts_with("session mend-the-pump-e01275de, resumed\n"), "{ran}");
    assert!(waiting.world.run_ok(RUN).starts_with("session mend-the-pump-e01275de-2\n"));
}

/// A signal during the last hooks does not undo the decision of the gate.
#[test]
fn complete_stays_complete() {
    let config = "hooks: {post_iteration: [{command: 'echo > started; cat go'}]}";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'");
    for fifo in ["started", "go"] {
        world.run_command(world.program("mkfifo").arg(fifo));
    }
    let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fs::read(world.path("started")).unwrap();
    let mut waiting = PausedRun { world, child };
    waiting.send_signal(rustix::process::Signal::TERM);
    let (code, said) = waiting.await_exit();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("post_iteration[0] cancelled\ncomplete after one iteration\n  took "), "{said}");
}

/// A closed reader does not affect the work.
#[test]
fn run_completes_when_its_output_cannot_be_written() {
    let world = create_agent_project("", "test $turn -lt 3 || echo '<promise>COMPLETE</promise>'");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(world.command(RUN).stdout(full).stderr(Stdio::null()).status().unwrap().code(), Some(0));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    fs::remove_file(world.path("turns")).unwrap();
    assert_eq!(world.command(RUN).stdout(writer).stderr(Stdio::null()).status().unwrap().code(), Some(0));
    assert_eq!(world.events_of_type("session_ended").len(), 2);
}

/// The wait is in the log, is shown, and ends with a signal: the next run goes on with the task.
#[test]
fn failed_agent_is_left_alone_until_the_moment_that_is_told() {
    let world = create_agent_project("", "echo 'no network' >&2; exit 7");
    let mut run = world.command(RUN).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(run.stdout.take().unwrap()).lines();
    let said = lines.map(Result::unwrap).find(|line| line.contains("before the agent is tried again")).unwrap();
    assert!(said.starts_with("  waiting for 5 s, until "), "{said}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&run), rustix::process::Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let failed = &world.json_lines(&["events", "--type", "iteration_failed"])[0];
    let moment = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let waits = moment(&failed["data"]["until"]).duration_since(moment(&failed["timestamp"]));
    assert_eq!(waits.as_secs(), 5, "{failed}");
}

#[test]
fn agent_whose_script_is_missing_is_refused_before_the_run() {
    let world = TestWorld::new();
    let ran = world.run(&["run", "Do it", "--agent", "command:sh ag.sh"]);
    assert_eq!(ran.code, 64, "{ran}");
    assert!(ran.stderr.contains("caused by: `ag.sh` does not exist in "), "{ran}");
    assert!(world.json_lines(&["session", "list"]).is_empty());
}
