//! Agents with the Agent Client Protocol: well-behaved ones, and others

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::support::{TestWorld, WINDLASS, normalize_durations};

const RUN: &[&str] = &["run", "Mend the pump", "--agent", "scripted:play.yaml"];

impl TestWorld {
    /// Returns how each conversation was opened.
    fn conversation_openings(&self) -> Vec<String> {
        let opened = self.event_payloads("conversation_opened");
        opened.iter().map(|opened| opened["opening"].as_str().unwrap().to_owned()).collect()
    }

    fn file_text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

/// The script checks the prompts: a turn that fits none of them fails.
#[test]
fn one_process_remembers_from_turn_to_turn() {
    let config = "
hooks:
  stop: [{command: 'test -e mended || { echo leaks >&2; exit 2; }'}]
";
    let script = "
turns:
  - unless: The end of your last message
    do:
      - say: I look. <promise>COMPLETE</promise>
      - run: echo $PPID >> pids
      - say: Half of it is there.
  - when: leaks
    unless: The end of your last message
    do:
      - run: echo $PPID >> pids
      - ask: May I mend it?
      - write: {path: mended, content: yes}
      - say: All of it is there.
      - promise: COMPLETE
";
    let world = TestWorld::with_scripted_agent(config, script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session mend-the-pump-e01275de
      scripted:play.yaml, at most 25 iterations
    iteration 1
      agent: Half of it is there.
      stop[0] blocks: leaks
      [Hook retry 1/5: leaks]
      the agent gets one piece of feedback
      agent: All of it is there.
      the agent says that it is done
      stop[0] ok
    complete after one iteration
      took <took> agent <took> hooks <took> 2 turns
    ");
    assert_eq!(world.conversation_openings(), ["new"]);
    let pids = world.file_text("pids");
    let pids: Vec<&str> = pids.lines().collect();
    assert!(pids.len() == 2 && pids[0] == pids[1], "{pids:?}");
    assert!(!fs::exists(format!("/proc/{}", pids[0])).unwrap(), "it is gone with the session");
}

/// Failures of an agent in its first turn, and their events. The next turn finds an agent that works.
fn check_first_turn_failure(config: &str, steps: &str, fault: &str, expected: &str) {
    let script = format!(
        "remember: memory.json
turns:
  - do: [{steps}]
  - do: [say: Now it works., promise: COMPLETE]
"
    );
    let world = TestWorld::with_scripted_agent(config, &script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{steps}\n{ran}");
    let failed = world.event_payloads("iteration_failed");
    assert_eq!(failed.len(), 1, "{steps}\n{ran}");
    assert_eq!(failed[0]["error"], expected, "{steps}");
    assert_eq!(failed[0]["fault"].as_str().unwrap_or_default(), fault, "{steps}");
}

#[test]
fn turn_failures_are_recorded_with_distinct_faults_and_errors() {
    let ended = "the agent ended before it answered `session/prompt`";
    let broke = "the agent broke the protocol: ";
    for (steps, fault, expected) in [
        ("crash: 3", "crashed", format!("{ended} (exit 3)")),
        ("say: wait, run: kill -9 $PPID", "crashed", format!("{ended} (signal 9)")),
        (
            "print: '{\"jsonrpc\": oops'",
            "garbage",
            format!("{broke}it sent a line that is not JSON (expected value): `{{\"jsonrpc\": oops`"),
        ),
        (
            "print: '{\"x\": 1}'",
            "breach",
            format!("{broke}it sent a line that is not a JSON-RPC message: `{{\"x\": 1}}`"),
        ),
        ("stray: 77", "breach", format!("{broke}it answered a request that was not sent (id 77)")),
        ("long_line: 17000000", "breach", format!("{broke}it sent a line of more than 16 MiB")),
        ("fail: no model", "", "the agent failed: no model (error -32603)".to_owned()),
        (
            "say: I must go., stop: max_turn_requests",
            "out_of_turns",
            "the agent ran out of requests (max_turn_requests): I must go.".to_owned(),
        ),
        (
            "say: I will not., stop: refusal",
            "refused",
            "the agent refused to continue (refusal): I will not.".to_owned(),
        ),
        ("stop: cancelled", "gave_up", "the agent cancelled its turn itself (cancelled)".to_owned()),
        ("stop: whim", "breach", "the agent ended its turn for a reason that is not known here (`whim`)".to_owned()),
        (
            "replace: {path: nowhere, old: a, new: b}",
            "",
            "the agent failed: cannot change `nowhere`: No such file or directory (os error 2) (error -32603)"
                .to_owned(),
        ),
    ] {
        check_first_turn_failure("limits: {failure_span: 1ms}", steps, fault, &expected);
    }
}

#[test]
fn conversation_out_of_tokens_is_replaced_by_new_conversation() {
    let config = "hooks: {pre_iteration: [{command: 'echo round {{iteration}}', pipe_output: true}]}";
    let script = "
remember: memory.json
turns:
  - when: round 2
    do: [say: Now it works., promise: COMPLETE]
  - do: [say: Half of it., stop: max_tokens]
";
    let world = TestWorld::with_scripted_agent(config, script);
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let failed = world.event_payloads("iteration_failed");
    assert_eq!(failed[0]["error"], "the agent ran out of tokens (max_tokens): Half of it.");
    assert_eq!(failed[0]["fault"], "out_of_tokens");
    assert_eq!(world.conversation_openings(), ["new", "new"]);
}

#[test]
fn turn_exceeding_turn_time_fails_as_timed_out() {
    check_first_turn_failure(
        "limits: {turn_time: 200ms, failure_span: 1ms}",
        "say: I think., wait: 60s",
        "timed_out",
        "timed out after 200 ms",
    );
}

/// The session ends at its limit, whatever the agent does: nothing has failed.
#[test]
fn acp_session_ends_at_wall_time_without_failed_iteration() {
    let config = "
limits: {wall_time: 1s}
hooks: {on_error: [{command: touch failed}], session_end: [{command: touch ended}]}
";
    for agent in ["scripted:play.yaml", "acp:exec sleep 60"] {
        let world = TestWorld::with_scripted_agent(config, "turns: [{do: [{wait: 60s}]}]");
        let ran = world.run(&["run", "Mend the pump", "--agent", agent]);
        assert_eq!(ran.code, 3, "{agent}\n{ran}");
        assert!(ran.stdout.contains("ended after one iteration: the wall time of 1 s is used up"), "{agent}\n{ran}");
        assert!(world.path("ended").exists() && !world.path("failed").exists(), "{agent}\n{ran}");
        assert!(world.event_payloads("iteration_failed").is_empty(), "{agent}\n{ran}");
    }
}

/// An agent in a shell. It runs `$pause` before each answer, and says goodbye when it is closed.
const SHELL_AGENT: &str = r#"
answer() { read -r line; sleep $pause; echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
answer 1 '{"protocolVersion":1}'
answer 2 '{"sessionId":"one"}'
read -r prompt
text='{"type":"text","text":"<promise>COMPLETE</promise>"}'
update="{\"sessionUpdate\":\"agent_message_chunk\",\"content\":$text}"
echo "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"one\",\"update\":$update}}"
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
cat > rest
touch goodbye
"#;
const RUN_SHELL_AGENT: &[&str] = &["run", "Mend the pump", "--agent", "acp:sh agent.sh"];

#[test]
fn opening_and_prompting_share_the_time_of_a_turn() {
    let world = TestWorld::with_scripted_agent("limits: {turn_time: 2s, failure_span: 1ms}", "");
    world.write("agent.sh", format!("pause=0; test -e again || pause=1.4; touch again\n{SHELL_AGENT}"));
    let ran = world.run(RUN_SHELL_AGENT);
    assert_eq!(ran.code, 0, "{ran}");
    let failed = world.event_payloads("iteration_failed");
    assert!(failed.len() == 1 && failed[0]["error"] == "timed out after 2 s", "{ran}\n{failed:?}");
}

/// A session that waits for a person is not over, but its agent is not needed meanwhile.
#[test]
fn agent_is_closed_while_session_waits_for_person() {
    let config = "
limits: {max_hook_retries: 0}
on_retry_limit: ask
hooks: {stop: [{command: exit 2}]}
";
    let world = TestWorld::with_scripted_agent(config, "");
    world.write("agent.sh", format!("pause=0\n{SHELL_AGENT}"));
    let ran = world.run(RUN_SHELL_AGENT);
    assert!(ran.code == 4 && ran.stdout.contains("a person is asked"), "{ran}");
    assert!(world.path("goodbye").exists(), "{ran}");
}

/// Programs that are no agents: the session ends at once, and says why.
#[test]
fn agent_that_fails_acp_initialization_ends_session_with_reason() {
    let answers = |answer: &str| format!("sh -c 'read line; echo \"{}\"; cat'", answer.replace('"', "\\\""));
    let cases = [
        ("no-such-agent 'acp'".to_owned(), "not found"),
        ("true".to_owned(), "the agent ended before it answered `initialize` (exit 0)"),
        ("echo Hello; echo no key >&2; exit 4".to_owned(), "(exit 4): no key; it wrote `Hello`"),
        ("cat".to_owned(), "the agent refused `initialize`: `initialize` is not served here (error -32601)"),
        (
            "while :; do echo y; done".to_owned(),
            "it writes other text than messages to its standard output, such as: `y`",
        ),
        (answers(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":7}}"#), "version 7 of the protocol"),
        (answers(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"who?"}}"#), "wants a login first"),
        (answers(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#), "was not sent (id 9)"),
    ];
    for (command, expected) in cases {
        let world = TestWorld::empty();
        let ran = world.run(&["run", "Mend the pump", "--agent", &format!("acp:{command}")]);
        assert_eq!(ran.code, 1, "{command}\n{ran}");
        assert!(ran.stdout.contains(expected), "{command}\n{ran}");
    }
}

#[test]
fn invalid_or_missing_script_is_rejected_with_exit_64() {
    let world = TestWorld::empty();
    world.write("bad.yaml", "turns: [{do: [{sing: a song}]}]");
    let ran = world.run(&["run", "Mend the pump", "--agent", "scripted:bad.yaml"]);
    assert!(
        ran.code == 64 && ran.stderr.contains("bad.yaml` as a script\ncaused by: cannot read the script: "),
        "{ran}"
    );
    assert_eq!(world.run(&["agent", "bad.yaml"]).code, 64);
    assert_eq!(world.run(&["agent", "none.yaml"]).code, 64);
    assert_eq!(world.run(&["--json", "agent", "bad.yaml"]).code, 64);
}

/// A run in the middle of a turn: the agent has written to `started`.
struct RunInTurn {
    world: TestWorld,
    child: Child,
}

impl RunInTurn {
    fn new(config: &str, script: &str) -> Self {
        let world = TestWorld::with_scripted_agent(config, script);
        world.run_command(world.program("mkfifo").arg("started"));
        let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        fs::read(world.path("started")).unwrap();
        Self { world, child }
    }

    fn end_by_signals(&mut self, signals: &[Signal]) -> (i32, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        for signal in signals {
            rustix::process::kill_process(pid, *signal).unwrap();
        }
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), said)
    }
}

/// After a crash the same conversation goes on, if the agent supports it, and replayed messages are no claims.
#[test]
fn killed_run_resumes_same_conversation_and_ignores_replayed_promises() {
    let config = "hooks: {stop: [{command: 'test -e checked || { touch checked; exit 2; }'}]}";
    let script = "
remember: memory.json
turns:
  - do: [say: Done?, promise: COMPLETE]
  - when: was checked
    do: [run: echo > started, wait: 60s]
  - unless: The end of your last message
    do: [say: I am still at it.]
  - do: [promise: COMPLETE]
";
    let mut midway = RunInTurn::new(config, script);
    assert_eq!(midway.end_by_signals(&[Signal::KILL]).0, 137);
    let world = midway.world;
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session mend-the-pump-e01275de, resumed
      turn interrupted
    iteration 2
      the agent gets one piece of feedback
      agent: I am still at it.
      stop[0] ok
    iteration 3
      the agent says that it is done
      stop[0] ok
    complete after 3 iterations
      took <took> agent <took> hooks <took> 4 turns
    ");
    assert_eq!(world.conversation_openings(), ["new", "loaded"]);
}

const RUN_TASK: &[&str] = &["run", "--task", "T1", "--agent", "scripted:play.yaml", "--max-iterations", "1"];

/// The next run of the task is another session, whose agent knows the earlier work.
#[test]
fn conversation_goes_on_in_the_next_session_after_ctrl_c() {
    let script = "
remember: memory.json
turns:
  - do: [run: 'test -e begun || { touch begun; echo > started; sleep 60; }', promise: COMPLETE]
";
    for (fresh, opening) in [(&[][..], "loaded"), (&["--fresh"], "new")] {
        let mut midway = RunInTurn::new("", script);
        assert_eq!(midway.end_by_signals(&[Signal::INT]).0, 130);
        let ran = midway.world.run(&[RUN_TASK, fresh].concat());
        assert_eq!(midway.world.conversation_openings(), ["new", opening], "{ran}");
    }
}

#[test]
fn agent_without_resume_support_receives_earlier_output_in_new_conversation() {
    let script = "
turns:
  - do: [say: Half of it is there.]
  - do: [run: echo > started, wait: 60s]
";
    let mut midway = RunInTurn::new("", script);
    assert_eq!(midway.end_by_signals(&[Signal::KILL]).0, 137);
    let world = midway.world;
    world.write("play.yaml", "turns: [{when: Half of it is there., do: [{promise: COMPLETE}]}]");
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.conversation_openings(), ["new", "anew"]);
    assert_eq!(world.event_payloads("conversation_opened")[1]["reason"], "the agent cannot resume a conversation");
    let why = world.run_ok(&["why", "mend-the-pump-e01275de", "--full"]);
    assert!(why.contains("started again: the agent cannot resume a conversation"), "{why}");
}

#[test]
fn interrupt_cancels_session_without_starting_another_turn() {
    let config = "
hooks:
  session_start: [{command: echo remember, pipe_output: true}]
  session_end: [{command: touch ended}]
";
    let script = "
turns:
  - do: [run: echo $PPID > first; echo > started, wait: 60s]
  - do: [run: touch again, say: I have heard it.]
";
    let mut midway = RunInTurn::new(config, script);
    let (code, said) = midway.end_by_signals(&[Signal::INT]);
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("cancelled after one iteration"), "{said}");
    let world = midway.world;
    assert!(world.path("ended").exists());
    assert!(!world.path("again").exists());
    assert_eq!(world.conversation_openings(), ["new"]);
}

#[test]
fn hanging_agent_is_terminated_by_second_signal() {
    let script = "turns: [{do: [{run: echo $PPID > agent; echo > started}, hang]}]";
    let mut midway = RunInTurn::new("", script);
    // Two of the same kind could be confused.
    let (code, said) = midway.end_by_signals(&[Signal::INT, Signal::TERM]);
    assert!([130, 143].contains(&code), "{said}");
    let agent = midway.world.file_text("agent");
    assert!(!fs::exists(format!("/proc/{}", agent.trim())).unwrap(), "nothing survives");
}

/// A persistent agent has the run of its first turn in its environment. Its commands count for the present turn.
#[test]
fn commands_from_inside_belong_to_the_turn_that_runs() {
    let script = "
turns:
  - do: [run: windlass task add One]
  - do: [run: windlass task add Two, promise: COMPLETE]
";
    let world = TestWorld::with_scripted_agent("", script);
    std::os::unix::fs::symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let created = world.json_lines(&["events", "--type", "task_created"]);
    let iterations: Vec<_> = created.iter().map(|event| event["iteration"].as_u64()).collect();
    // The first is the goal itself.
    assert_eq!(iterations, [None, Some(1), Some(2)]);
}

#[test]
fn scripted_agent_from_configuration_completes_session() {
    let world = TestWorld::with_scripted_agent("agent: scripted:play.yaml", "turns: [{do: [{promise: COMPLETE}]}]");
    let ran = world.run(&["run", "Mend the pump"]);
    assert_eq!(ran.code, 0, "{ran}");
}

/// A conversation about one task is unknown to the agent of the next task.
#[test]
fn each_task_has_a_conversation_of_its_own() {
    let script = "
turns:
  - when: Mend the pump
    do: [run: echo $PPID $WINDLASS_TASK_ID > one, promise: COMPLETE]
  - when: Paint it
    unless: The end of your last message
    do: [run: echo $PPID $WINDLASS_TASK_ID > two, promise: COMPLETE]
";
    let world = TestWorld::with_scripted_agent("", script);
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "Mend the pump"]);
    world.run_ok(&["task", "add", "Paint it", "--depends", "T1"]);
    let ran = world.run(&["run", "--agent", "scripted:play.yaml", "--trust"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.conversation_openings(), ["new", "new"]);
    let (one, two) = (world.file_text("one"), world.file_text("two"));
    let (one, two) = (one.trim().split_once(' ').unwrap(), two.trim().split_once(' ').unwrap());
    assert!(one.0 != two.0 && one.1 == "T1" && two.1 == "T2", "{one:?} {two:?}");
}

#[test]
fn model_that_agent_does_not_offer_is_reported_in_note() {
    let world = TestWorld::with_scripted_agent(
        "agents: {picky: {driver: scripted, command: play.yaml, model: big}}",
        "turns: [{do: [{say: Done. <promise>COMPLETE</promise>}]}]",
    );
    let ran = world.run(&["run", "Mend the pump", "--agent", "picky"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.to_string().contains("note: the model `big` cannot be chosen: the agent offers no choice"), "{ran}");
}

#[test]
fn configured_servers_of_tools_reach_the_agent() {
    let agent = "
while read -r line; do
  printf '%s\\n' \"$line\" >> asked
  printf '%s' \"$line\" | jq -c '{jsonrpc: \"2.0\", id, result: {protocolVersion: 1, sessionId: \"s\", stopReason: \"end_turn\"}}'
done
";
    let config = |server: &str| {
        format!("agents: {{mine: {{driver: acp, command: sh agent.sh, mcp_servers: {{files: {server}}}}}}}\n")
    };
    let world = TestWorld::empty();
    world.write("agent.sh", agent);
    let run = ["run", "Mend the pump", "--agent", "mine", "--max-iterations", "1", "--trust"];
    world.write(".windlass/config.yaml", config("{command: nowhere}"));
    let ran = world.run(&run);
    assert!(ran.code == 64 && ran.stderr.contains("cannot find the program nowhere"), "{ran}");
    world.write(".windlass/config.yaml", config("{command: cat, args: [-u], env: {PORT: 7}}"));
    world.run(&run);
    let asked = world.file_text("asked");
    let opened = asked.lines().find(|line| line.contains("session/new")).unwrap();
    let opened: serde_json::Value = serde_json::from_str(opened).unwrap();
    let server = &opened["params"]["mcpServers"][0];
    assert_eq!((&server["name"], &server["args"][0]), (&"files".into(), &"-u".into()));
    assert!(server["command"].as_str().is_some_and(|command| command.ends_with("/cat") && command.starts_with('/')));
    assert_eq!(server["env"][0], serde_json::json!({"name": "PORT", "value": "7"}));
}
