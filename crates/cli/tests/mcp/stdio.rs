//! One client over standard streams.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use super::{McpServerProcess, call_request, initialize_request, request_line};
use crate::support::TestWorld;
use crate::support::hook_project::{FaultyHookPoint, await_process_end, create_hook_project};

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

#[test]
fn stdio_server_answers_calls_and_exits_when_input_closes() {
    let world = TestWorld::new();
    let mut server = McpServerProcess::start(&world, &[]);
    assert_eq!(server.send_request(initialize_request())["result"]["protocolVersion"], "2025-11-25");
    server.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(server.call_tool("task_create", &json!({"goal": "Mend the pump"}))["id"], "T1");
    assert_eq!(server.call_tool("task_next", &json!({}))["goal"], "Mend the pump");
    assert_eq!(server.close_input(), (Some(0), String::new()));
    assert_eq!(world.json(&["task", "show", "T1"])["goal"], "Mend the pump");
}

#[test]
fn server_inside_a_run_gives_no_instructions_for_self_iteration() {
    let world = TestWorld::new();
    let mut instructions = Vec::new();
    for run in ["", "pump.1.0123456789abcdef"] {
        let mut command = world.command(&["mcp"]);
        let mut server = McpServerProcess::spawn(command.env("WINDLASS_RUN", run));
        instructions
            .push(server.send_request(initialize_request())["result"]["instructions"].as_str().unwrap().to_owned());
        server.close_input();
    }
    assert!(instructions[0].contains("To work through a task by yourself"), "{instructions:?}");
    assert!(
        instructions[1].starts_with("Windlass runs you") && instructions[1].contains("session_complete"),
        "{instructions:?}"
    );
}

/// The server sees changes by other processes, and a project does not need a store before the first call.
#[test]
fn server_opens_store_lazily_and_sees_external_changes() {
    let world = TestWorld::empty();
    std::fs::create_dir(world.path(".windlass")).unwrap();
    let mut server = McpServerProcess::start(&world, &[]);
    server.send_request(initialize_request());
    assert!(!world.path(".windlass/windlass.db").exists());
    let missing = server.call_tool("task_next", &json!({}))["error"].take();
    assert_eq!(missing["code"], "store", "{missing}");
    world.run_ok(&["init"]);
    world.run_ok(&["task", "add", "One"]);
    assert_eq!(server.call_tool("task_next", &json!({}))["id"], "T1");
    world.run_ok(&["task", "add", "Two", "--priority", "0"]);
    assert_eq!(server.call_tool("task_next", &json!({}))["id"], "T2");
    assert_eq!(server.close_input(), (Some(0), String::new()));
}

#[test]
fn mcp_server_refuses_to_start_without_project_or_with_json() {
    let world = TestWorld::empty();
    insta::assert_snapshot!(world.expect_failure(&["mcp"]), @r"
    error: there is no project here
    caused by: `$WORK` and its parents have no `.windlass` directory
    hint: `windlass init` makes one here
    [64 no_project]
    ");
    let world = TestWorld::new();
    insta::assert_snapshot!(world.run(&["mcp", "--json"]), @r#"
    {"error":{"causes":[],"code":"usage","hint":"with --http, --json says where to connect","message":"the tools speak a protocol of their own; they have no --json"}}
    [exit 64]
    "#);
}

/// Some clients use sockets as pipes, and people use files.
#[test]
fn streams_of_every_kind_are_served() {
    let world = TestWorld::new();
    let asked = format!("{}\n{}", initialize_request(), request_line(1, "ping", &json!({})));
    let pong = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    let input = File::open(world.write("asked", &asked)).unwrap();
    let output = File::create(world.path("answered")).unwrap();
    let ran = world.run_command(world.command(&["mcp"]).stdin(input).stdout(output));
    let answered = std::fs::read_to_string(world.path("answered")).unwrap();
    assert_eq!((ran.code, answered.lines().nth(1)), (0, Some(pong)), "{ran}");

    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let end = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
    let mut child = world.command(&["mcp"]).stdin(end()).stdout(end()).spawn().unwrap();
    drop(theirs);
    ours.write_all(asked.as_bytes()).unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let mut answered = String::new();
    ours.read_to_string(&mut answered).unwrap();
    assert_eq!(answered.lines().nth(1), Some(pong));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The server answers every malformed message with an error, and continues.
#[test]
fn malformed_messages_do_not_end_the_server() {
    let world = TestWorld::new();
    let mut server = McpServerProcess::start(&world, &[]);
    server.send_request(initialize_request());
    let before = server.peak_memory();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let refused = [
        (b"{\"jsonrpc\":".to_vec(), -32700),
        (b"\xff\xfe\x00".to_vec(), -32700),
        (deep.clone().into_bytes(), -32600),
        (call_request(1, "task_next", &json!({})).replace("{}", &format!("{{\"a\":{deep}}}")).into_bytes(), -32700),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]".to_vec(), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}".to_vec(), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[]}".to_vec(), -32602),
        (call_request(1, "no_such_tool", &json!({})).into_bytes(), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}".to_vec(), -32601),
        (vec![b' '; 100_000_000], -32600),
        ([b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"".as_slice(), &vec![b'x'; 100_000_000]].concat(), -32600),
    ];
    for (sent, code) in refused {
        let head = String::from_utf8_lossy(&sent[..sent.len().min(60)]).into_owned();
        assert_eq!(server.send_request(&sent)["error"]["code"], code, "{head}");
    }
    for ignored in [r#"{"jsonrpc":"2.0","method":"no/such"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "", CANCEL] {
        server.send_line(ignored);
    }
    assert_eq!(server.send_request(request_line(9, "ping", &json!({})))["id"], 9);
    let grown = (server.peak_memory() - before) / 1024 / 1024;
    assert!(grown < 40, "memory grew by {grown} MiB");
    assert_eq!(server.close_input(), (Some(0), String::new()));
}

/// A client that sends all messages and then closes its input still gets all answers.
#[test]
fn last_message_is_answered_after_client_closes_input() {
    let world = TestWorld::new();
    for last in
        ["{broken".to_owned(), call_request(1, "no_such_tool", &json!({})), call_request(1, "task_list", &json!({}))]
    {
        for _ in 0..5 {
            let ran = world.run_with_input(&["mcp"], last.as_bytes());
            assert_eq!((ran.code, ran.stdout.lines().count()), (0, 1), "{last}\n{ran}");
        }
    }
}

/// Creates a project whose hook writes its process number and then does not end by itself.
fn project_with_stuck_hook() -> TestWorld {
    let world = create_hook_project("hooks: {task_created: [{name: stuck, command: sh stuck.sh}]}\n");
    world.write("stuck.sh", "echo $$ > pid; echo > started; exec sleep 1000\n");
    world.make_pipe("started");
    world
}

#[test]
fn others_are_answered_while_a_hook_runs_and_cancelling_a_call_ends_it() {
    let world = project_with_stuck_hook();
    let mut server = McpServerProcess::start(&world, &[]);
    server.send_request(initialize_request());
    server.send_line(call_request(1, "task_create", &json!({"goal": "One"})));
    world.await_pipe("started");
    assert_eq!(server.send_request(request_line(2, "ping", &json!({})))["id"], 2);
    assert_eq!(server.send_request(call_request(3, "task_get", &json!({"taskId": "T1"})))["id"], 3);
    server.send_line(CANCEL);
    await_process_end(world.read_number("pid"));
    assert_eq!(server.send_request(request_line(4, "ping", &json!({})))["id"], 4, "the cancelled call is not answered");
    assert_eq!(server.close_input().0, Some(0));
    assert_eq!(world.last_hook_outcome("stuck").0, "cancelled");
}

#[test]
fn server_answers_pending_call_and_terminates_hook_on_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = project_with_stuck_hook();
        let mut server = McpServerProcess::start(&world, &[]);
        server.send_line(call_request(1, "task_create", &json!({"goal": "One"})));
        world.await_pipe("started");
        server.send_signal(signal);
        assert_eq!(server.read_message()["id"], 1, "what was under way is answered");
        assert_eq!(server.wait_for_exit().0, Some(0), "{signal:?}");
        await_process_end(world.read_number("pid"));
        world.run_ok(&["doctor"]);
    }
}

/// The program of a rule has a supervisor, so that it ends together with its server.
#[test]
fn rule_command_is_terminated_when_server_is_killed() {
    let world = TestWorld::with_tasks(&["One"]);
    world.make_pipe("started");
    let mut server = McpServerProcess::start(&world, &[]);
    let command = "setsid sh -c 'echo $$ > pid; echo > started; exec sleep 1000'";
    let rules = json!([{"type": "command", "name": "slow", "config": {"command": command}}]);
    let start =
        json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE"], "validationRules": rules});
    let started = server.send_request(call_request(1, "iteration_start", &start));
    let series = &started["result"]["structuredContent"]["iterationId"];
    assert!(series.is_string(), "{started}");
    server.send_line(call_request(2, "iteration_validate", &json!({"iterationId": series, "agentOutput": "x"})));
    world.await_pipe("started");
    server.send_signal(Signal::KILL);
    await_process_end(world.read_number("pid"));
    world.run_ok(&["doctor"]);
}

/// The output of a hook does not appear in the protocol.
#[test]
fn only_the_protocol_is_on_standard_output() {
    let world = FaultyHookPoint::Command.create_project("echo chatter; echo more >&2; exit 3", "timeout: 30s");
    let mut server = McpServerProcess::start(&world, &[]);
    server.send_request(initialize_request());
    let created = server.call_tool("task_create", &json!({"goal": "One"}));
    assert_eq!(created["id"], "T1", "{created}");
    let (code, output_text) = server.close_input();
    assert_eq!(code, Some(0));
    assert!(output_text.starts_with("warning: hook `bad` failed: "), "{output_text}");
}

/// The server must not wait forever for a client that stops reading.
#[test]
fn server_ends_when_client_stops_reading() {
    let world = TestWorld::new();
    let mut command = world.command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", initialize_request()).unwrap();
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    writeln!(input, "{}", request_line(1, "ping", &json!({}))).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
