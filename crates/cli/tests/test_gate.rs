//! The stop gate and the guards of the loop, with the real binary.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use windlass_engine::Timestamp;

use crate::support::hook_project::COMPLETING_AGENT;
use crate::support::terminal::run_in_terminal_with_input;
use crate::support::{TestWorld, normalize_durations};
use crate::test_run::{RUN, create_agent_project};

/// The regression suite of a project: a script that fails three tests, then one, then none.
const REGRESSION_SUITE: &str = r#"#!/bin/sh
for test in auth db api; do
    if [ -e "fixed-$test" ]; then echo "ok   $test"; else echo "FAIL $test"; failed="$failed $test"; fi
done
[ -z "$failed" ] && { echo 'all tests passed'; exit 0; }
echo "$(set -- $failed; echo $#) failed:$failed" >&2
exit 2
"#;

/// Fixes the failures in its prompt, two at a time.
const FIXING_AGENT: &str = r#"
mended=0
for test in $(grep -o 'FAIL [a-z]*' prompt.$turn | cut -d' ' -f2); do
    if [ $mended -lt 2 ]; then touch fixed-$test; mended=$((mended + 1)); fi
done
echo "I mended $mended."
echo '<promise>COMPLETE</promise>'"#;

fn prompt_of_turn(world: &TestWorld, turn: u32) -> String {
    fs::read_to_string(world.path(&format!("prompt.{turn}"))).unwrap_or_default()
}

fn turn_count(world: &TestWorld) -> String {
    fs::read_to_string(world.path("turns")).unwrap_or_default().trim().to_owned()
}

fn gate_decisions(world: &TestWorld) -> Vec<Value> {
    world.event_payloads("gate_decided")
}

/// Three failures, then one, then none: each time the agent gets the remaining ones, in the same iteration.
#[test]
fn regression_suite_sends_agent_back_until_it_passes() {
    let world = create_agent_project("hooks: {stop: [{name: tests, command: sh tests.sh}]}", FIXING_AGENT);
    world.write("tests.sh", REGRESSION_SUITE);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    insta::assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session mend-the-pump-e01275de
      command:sh agent.sh, at most 25 iterations
    iteration 1
      agent: I mended 0.
      the agent says that it is done
      tests blocks: 3 failed: auth db api
      [Hook retry 1/5: 3 failed: auth db api]
      the agent gets one piece of feedback
      agent: I mended 2.
      the agent says that it is done
      tests blocks: 1 failed: api
      [Hook retry 2/5: 1 failed: api]
      the agent gets one piece of feedback
      agent: I mended 1.
      the agent says that it is done
      tests ok
    complete after one iteration
      took <took> agent <took> hooks <took> 3 turns
    ");
    let feedback = |turn: u32| {
        let prompt = prompt_of_turn(&world, turn);
        let from = prompt.find("[Hook feedback]: ").unwrap();
        prompt[from..].split("\n\nWhen the goal").next().unwrap().to_owned()
    };
    insta::assert_snapshot!(feedback(2), @r"
    [Hook feedback]: tests: 3 failed: auth db api
    ```text
    3 failed: auth db api

    FAIL auth
    FAIL db
    FAIL api
    ```
    ");
    insta::assert_snapshot!(feedback(3), @r"
    [Hook feedback]: tests: 1 failed: api
    ```text
    1 failed: api

    ok   auth
    ok   db
    FAIL api
    ```
    ");
    let told: Vec<_> = gate_decisions(&world)
        .iter()
        .map(|decided| {
            format!("{} {}/{} {}", decided["decision"], decided["retries"], decided["maxRetries"], decided["reason"])
        })
        .collect();
    assert_eq!(
        told,
        [
            r#""send_back" 1/5 "3 failed: auth db api""#,
            r#""send_back" 2/5 "1 failed: api""#,
            r#"{"next":{"close":{"ending":"completed"}}} 2/null null"#,
        ]
    );
}

/// A gate that blocks with other words each time.
const NEVER_PASSING_GATE: &str = "hooks: {stop: [{name: check, command: 'echo \"red $(cat turns)\" >&2; exit 2'}]}\n";

#[test]
fn hook_retry_limit_warning_names_configured_outcome() {
    let table = [
        ("escalate", 4, "[Warning: hook retry limit reached after 2 retries: red 3. A person is needed.]"),
        ("complete", 0, "[Warning: hook retry limit reached after 2 retries: red 3. It counts as complete anyway.]"),
        ("ask", 4, "[Warning: hook retry limit reached after 2 retries: red 3. A person is asked.]"),
    ];
    for (limit, code, warning) in table {
        let config = format!("limits: {{max_hook_retries: 2}}\non_retry_limit: {limit}\n{NEVER_PASSING_GATE}");
        let world = create_agent_project(&config, COMPLETING_AGENT);
        let ran = world.run(RUN);
        assert_eq!(ran.code, code, "{limit}\n{ran}");
        assert!(ran.stdout.contains(warning), "{limit}\n{ran}");
        let asked = "a person is asked in iteration 1: `check` still blocks after sending the agent back 2 times\n";
        let how = format!("  next: windlass answer {SESSION_NAME} continue  # or ignore-hook, reject\n");
        assert_eq!((ran.stdout.contains(asked), ran.stdout.contains(&how)), (limit == "ask", limit == "ask"), "{ran}");
    }
    let world =
        create_agent_project(&format!("limits: {{max_hook_retries: 0}}\n{NEVER_PASSING_GATE}"), COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert!(ran.code == 4 && turn_count(&world) == "1", "0 means none: {ran}");
    assert!(ran.stdout.contains("[Warning: no hook retries are allowed: red 1. A person is needed.]"), "{ran}");
}

/// `slow` never passes and may send the agent back once; `tests` passes at the fourth turn.
#[test]
fn hook_at_its_limit_leaves_the_gate_closed_for_others() {
    let hooks = "hooks:
  stop:
    - {name: slow, command: 'echo \"slow $(cat turns)\" >&2; exit 2', retry: {max: 1}}
    - {name: tests, command: 'test $(cat turns) -ge 4 || { echo \"red $(cat turns)\" >&2; exit 2; }'}
";
    let reason = "`slow` still blocks after sending the agent back once";
    for (limit, code) in [("escalate", 4), ("complete", 0), ("ask", 4)] {
        let world = create_agent_project(&format!("on_retry_limit: {limit}\n{hooks}"), COMPLETING_AGENT);
        let ran = world.run(RUN);
        assert_eq!(ran.code, code, "{limit}\n{ran}");
        let decided: Vec<String> =
            gate_decisions(&world).iter().map(|decided| decided["decision"].to_string()).collect();
        let (last, before) = decided.split_last().unwrap();
        let sent_back = before.iter().filter(|decision| *decision == "\"send_back\"").count();
        assert_eq!(sent_back, 3, "{limit}\n{ran}");
        assert_eq!(last.contains(reason), limit != "ask", "{limit}: {last}");
        assert!(ran.stdout.contains("tests ok") && ran.stdout.contains(reason), "{limit}\n{ran}");
    }
}

/// The limit of one hook does not affect the others.
#[test]
fn hook_that_passes_at_its_limit_does_not_let_other_blocks_pass() {
    let table = [
        ("echo 3 failed >&2; exit 1", 3, "tests failed: exit 1: 3 failed"),
        ("exit 1", 3, "[Warning: no hook retries are allowed: red. The work is not done.]"),
        ("echo '{\"action\": \"continue\", \"nextPrompt\": \"more\"}'", 3, "tests wants another iteration"),
        ("true", 0, "tests ok"),
    ];
    for (tests, code, told) in table {
        let tests = tests.replace('\'', "''");
        let config = format!(
            "limits: {{max_hook_retries: 0, max_iterations: 2}}\non_retry_limit: complete\n\
             hooks: {{stop: [{{name: check, command: 'echo red >&2; exit 2'}}, {{name: tests, command: '{tests}'}}]}}\n"
        );
        let ran = create_agent_project(&config, COMPLETING_AGENT).run(RUN);
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.stdout.contains(told), "{ran}");
    }
}

#[test]
fn gate_escalates_after_three_identical_blocks() {
    let world =
        create_agent_project("hooks: {stop: [{name: check, command: 'echo red >&2; exit 2'}]}", COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    let why = "a person is needed after one iteration: `check` blocks 3 times in a row with the same reason";
    assert!(ran.stdout.contains(why), "{ran}");
    assert!(ran.stdout.contains("[Warning: after hook retry 2: red. A person is needed.]"), "{ran}");
}

/// No limit is involved.
#[test]
fn escalation_by_agent_is_not_shown_as_retry_limit() {
    for (promise, says) in [("ESCALATE", "the agent asks for a person"), ("BLOCKED", "the agent says it is blocked")] {
        let again = format!("test $turn = 1 || echo '<promise>{promise}</promise>'");
        for agent in [format!("echo '<promise>{promise}</promise>'"), again] {
            let world = create_agent_project("hooks: {stop: [{name: check, command: 'echo no >&2; exit 2'}]}", &agent);
            let ran = world.run(RUN);
            assert_eq!(ran.code, 4, "{ran}");
            assert!(ran.stdout.contains(&format!("a person is needed after one iteration: {says}\n")), "{ran}");
            assert!(!ran.stdout.contains("[Warning"), "{ran}");
        }
    }
}

/// Templates and cut feedback do not matter: the agent makes progress, and is not stopped early.
#[test]
fn gate_does_not_escalate_while_hook_output_changes() {
    let counts = "n=$(cat turns); test $n -ge 5 || { echo Tests failed >&2; $OUTPUT; exit 2; }";
    let table = [
        ("echo $((5-n)) failing", "feedback: Fix the tests."),
        ("yes dull | head -n 999; echo left-$((5-n)); yes dull | head -n 999", "max_output: 1024"),
    ];
    for (output, option) in table {
        let config = format!("hooks: {{stop: [{{name: tests, command: sh tests.sh, {option}}}]}}");
        let world = create_agent_project(&config, COMPLETING_AGENT);
        world.write("tests.sh", counts.replace("$OUTPUT", output));
        let ran = world.run(RUN);
        assert!(ran.code == 0 && turn_count(&world) == "5", "{option}: {ran}");
    }
}

/// The effects of an answer are shown while they happen, not when they are over.
#[test]
fn terminal_view_shows_progress_after_gate_is_answered() {
    let config = format!("limits: {{max_hook_retries: 0}}\non_retry_limit: ask\n{NEVER_PASSING_GATE}");
    let world = create_agent_project(
        &config,
        "test $turn -gt 1 || { echo '<promise>COMPLETE</promise>'; exit; }\ncat go; echo '<promise>COMPLETE</promise>'",
    );
    world.run_command(world.program("mkfifo").arg("go"));
    let mut watched = world.start_in_terminal((40, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("What now?"));
    watched.type_keys("ignore Mind the step\n");
    watched.await_screen(|screen| screen.contains("final delivery turn with 2 pieces of feedback"));
    fs::write(world.path("go"), "I see.\n").unwrap();
    let (watched, code) = watched.read_to_end();
    assert_eq!(code, 0, "{}", watched.screen());
}

/// A person may type an answer before the question.
#[test]
fn answer_typed_before_question_is_accepted() {
    let config = format!("limits: {{max_hook_retries: 0}}\non_retry_limit: ask\n{NEVER_PASSING_GATE}");
    let world =
        create_agent_project(&config, "test $turn -gt 1 || { echo one; cat go; }\necho '<promise>COMPLETE</promise>'");
    world.make_pipe("go");
    let mut watched = world.start_in_terminal((40, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("│ one"));
    watched.type_keys("ignore\n");
    fs::write(world.path("go"), "").unwrap();
    let (watched, code) = watched.read_to_end();
    let screen = watched.screen();
    assert!(code == 0 && screen.contains("What now?") && screen.contains(" answers ignore-hook: "), "{screen}");
}

/// Ctrl-Z, and back: the question still stands. The following output fits the present size of the terminal.
#[test]
fn question_can_be_answered_after_ctrl_z() {
    let config = format!("limits: {{max_hook_retries: 0}}\non_retry_limit: ask\n{NEVER_PASSING_GATE}");
    let world = create_agent_project(&config, COMPLETING_AGENT);
    let mut watched = world.start_in_terminal((40, 100), RUN, &[]);
    watched.await_screen(|screen| screen.contains("Words after it"));
    watched.type_keys("\x1a");
    watched.await_stop();
    watched.resume();
    watched.resize(40, 30);
    watched.type_keys("abort\n");
    let (watched, code) = watched.read_to_end();
    let screen = watched.screen();
    assert!(code == 4 && screen.contains("\n  next: windlass"), "{screen}");
}

/// The person at the terminal decides, and the session waits for them across runs.
#[test]
fn gate_at_retry_limit_applies_answer_typed_at_terminal() {
    let config = format!("limits: {{max_hook_retries: 1}}\non_retry_limit: ask\n{NEVER_PASSING_GATE}");
    let asked = |typed: &str| {
        let world = create_agent_project(&config, COMPLETING_AGENT);
        assert_eq!(world.run(RUN).code, 4, "without a terminal no person is asked");
        let (shown, code) = run_in_terminal_with_input(&mut world.command(RUN), 120, typed);
        assert!(shown.contains("`check` still blocks after sending the agent back once. What now?"), "{shown}");
        (world, shown, code)
    };
    let (world, shown, code) = asked("ignore\n");
    assert_eq!(code, 0, "{shown}");
    assert_eq!(world.event_payloads("gate_answered")[0]["answer"], "ignore");
    assert!(shown.contains("ann answers ignore-hook: ") && !shown.contains("Warning"), "{shown}");
    let passed =
        "after one iteration: `check` still blocks after sending the agent back once, and a person let it pass";
    assert_eq!(turn_count(&world), "2", "what the hook said costs no turn");
    assert!(shown.contains(passed), "{shown}");
    let (world, shown, code) = asked("what?\nreject\n");
    assert!(code == 3 && shown.contains("a person has rejected T1"), "{shown}");
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "failed");
    let (world, shown, code) = asked("what?\nabort\n");
    assert!(code == 4 && shown.contains("and a person ended it"), "{shown}");
    assert_eq!(turn_count(&world), "2", "no further turn");
    let (world, shown, _) = asked("continue\nabort\n");
    assert!(shown.contains("[Hook retry 1/1: red 2]"), "the count starts again: {shown}");
    assert_eq!(turn_count(&world), "3", "{shown}");
    let (world, shown, _) = asked("I see\ncontinue Use the new API\nabort\n");
    assert!(world.read_prompt(3).contains("[Message from ann]:\nUse the new API\n"), "{shown}");
    let (world, shown, _) = asked("reject too slow\n");
    assert_eq!(world.event_payloads("task_failed")[0]["reason"], "too slow", "{shown}");
}

const SESSION_NAME: &str = "mend-the-pump-e01275de";

/// A session that asks a person at its gate, and that no process runs.
fn create_asking_session() -> TestWorld {
    let world = create_agent_project(
        &format!("limits: {{max_hook_retries: 0}}\non_retry_limit: ask\n{NEVER_PASSING_GATE}"),
        COMPLETING_AGENT,
    );
    let ran = world.run(RUN);
    assert!(ran.code == 4 && ran.stdout.contains("a person is asked in iteration 1"), "{ran}");
    world
}

#[test]
fn message_with_ignore_answer_is_delivered_without_reopening_gate() {
    let world = create_asking_session();
    world.run_ok(&["answer", SESSION_NAME, "ignore", "mind the step"]);
    let ran = world.run(RUN);
    assert!(ran.code == 0 && ran.stdout.contains("and a person let it pass"), "{ran}");
    assert_eq!(turn_count(&world), "2", "the one that was asked about, and the last delivery");
    assert!(prompt_of_turn(&world, 2).contains("mind the step"), "{}", prompt_of_turn(&world, 2));
    let ends = ["gate_answered", "message_added", "feedback_queued"]
        .map(|kind| world.events_of_type(kind).last().unwrap()["seq"].as_u64().unwrap());
    assert_eq!([ends[0] + 1, ends[0] + 2], ends[1..], "they are one commit");
}

#[test]
fn work_that_is_rejected_has_failed() {
    let world = create_asking_session();
    let failed = world.run_ok(&["answer", SESSION_NAME, "reject", "we do not want it"]);
    assert!(failed.starts_with("T1  failed"), "{failed}");
    assert_eq!(world.json(&["task", "show", "T1"])["reason"], "we do not want it");
    let ran = world.run(RUN);
    let ended = "cancelled after one iteration: a person has rejected T1: we do not want it";
    assert!(ran.code == 3 && ran.stdout.contains(ended), "{ran}");
    assert!(ran.stdout.contains("next: windlass why T1"), "{ran}");
}

#[test]
fn session_that_lost_its_task_asks_no_person() {
    let world = create_asking_session();
    world.run_ok(&["task", "complete", "T1", "--force"]);
    let refused = world.expect_failure(&["answer", SESSION_NAME, "continue"]);
    assert!(refused.contains("has lost its task, and no longer asks a question"), "{refused}");
    let ran = world.run(RUN);
    assert!(ran.stdout.contains("T1 is completed now, changed outside this session"), "{ran}");
    assert!(![0, 4].contains(&ran.code) && turn_count(&world) == "1", "no further turn: {ran}");
    assert!(ran.stdout.contains("next: windlass why T1"), "{ran}");
}

/// A question would hold up unrelated tasks.
#[test]
fn gate_question_of_one_task_does_not_block_other_tasks() {
    let config = "limits: {max_hook_retries: 0}
on_retry_limit: ask
hooks: {stop: [{name: check, command: 'test $(cat turns) != 1 || exit 2'}]}";
    let world = create_agent_project(config, COMPLETING_AGENT);
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "One"]);
    world.run_ok(&["task", "add", "Two"]);
    let ran = world.run(&["run", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 4, "{ran}");
    let states = ["T1", "T2"].map(|id| world.json(&["task", "show", id])["state"].as_str().unwrap().to_owned());
    assert_eq!(states, ["blocked", "completed"], "{ran}");
    world.run_ok(&["answer", "T1", "ignore-hook"]);
    assert_eq!(world.run(&["run", "--agent", "command:sh agent.sh"]).code, 0);
}

#[test]
fn feedback_template_counts_retries_per_hook() {
    let config = "
hooks:
  stop:
    - {name: first, command: 'test $(cat turns) -gt 2 || exit 2', feedback: 'first {{ retry }} of {{ max_retries }}'}
    - {name: second, command: 'test $(cat turns) -lt 2 || test -e fixed || exit 2', retry: {max: 2, backoff: 1ms}, feedback: 'second {{ retry }} of {{ max_retries }}'}
";
    let world = create_agent_project(config, &format!("test $turn -lt 4 || touch fixed\n{COMPLETING_AGENT}"));
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(prompt_of_turn(&world, 3).contains("first 2 of 5") && prompt_of_turn(&world, 3).contains("second 1 of 2"));
    assert!(prompt_of_turn(&world, 4).contains("second 2 of 2"), "{}", prompt_of_turn(&world, 4));
}

/// The agent needs the middle of a long test run.
#[test]
fn failing_test_names_survive_output_truncation() {
    let dull = |line: &str| format!("{line}\n").repeat(900);
    let table = [
        ("cargo", "test store::tests::it_is_kept ... ok", "test store::tests::it_is_lost ... FAILED"),
        (
            "pytest",
            "tests/test_store.py::test_kept PASSED         [ 12%]",
            "FAILED tests/test_store.py::test_lost - assert 1 == 2",
        ),
        ("jest", "    ✓ keeps what it is given (3 ms)", "    ✕ loses what it is given (5 ms)"),
        ("go", "--- PASS: TestKept (0.00s)", "    --- FAIL: TestLost (0.02s)"),
    ];
    for (tool, passes, fails) in table {
        let config = "hooks: {stop: [{name: tests, command: cat output >&2; exit 2, max_output: 4096}]}\nlimits: {max_hook_retries: 1}";
        let world = create_agent_project(config, COMPLETING_AGENT);
        world.write("output", format!("{}{fails}\n{}error: it failed\n", dull(passes), dull(passes)));
        assert_eq!(world.run(RUN).code, 4, "{tool}");
        let prompt = prompt_of_turn(&world, 2);
        assert!(prompt.contains(fails.trim()) && prompt.contains(" bytes left out]"), "{tool}: {prompt}");
        assert!(prompt.len() < 6000, "{tool}: {}", prompt.len());
    }
}

/// Output above the memory limit: the middle is in a file, and the excerpt finds the failures there, with secrets masked.
#[test]
fn output_above_memory_limit_keeps_failures_and_masks_secrets() {
    let telling = [
        "test pump::runs ... FAILED",
        "error[E0308]: mismatched types: hunter22",
        "FAILED tests/test_pump.py::test_pump - assert 3 == 4",
        "thread 'pump' panicked at src/pump.rs:3:5:",
    ];
    let dull = "   Compiling a part of the yard, which takes a while\n".repeat(2000);
    let config = "secrets: [KEY]\nlimits: {max_hook_retries: 1}\n\
                  hooks: {stop: [{name: tests, command: cat output; exit 2, max_output: 4096}]}";
    let world = create_agent_project(config, COMPLETING_AGENT);
    world.write("output", dull.clone() + &telling.map(|line| format!("{dull}{line}\n")).concat() + &dull);
    let ran = world.run_command(world.command(RUN).env("KEY", "hunter22"));
    assert!(ran.code == 4 && ran.stdout.contains("tests blocks: FAILED tests/test_pump.py::test_pump"), "{ran}");
    for line in telling {
        let line = line.replace("hunter22", "[secret KEY]");
        assert!(prompt_of_turn(&world, 2).contains(&line), "{line}: {}", prompt_of_turn(&world, 2));
    }
    let record = world.event_payloads("hook_finished")[0]["record"].as_str().expect("it was too much").to_owned();
    let kept = fs::read_to_string(world.path(&format!(".windlass/runs/{record}"))).expect("the record");
    assert!(kept.contains("types: [secret KEY]\n") && !kept.contains("hunter22"), "it is masked too");
}

#[test]
fn rate_limit_is_waited_out_and_costs_no_iteration() {
    let config = "hooks: {pre_iteration: [{command: 'echo before {{iteration}}', pipe_output: true}]}";
    let agent = format!(
        "test $turn -gt 2 || {{ echo 'Rate limit reached. Please try again in 5ms.' >&2; exit 1; }}\n{COMPLETING_AGENT}"
    );
    let world = create_agent_project(config, &agent);
    let ran = world.run(&[RUN, &["--max-iterations", "1"]].concat());
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("rate limited: Rate limit reached. Please try again in 5ms.; waiting for"), "{ran}");
    assert_eq!(world.event_payloads("iteration_postponed").len(), 2);
    // Only the newest output of the hooks before each iteration counts.
    assert!(
        prompt_of_turn(&world, 3).contains("before 3") && !prompt_of_turn(&world, 3).contains("before 2"),
        "{}",
        prompt_of_turn(&world, 3)
    );
}

/// Runs a command, and acts on it as soon as it has printed something. Returns its exit code.
fn run_until_output(world: &TestWorld, said: &str, act: impl FnOnce(&Child)) -> i32 {
    let mut child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap).skip_while(|line| !line.contains(said));
    assert!(lines.next().is_some(), "it did not say {said}");
    act(&child);
    lines.for_each(drop);
    child.wait().unwrap().code().unwrap_or(-1)
}

fn signal_after_output(world: &TestWorld, said: &str, signal: rustix::process::Signal) -> i32 {
    let kill = |child: &Child| rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
    run_until_output(world, said, kill)
}

#[test]
fn rate_limit_wait_resumes_after_kill_and_ends_on_interrupt() {
    let config = "hooks: {session_end: [{command: touch ended}]}";
    let world = create_agent_project(
        config,
        "echo 'You have hit your usage limit. Try again in 3 hours 12 minutes.' >&2; exit 1",
    );
    assert_eq!(signal_after_output(&world, "rate limited: ", rustix::process::Signal::KILL), -1);
    assert_eq!(signal_after_output(&world, "resumed", rustix::process::Signal::INT), 130);
    assert_eq!(turn_count(&world), "1", "the agent was left alone");
    assert!(world.has_file("ended"));
}

/// The session would wait for three hours, unless a command from elsewhere ends the wait.
#[test]
fn rate_limit_wait_ends_on_external_cancel_complete_or_delete() {
    for words in [
        &["session", "cancel", SESSION_NAME][..],
        &["task", "complete", "T1", "--force"],
        &["task", "delete", "T1", "--force"],
    ] {
        let world = create_agent_project(
            "",
            "echo 'You have hit your usage limit. Try again in 3 hours 12 minutes.' >&2; exit 1",
        );
        let code = run_until_output(&world, "rate limited: ", |_| drop(world.run_ok(words)));
        assert_eq!((code, turn_count(&world).as_str()), (3, "1"), "{words:?}");
    }
}

#[test]
fn authentication_failure_ends_session_at_once_with_remedy() {
    let config = "hooks: {session_end: [{command: touch ended}]}";
    let world =
        create_agent_project(config, "echo 'API Error: 401 authentication_error: invalid x-api-key' >&2; exit 1");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 1, "{ran}");
    let why = "failed after one iteration: `command:sh agent.sh` has no access: API Error: 401 authentication_error: \
               invalid x-api-key; log the agent in, or set its API key";
    assert!(ran.stdout.contains(why), "{ran}");
    assert!(ran.stdout.matches("has no access").count() == 1 && !ran.stdout.contains("interrupted"), "{ran}");
    assert!(turn_count(&world) == "1" && world.has_file("ended"), "{ran}");
}

#[test]
fn recovery_prompt_contains_agent_error_and_hook_output() {
    let config = "limits: {failure_span: 1ms}\nhooks: {on_error: [{command: echo look at the log, pipe_output: true}]}";
    let world = create_agent_project(
        config,
        &format!("test $turn != 1 || {{ echo 'no route to ```host' >&2; exit 7; }}\n{COMPLETING_AGENT}"),
    );
    assert_eq!(world.run(RUN).code, 0);
    let recovery = prompt_of_turn(&world, 2);
    assert!(recovery.contains("It ended with:\n````text\nexit 7: no route to ```host\n````\n"), "{recovery}");
    assert!(recovery.contains("look at the log"), "{recovery}");
}

/// An agent without memory has to learn of its work on the error.
#[test]
fn prompt_after_recovery_quotes_recovery_output_as_last_message() {
    let config = "limits: {failure_span: 1ms}\nhooks: {on_error: [{command: echo look at the log, pipe_output: true}]}";
    let agent = "case $turn in 1) echo I began;; 2) exit 7;; 3) echo I have set the route;; *) echo \"$done\";; esac";
    let world = create_agent_project(config, &format!("done='<promise>COMPLETE</promise>'\n{agent}"));
    assert_eq!(world.run(RUN).code, 0);
    let last = prompt_of_turn(&world, 4);
    assert!(last.contains("The end of your last message:\n```text\nI have set the route\n```\n"), "{last}");
    assert!(last.contains("I began"), "what was before is told in short: {last}");
}

#[test]
fn session_ends_when_its_wall_time_is_exhausted() {
    let config = "limits: {wall_time: 1s}\nhooks: {session_end: [{command: touch ended}]}";
    let world = create_agent_project(config, "sleep 60");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stdout.contains("ended after one iteration: the wall time of 1 s is used up"), "{ran}");
    assert!(world.has_file("ended"), "{ran}");
}

#[test]
fn turn_timeout_error_reports_configured_time_limit() {
    let world = create_agent_project(
        "limits: {turn_time: 1500ms, failure_span: 1ms}",
        &format!("test $turn != 1 || exec sleep 60\n{COMPLETING_AGENT}"),
    );
    assert_eq!(world.run(RUN).code, 0);
    let failed = world.event_payloads("iteration_failed");
    assert!(failed.len() == 1 && failed[0]["error"] == "timed out after 1.5 s", "{failed:?}");
}

/// In a git repository, an unchanged retry is detected; git's own files are not touched.
#[test]
fn identical_change_with_identical_failures_escalates_as_thrashing() {
    let config = "hooks: {stop: [{name: check, command: 'echo \"red in $(cat turns).5 s\"; exit 1'}]}";
    let world = create_agent_project(config, "echo same > work.txt; echo trying");
    world.write(".gitignore", "turns\nprompt.*\nagent.sh\n");
    let git = |words: &[&str]| {
        let done =
            world.run_command(world.program("git").args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words));
        assert_eq!(done.code, 0, "{done}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "start"]);
    let index = fs::read(world.path(".git/index")).unwrap();
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    let why = "a person is needed after 3 iterations: thrashing: the same change with the same result 3 times in a row";
    assert!(ran.stdout.contains(why), "{ran}");
    assert_eq!(fs::read(world.path(".git/index")).unwrap(), index);
    let off = format!("limits: {{thrashing: 0}}\n{config}");
    world.write(".windlass/config.yaml", off);
    world.run_ok(&["trust", "--yes"]);
    let ran = world.run(&[RUN, &["--max-iterations", "5", "--fresh"]].concat());
    assert_eq!(ran.code, 3, "{ran}");
}

/// No output is allowed if the work changes; without any change it is not.
#[test]
fn agent_that_says_and_changes_nothing_is_stopped() {
    let world = TestWorld::empty();
    world.run_command(world.program("git").args(["init", "-q"]));
    let silent =
        |agent: &str| world.run(&["run", "Mend the pump", "--agent", agent, "--fresh", "--max-iterations", "5"]);
    let ran = silent("command:true");
    assert_eq!(ran.code, 4, "{ran}");
    let why = "a person is needed after 4 iterations: thrashing: the same change with the same result 3 times in a row";
    assert!(ran.stdout.contains(why), "{ran}");
    let ran = silent("command:echo more >> work.txt");
    assert_eq!(ran.code, 3, "{ran}");
    assert_eq!(world.event_payloads("iteration_failed").len(), 0, "{ran}");
}

#[test]
fn promise_on_last_allowed_iteration_completes_task() {
    let world = create_agent_project("", &format!("test $turn -lt 3 || {COMPLETING_AGENT}"));
    assert_eq!(world.run(&[RUN, &["--max-iterations", "3"]].concat()).code, 0);
}

/// Hooks that an agent registers for itself add to those of people, and replace none.
#[test]
fn stricter_hook_decides_when_person_and_agent_both_register() {
    let register = |action: &str| {
        let rules = json!([{"when": "iteration < 3", "action": action}, {"when": "true", "action": "complete"}]);
        json!({"taskId": "T1", "hookType": "rules", "rules": rules})
    };
    for (of_person, of_agent, code, said) in [
        ("continue", "complete", 0, "complete after 3 iterations"),
        ("complete", "continue", 0, "complete after 3 iterations"),
        ("continue", "escalate", 4, "a person is needed after one iteration"),
        ("complete", "escalate", 4, "a person is needed after one iteration"),
        ("escalate", "complete", 4, "a person is needed after one iteration"),
        ("complete", "complete", 0, "complete after one iteration"),
    ] {
        let world = TestWorld::with_tasks(&["Mend the pump"]).with_windlass();
        world.call_tool("hook_register", &register(of_person));
        let own = format!("windlass tool call hook_register '{}' > registered 2>&1", register(of_agent));
        world.write("agent.sh", format!("test -e registered || {own}\n{COMPLETING_AGENT}"));
        let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
        assert!(
            ran.code == code && ran.stdout.contains(said),
            "{of_person}, {of_agent}\n{ran}{}",
            world.read_file("registered")
        );
        assert_eq!(world.event_payloads("hook_registered").len(), 2, "{ran}");
    }
}

/// A test that waits for something outside gains nothing from an earlier retry.
#[test]
fn agent_is_sent_back_only_after_configured_hook_backoff() {
    let config = "hooks: {stop: [{name: check, command: 'test -e tried || { touch tried; exit 2; }', retry: {max: 2, backoff: 500ms}}]}";
    let world = create_agent_project(config, COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert_eq!((ran.code, turn_count(&world).as_str()), (0, "2"), "{ran}");
    let at = |kind: &str, nth: usize| -> Timestamp {
        world.json_lines(&["events", "--type", kind])[nth]["timestamp"].as_str().unwrap().parse().unwrap()
    };
    // The turn begins with the decision, and the agent gets the feedback later.
    let (blocked, answered) = (at("gate_decided", 0), at("turn_finished", 1));
    assert!(answered.millis() - blocked.millis() >= 500, "{blocked}, {answered}");
}

/// At the stop gate a retry is another turn: the same work would get the same verdict.
#[test]
fn stop_hook_runs_once_per_turn_despite_retry_setting() {
    let config = "hooks: {stop: [{name: check, command: 'echo x >> tried; exit 1', retry: {max: 3, backoff: 1ms}}]}";
    let world = create_agent_project(config, COMPLETING_AGENT);
    let ran = world.run(&[RUN, &["--max-iterations", "2"]].concat());
    assert_eq!((ran.code, world.read_file("tried").lines().count()), (3, 3), "once a turn: {ran}");
}

/// `sh` exits with 2 if its script is missing, which would send the agent back.
#[test]
fn stop_hook_with_a_missing_script_is_told_as_broken_and_asks_for_a_person() {
    let table = [
        ("sh check.sh", "check failed: the hook is broken: `check.sh` does not exist in /"),
        ("./check.sh", "check failed: the hook is broken: `./check.sh` does not exist"),
        ("no-such-program", "check failed: the hook is broken: exit 127, a program was not found"),
    ];
    for (command, told) in table {
        for terms in [("strict: false", "ignore"), ("strict: true", "ignore"), ("strict: true", "block")] {
            let (strict, on_failure) = terms;
            let hook = format!("{{name: check, command: {command}, on_failure: {on_failure}}}");
            let world = create_agent_project(&format!("{strict}\nhooks: {{stop: [{hook}]}}\n"), COMPLETING_AGENT);
            let ran = world.run(RUN);
            assert_eq!(ran.code, 4, "{terms:?}: {ran}");
            assert!(ran.stdout.contains(told) && ran.stdout.contains("`check` judged nothing"), "{ran}");
            assert_eq!(gate_decisions(&world).len(), 1, "the agent has no second turn: {ran}");
        }
    }
}

#[test]
fn broken_stop_hook_can_be_ignored_once() {
    let world = create_agent_project("hooks: {stop: [{name: check, command: ./check.sh}]}", COMPLETING_AGENT);
    assert_eq!(world.run(RUN).code, 4);
    world.run_ok(&["answer", "T1", "ignore-hook"]);
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("`check` did not pass, and a person let it pass"), "{ran}");
}

/// `sh` exits with 2 here, too, which would be a verdict about the work.
#[test]
fn missing_script_of_a_rule_or_a_registered_hook_asks_for_a_person() {
    let rule = "validation: [{type: command, name: tests_pass, config: {command: sh gone.sh}}]\n";
    let registers = json!({"taskId": "T1", "hookType": "command", "command": "sh gone.sh"});
    for (config, registers, told) in [
        (rule, None, "`validation` judged nothing: tests_pass: the rule is broken: `gone.sh` does not exist in /"),
        ("version: 1\n", Some(registers), "HOOK-3 (command): the hook failed: `gone.sh` does not exist in /"),
    ] {
        let world = create_agent_project(config, COMPLETING_AGENT);
        world.run_ok(&["init"]);
        world.run_ok(&["task", "add", "Mend the pump"]);
        if let Some(hook) = registers {
            world.call_tool("hook_register", &hook);
        }
        let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
        assert_eq!((ran.code, gate_decisions(&world).len()), (4, 1), "one turn, then a person: {ran}");
        assert!(ran.stdout.contains(told), "{ran}");
    }
}

#[test]
fn hook_that_says_not_to_continue_after_the_gate_leaves_the_task_to_a_person() {
    let answer = r#"echo '{"continue": false, "stopReason": "look at the valve"}'"#.replace('\'', "''");
    let config = format!("hooks: {{post_iteration: [{{name: note, command: '{answer}'}}]}}\n");
    for agent in [RUN, &["run", "--task", "T1", "--agent", "command:sh agent.sh"]] {
        let world = create_agent_project(&config, COMPLETING_AGENT);
        if agent.contains(&"--task") {
            world.run_ok(&["init"]);
            world.run_ok(&["task", "add", "Mend the pump"]);
        }
        let ran = world.run(agent);
        assert_eq!(ran.code, 4, "{ran}");
        assert!(ran.stdout.contains("  next: windlass answer T1 continue\n"), "{ran}");
        assert_eq!(world.json(&["task", "show", "T1"])["state"], "blocked", "{ran}");
        world.run_ok(&["answer", "T1", "continue"]);
        assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");
    }
}

/// A completed task stays completed, and the run offers no answer for it.
#[test]
fn hook_that_escalates_on_completion_offers_no_answer() {
    let config = "hooks: {on_task_complete: [{name: note, command: 'exit 1', on_failure: escalate}]}\n";
    let world = create_agent_project(config, COMPLETING_AGENT);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("  next: windlass why ") && !ran.stdout.contains("windlass answer"), "{ran}");
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "completed");
}

#[test]
fn run_without_a_check_says_so_until_one_is_checked() {
    let world = create_agent_project("", COMPLETING_AGENT);
    let told = "nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml";
    assert!(world.run_ok(RUN).contains(&format!("  note: {told}\n")));
    assert!(world.run_ok(&["status"]).contains(&format!("last run {told}\n")));
    assert_eq!(world.json(&["status"])["unchecked"]["tasks"], 1);
    assert_eq!(world.event_payloads("session_ended")[0]["unchecked"], 1);
    world.write(".windlass/config.yaml", "hooks: {stop: [{command: 'true'}]}\n");
    world.run_ok(&["trust", "--yes"]);
    assert!(!world.run_ok(&["run", "Mend the valve", "--agent", "command:sh agent.sh"]).contains("nothing checked"));
    assert!(!world.run_ok(&["status"]).contains("nothing checked"));
    assert!(world.json(&["status"])["unchecked"].is_null());
    assert!(world.event_payloads("session_ended")[1].get("unchecked").is_none());
}

#[test]
fn run_whose_only_check_is_skipped_says_why_nothing_checked_it() {
    let told = "nothing checked this work: `stop[0]:run_tests` was skipped: cannot find a test command; set \
                `test_command`\n";
    let world = create_agent_project("hooks: {stop: [run_tests]}\n", COMPLETING_AGENT);
    assert!(world.run_ok(RUN).contains(&format!("  note: {told}")));
    assert!(world.run_ok(&["status"]).contains(&format!("last run {told}")));
    world.run_ok(&["task", "add", "Mend the valve"]);
    let ran = world.run_ok(&["run", "--workers", "1", "--agent", "command:sh agent.sh"]);
    assert!(ran.contains(&format!("note: {told}")), "{ran}");
}

#[test]
fn session_that_asks_offers_its_answer_with_the_trust_that_it_needs() {
    let hooks = "hooks:\n  stop: [{name: check, command: exit 2}]\n  gate_answered: [{name: note, command: 'true'}]\n";
    let config = format!("limits: {{max_hook_retries: 0}}\non_retry_limit: ask\n{hooks}");
    let world = create_agent_project(&config, COMPLETING_AGENT);
    world.write(".windlass/config.yaml", format!("{config}# changed\n"));
    let ran = world.run(&[RUN, &["--trust"]].concat());
    assert_eq!(ran.code, 4, "{ran}");
    let next = format!("  next: windlass answer {SESSION_NAME} continue --trust  # or ignore-hook, reject\n");
    assert!(ran.stdout.contains(&next), "{ran}");
}
