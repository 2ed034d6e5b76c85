//! Services for agents of the Agent Client Protocol while they work, and the records of their turns

use std::fs;
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{TestWorld, WINDLASS};

const RUN: &[&str] = &["run", "Mend the pump", "--agent", "scripted:play.yaml"];
/// The agent is killed after its first turn, and sent back.
const KILLED_AGENT_CONFIG: &str = "limits: {failure_span: 1ms}
hooks: {stop: [{command: 'test -e checked || { touch checked; kill -9 $(cat pid); exit 2; }'}]}";
const SESSION_NAME: &str = "mend-the-pump-e01275de";

/// The record of the first turn.
fn first_turn_record(world: &TestWorld) -> String {
    let finished = world.event_payloads("turn_finished");
    let name = finished[0]["record"].as_str().unwrap();
    fs::read_to_string(world.path(".windlass/runs").join(name)).unwrap()
}

#[test]
fn files_and_terminals_are_served_while_the_turn_goes_on() {
    let script = "
turns:
  - do:
    - request: {method: fs/write_text_file, params: {path: made/new.txt, content: \"one\\ntwo\\nthree\\n\"}}
    - request: {method: fs/read_text_file, params: {path: made/new.txt, line: 2, limit: 1}}
    - request: {method: fs/read_text_file, params: {path: ../home}}
    - request: {method: terminal/create, params: {command: 'echo out; echo err >&2; exit 3'}}
    - request: {method: terminal/wait_for_exit}
    - request: {method: terminal/output}
    - request: {method: terminal/release}
    - request: {method: terminal/output}
    - request:
        method: terminal/create
        params: {command: sh, args: [-c, 'printf %s $GREETING; pwd'], env: [{name: GREETING, value: hello}], outputByteLimit: 3}
    - request: {method: terminal/wait_for_exit}
    - request: {method: terminal/output}
    - request: {method: terminal/create, params: {command: sleep, args: ['60']}}
    - request: {method: terminal/kill}
    - request: {method: terminal/wait_for_exit}
    - request: {method: terminal/create, params: {command: no-such-program, args: ['1']}}
    - request: {method: craft/made_up}
    - promise: COMPLETE
";
    let world = TestWorld::with_scripted_agent("", script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let said = world.event_payloads("turn_finished")[0]["output"]
        .as_str()
        .unwrap()
        .replace(&*world.directory.to_string_lossy(), "…");
    assert_snapshot!(said, @r#"
    fs/write_text_file: {}
    fs/read_text_file: {"content":"two\n"}
    fs/read_text_file failed: cannot read `../home`: it is outside of `…` (-32602)
    terminal/create: {"terminalId":"terminal-1"}
    terminal/wait_for_exit: {"exitCode":3,"signal":null}
    terminal/output: {"exitStatus":{"exitCode":3,"signal":null},"output":"out\nerr\n","truncated":false}
    terminal/release: {}
    terminal/output failed: there is no terminal `terminal-1` (-32002)
    terminal/create: {"terminalId":"terminal-2"}
    terminal/wait_for_exit: {"exitCode":0,"signal":null}
    terminal/output: {"exitStatus":{"exitCode":0,"signal":null},"output":"rk\n","truncated":true}
    terminal/create: {"terminalId":"terminal-3"}
    terminal/kill: {}
    terminal/wait_for_exit: {"exitCode":null,"signal":"SIGKILL"}
    terminal/create failed: cannot find the program no-such-program (-32603)
    craft/made_up failed: `craft/made_up` is not served here (-32601)
    <promise>COMPLETE</promise>
    "#);
    assert_eq!(fs::read_to_string(world.path("made/new.txt")).unwrap(), "one\ntwo\nthree\n");
}

/// The gate sees a project in which nothing runs any more.
#[test]
fn terminal_process_is_terminated_before_stop_hook_runs() {
    let config = "hooks: {stop: [{command: '! kill -0 $(cat pid)'}]}";
    let script = "
turns:
  - do:
    - request: {method: terminal/create, params: {command: 'echo $$ > pid; echo > ready; exec sleep 60'}}
    - run: cat ready
    - promise: COMPLETE
";
    let world = TestWorld::with_scripted_agent(config, script);
    world.run_command(world.program("mkfifo").arg("ready"));
    let ran = world.run(RUN);
    assert!(ran.code == 0 && ran.stdout.contains("stop[0] ok"), "{ran}");
}

#[test]
fn finished_turn_persists_record_and_usage_with_secrets_redacted() {
    let script = "
turns:
  - do:
    - say: I begin.
    - update: {sessionUpdate: plan, entries: [{content: Look, status: completed}, {content: Mend, status: pending}]}
    - update: {sessionUpdate: made_up, entries: 3}
    - update: {sessionUpdate: usage_update, used: 1, size: 2, cost: {amount: 0.25, currency: USD}}
    - run: 'exit 3'
    - ask: May I mend it?
    - write: {path: mended, content: yes}
    - request: {method: terminal/create, params: {command: 'true'}}
    - say: It is squeamish-ossifrage. <promise>COMPLETE</promise>
    - answer: {stopReason: end_turn, usage: {totalTokens: 1234, inputTokens: 1200, outputTokens: 34}}
";
    let world = TestWorld::with_scripted_agent("secrets: [TOKEN]", script);
    let ran = world.run_with_variable(("TOKEN", "squeamish-ossifrage"), RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!(first_turn_record(&world), @r#"
    I begin.
    [plan
      completed: Look
      pending: Mend]
    [execute: exit 3]
    [execute: exit 3: failed]
    [May I mend it?]
    [asks for permission, May I mend it?: allowed (allow_once)]
    [May I mend it?: completed]
    [edit: Write mended]
    [edit: Write mended: completed]
    [runs true]
    terminal/create: {"terminalId":"terminal-1"}
    It is [secret TOKEN]. <promise>COMPLETE</promise>
    "#);
    let finished = world.event_payloads("turn_finished");
    assert_eq!(finished[0]["usage"], json!({"input": 1200, "output": 34, "cost": 250_000}));
    let logs = world.run_ok(&["session", "logs", SESSION_NAME]);
    assert!(logs.contains("[execute: exit 3: failed]"), "{logs}");
    let logs = world.json_lines(&["session", "logs", SESSION_NAME]);
    assert!(logs.iter().any(|line| line["record"] == finished[0]["record"]), "{logs:?}");
}

/// Failures of an agent in its first turn, and their events. The next turn finds an agent that works.
fn check_first_turn_failure(config: &str, steps: &str, fault: &str, expected: &str) {
    let script = format!("remember: memory.json\nturns: [{{do: [{steps}]}}, {{do: [promise: COMPLETE]}}]");
    let world = TestWorld::with_scripted_agent(config, &script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{steps}\n{ran}");
    let failed = world.event_payloads("iteration_failed");
    assert_eq!(
        (failed.len(), &failed[0]["fault"], &failed[0]["error"]),
        (1, &fault.into(), &expected.into()),
        "{steps}"
    );
}

#[test]
fn agent_that_stays_silent_or_ends_empty_turn_fails_iteration() {
    let silence = "limits: {silence: 300ms, failure_span: 1ms}";
    check_first_turn_failure(silence, "say: I think., wait: 60s", "silent", "the agent was silent for 0.3 s");
    check_first_turn_failure(
        "limits: {failure_span: 1ms}",
        "stop: end_turn",
        "empty",
        "the agent ended its turn without a message and without a tool call",
    );
    check_first_turn_failure(
        "limits: {failure_span: 1ms}",
        "say: '  '",
        "empty",
        "the agent ended its turn without a message and without a tool call",
    );
}

#[test]
fn configured_permissions_deny_terminal_and_allow_file_write() {
    let config =
        "agents: {mine: {driver: acp, command: windlass agent play.yaml, permissions: {execute: deny, other: deny}}}";
    let script = "
turns:
  - do:
    - request: {method: terminal/create, params: {command: touch ran}}
    - request: {method: fs/write_text_file, params: {path: written, content: x}}
    - ask: May I?
  - do: [promise: COMPLETE]
";
    let world = TestWorld::with_scripted_agent(config, script);
    std::os::unix::fs::symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    let ran = world.run(&["run", "Mend the pump", "--agent", "mine"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(world.path("written").exists() && !world.path("ran").exists(), "{ran}");
    let record = first_turn_record(&world);
    assert!(record.contains("[runs touch ran: denied]\n"), "{record}");
    assert!(record.contains("[asks for permission, May I?: denied (reject_once)]\n"), "{record}");
}

/// The output up to the failure is kept.
#[test]
fn failed_turn_persists_output_up_to_failure() {
    let script = "{remember: memory.json, turns: [{do: [{say: I look.}, {run: 'true'}, {crash: 3}]}, {do: [{promise: COMPLETE}]}]}";
    let world = TestWorld::with_scripted_agent("limits: {failure_span: 1ms}", script);
    assert_eq!(world.run(RUN).code, 0);
    assert!(world.event_payloads("iteration_failed")[0]["record"].is_string());
    let logs = world.run_ok(&["session", "logs", SESSION_NAME]);
    assert!(logs.contains("  | I look.\n  | [execute: true]\n  | [execute: true: completed]\n"), "{logs}");
}

/// Output of a program that runs for an agent counts as output of the agent.
#[test]
fn terminal_output_prevents_silence_timeout_of_agent() {
    let script = "
turns:
  - do:
    - request: {method: terminal/create, params: {command: 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.25; done'}}
    - request: {method: terminal/wait_for_exit}
    - promise: COMPLETE
";
    let world = TestWorld::with_scripted_agent("limits: {silence: 1s}", script);
    let ran = world.run(RUN);
    assert!(ran.code == 0 && world.event_payloads("iteration_failed").is_empty(), "{ran}");
}

/// The death is noticed before the next prompt, and another process resumes the conversation.
#[test]
fn agent_that_dies_between_turns_is_respawned_with_same_conversation() {
    let script = "
remember: memory.json
turns:
  - do: [run: echo $PPID > pid, say: Done?]
  - when: was checked
    unless: The end of your last message
    do: [run: echo $PPID > second, promise: COMPLETE]
";
    let world = TestWorld::with_scripted_agent(KILLED_AGENT_CONFIG, script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let openings: Vec<Value> =
        world.event_payloads("conversation_opened").iter().map(|opened| opened["opening"].clone()).collect();
    assert_eq!(openings, ["new", "loaded"]);
    assert_ne!(fs::read(world.path("pid")).unwrap(), fs::read(world.path("second")).unwrap());
    assert!(world.event_payloads("iteration_failed").is_empty(), "{ran}");
}

/// The agent has worked before, and may again.
#[test]
fn agent_restart_failure_fails_one_iteration_and_is_retried() {
    let script = "
remember: memory.json
turns:
  - do: [run: echo $PPID > pid, say: Done?]
  - do: [promise: COMPLETE]
";
    let world = TestWorld::with_scripted_agent(KILLED_AGENT_CONFIG, script);
    world.write(
        "start.sh",
        format!("echo x >> starts; test $(wc -l < starts) = 2 || exec '{WINDLASS}' agent play.yaml"),
    );
    let ran = world.run(&["run", "Mend the pump", "--agent", "acp:exec sh start.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let failed = world.event_payloads("iteration_failed");
    assert!(
        failed.len() == 1 && failed[0]["error"].as_str().unwrap().contains("before it answered `initialize`"),
        "{ran}"
    );
}

/// The reported sum is that of both turns.
#[test]
fn resumed_conversation_counts_its_cost_once() {
    let told = |dollars| format!("update: {{sessionUpdate: usage_update, cost: {{amount: {dollars}, currency: USD}}}}");
    let script = format!(
        "{{remember: memory.json, turns: [{{do: [run: echo $PPID > pid, {}, say: Done?]}}, {{do: [{}, promise: COMPLETE]}}]}}",
        told(0.25),
        told(0.75)
    );
    let world = TestWorld::with_scripted_agent(KILLED_AGENT_CONFIG, &script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let costs: Vec<Value> =
        world.event_payloads("turn_finished").iter().map(|turn| turn["usage"]["cost"].clone()).collect();
    assert_eq!(costs, [250_000, 500_000]);
}

#[test]
fn conversation_is_resumed_when_agent_cannot_load_it() {
    let script = "
remember: memory.json
resume: true
turns:
  - do: [run: echo $PPID > pid, say: Done?]
  - unless: The end of your last message
    do: [promise: COMPLETE]
";
    let world = TestWorld::with_scripted_agent(KILLED_AGENT_CONFIG, script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.event_payloads("conversation_opened")[1]["opening"], "loaded");
}

fn process_state(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn await_condition(what: &str, is_so: impl Fn() -> bool) {
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < give_up, "{what}");
        std::thread::yield_now();
    }
}

/// Changes during the judgement would not be judged.
#[test]
fn agent_stays_suspended_during_stop_hook_after_run_receives_sigcont() {
    let config = "hooks: {stop: [{command: 'echo > started; cat go'}]}";
    let script = "turns: [{do: [{run: 'echo $PPID > pid'}, {promise: COMPLETE}]}]";
    let world = TestWorld::with_scripted_agent(config, script);
    for pipe in ["started", "go"] {
        world.run_command(world.program("mkfifo").arg(pipe));
    }
    let mut child = world.command(RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    fs::read(world.path("started")).unwrap();
    let agent = fs::read_to_string(world.path("pid")).unwrap();
    let windlass = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(windlass, Signal::TSTP).unwrap();
    await_condition("the agent stands still", || process_state(&agent) == Some('T'));
    await_condition("and so do we", || process_state(&child.id().to_string()) == Some('T'));
    rustix::process::kill_process(windlass, Signal::CONT).unwrap();
    await_condition("we go on", || process_state(&child.id().to_string()) != Some('T'));
    assert_eq!(process_state(&agent), Some('T'));
    fs::write(world.path("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}
