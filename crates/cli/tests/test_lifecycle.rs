//! The hooks of a session from its first to its last, for every kind of end: which hooks run when, the content and order of each
//! prompt, that the stop hook judges the final delivery, and that `session_end` comes once.

use std::fs;

use crate::support::TestWorld;
use crate::test_run::{RUN, create_agent_project};

/// Every hook pipes its output, and records that it ran.
const CONFIG: &str = r#"
hooks:
  session_start:
    - { name: start, command: 'echo "start" >> story; echo "from start"', pipe_output: true }
  pre_iteration:
    - { name: pre, command: 'echo "pre {{iteration}}" >> story; echo "from pre {{iteration}}"', pipe_output: true }
  stop:
    - { name: gate, command: 'echo "gate" >> story', pipe_output: true }
  post_iteration:
    - { name: post, command: 'echo "post {{iteration}}" >> story; echo "from post {{iteration}}"', pipe_output: true }
  on_task_complete:
    - { name: task, command: 'echo "task {{task_id}}" >> story; echo "from task {{task_id}} {{task_content}}"', pipe_output: true }
  on_error:
    - { name: error, command: 'echo "error {{iteration}}" >> story; echo "from error" {{error}}', pipe_output: true }
  session_end:
    - { name: end, command: 'echo "end {{session}}" >> story; echo "from end"', pipe_output: true }
"#;

/// Records each turn in the story, with the content of its prompt, in order.
const RECORDING_AGENT: &str = r#"
grep -o '^from .*\|^Mend the pump\|^Your last turn failed\|^The session is about to end\|^exit 7\|^When the goal' prompt.$turn |
    sed 's/When the goal/how to end/; s/Your last turn failed/recovery/; s/The session is about to end/last words/' |
    tr '\n' ',' | sed "s/^/agent $turn: /; s/,$//" >> story
echo >> story
"#;

/// A run whose agent does this in its turns.
fn run_session(config: &str, more: &[&str], agent: &str) -> (TestWorld, i32, String) {
    let world = create_agent_project(&format!("{config}{CONFIG}"), &format!("{RECORDING_AGENT}{agent}"));
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Paint it"]);
    let _ = fs::remove_file(world.path("story"));
    let ran = world.run(&[RUN, more].concat());
    let story = read_events(&world);
    (world, ran.code, story)
}

/// Returns the part between the common begin and end of every session.
#[track_caller]
fn read_events(world: &TestWorld) -> String {
    let story = fs::read_to_string(world.path("story")).unwrap();
    let begun = "start\npre 1\nagent 1: from start,from pre 1,Mend the pump,how to end\n";
    let between = story.strip_prefix(begun).and_then(|rest| rest.strip_suffix("end mend-the-pump-e01275de\n"));
    between.unwrap_or_else(|| panic!("it begins or ends otherwise:\n{story}")).to_owned()
}

#[test]
fn completed_session_delivers_feedback_then_runs_task_hook() {
    let agent = "if test $turn -ge 2; then echo '<promise>COMPLETE</promise>'; fi";
    let (_, code, story) = run_session("", &[], agent);
    assert_eq!(code, 0, "{story}");
    insta::assert_snapshot!(story, @r"
    gate
    post 1
    pre 2
    agent 2: from post 1,from pre 2,Mend the pump,how to end
    gate
    post 2
    agent 3: last words,Mend the pump,from post 2,how to end
    gate
    post 2
    task T2
    ");
}

#[test]
fn session_at_iteration_limit_delivers_feedback_before_ending() {
    let (_, code, story) = run_session("", &["--max-iterations", "1"], "echo working");
    assert_eq!(code, 3, "{story}");
    insta::assert_snapshot!(story, @r"
    gate
    post 1
    agent 2: last words,Mend the pump,from post 1,how to end
    gate
    post 1
    ");
}

/// The budget runs out while the agent works: its turn is given up, and no other one follows.
#[test]
fn out_of_budget() {
    let agent = "if test $turn = 1; then sleep 60; fi";
    let (world, code, story) = run_session("limits: {wall_time: 2s}\n", &[], agent);
    assert_eq!((code, story.as_str()), (3, ""));
    assert_eq!(world.event_payloads("session_ended")[0]["reason"], "the wall time of 2 s is used up");
}

#[test]
fn cancelled_session_skips_gate_and_final_delivery() {
    // The agent asks for the end of its runner, and stays until then.
    let agent = "if test $turn = 1; then kill -INT $(cat runner); sleep 60; fi";
    let world = create_agent_project(CONFIG, &format!("{RECORDING_AGENT}{agent}"));
    let script = "echo $$ > runner; exec \"$@\"";
    let mut command = world.program("sh");
    command.args(["-c", script, "sh", crate::support::WINDLASS]).args(RUN);
    let ran = world.run_command(&mut command);
    assert_eq!((ran.code, read_events(&world).as_str()), (130, ""), "{ran}");
}

/// An agent that cannot work cannot listen: there is no final delivery.
#[test]
fn failed_session_skips_gate_and_final_delivery() {
    let (_, code, story) = run_session("", &[], "echo 'Not logged in' >&2; exit 1");
    assert_eq!((code, story.as_str()), (1, ""));
}

/// The recovery turn follows a failed iteration at once, and then the next iteration starts.
#[test]
fn failed_iteration_triggers_recovery_turn_and_session_completes() {
    let agent = "case $turn in 1) echo 'no route' >&2; exit 7;; 3 | 4) echo '<promise>COMPLETE</promise>';; esac";
    let (_, code, story) = run_session("limits: {failure_span: 1ms}\n", &[], agent);
    assert_eq!(code, 0, "{story}");
    insta::assert_snapshot!(story, @r"
    error 1
    agent 2: recovery,exit 7,Mend the pump,from start,from pre 1,from error exit 7: no route
    pre 2
    agent 3: from pre 2,Mend the pump,how to end
    gate
    post 2
    agent 4: last words,Mend the pump,from post 2,how to end
    gate
    post 2
    task T2
    ");
}

/// The next turn tells of tasks that complete during a turn, before its own hooks.
#[test]
fn task_completed_during_iteration_is_reported_in_next_prompt() {
    let script = "test -e done || { touch done; windlass task complete T1 > /dev/null; }";
    let config = CONFIG.replace(
        "echo \"post {{iteration}}\" >> story;",
        &format!("echo \"post {{{{iteration}}}}\" >> story; {script};"),
    );
    let agent = "if test $turn -ge 2; then echo '<promise>COMPLETE</promise>'; fi";
    let world = create_agent_project(&config, &format!("{RECORDING_AGENT}{agent}"));
    std::os::unix::fs::symlink(crate::support::WINDLASS, world.program_directory().join("windlass")).unwrap();
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Paint it"]);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    insta::assert_snapshot!(read_events(&world), @r"
    gate
    post 1
    task T1
    pre 2
    agent 2: from task T1 Paint it,from post 1,from pre 2,Mend the pump,how to end
    gate
    post 2
    agent 3: last words,Mend the pump,from post 2,how to end
    gate
    post 2
    task T2
    ");
}

const GATE_CONFIG: &str = "hooks:
  stop: [{name: tests, command: 'test ! -e broken || { echo red >&2; exit 2; }'}]
  post_iteration: [{name: note, command: echo by the way, pipe_output: true}]
";

#[test]
fn delivery_turn_that_leaves_tests_broken_completes_nothing() {
    let world = create_agent_project(GATE_CONFIG, "test $turn = 1 || touch broken; echo '<promise>COMPLETE</promise>'");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(world.events_of_type("task_completed").is_empty(), "{ran}");
}

/// A linter that finds nothing costs no turn.
#[test]
fn passing_output_piped_on_failure_costs_no_turn() {
    let world = create_agent_project(
        &GATE_CONFIG.replace("pipe_output: true", "pipe_output: on_failure"),
        "echo '<promise>COMPLETE</promise>'",
    );
    let ran = world.run(RUN);
    assert_eq!((ran.code, world.events_of_type("turn_started").len()), (0, 1), "{ran}");
}

#[test]
fn reason_of_reopened_task_reaches_agent() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    world.run_ok(&["task", "reopen", "T1", "--force", "--reason", "main is red"]);
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert!(world.read_prompt(2).contains("The task was reopened: main is red"), "{ran}{}", world.read_prompt(2));
}
