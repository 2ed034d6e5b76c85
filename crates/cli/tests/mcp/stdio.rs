//! One client at the standard streams.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use super::{Served, call, initialize, request};
use crate::support::World;
use crate::support::hooked::{At, await_end, hooked};

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

#[test]
fn an_agent_is_served_and_the_end_of_its_input_is_the_end() {
    let world = World::new();
    let mut served = Served::start(&world, &[]);
    assert_eq!(served.ask(initialize())["result"]["protocolVersion"], "2025-11-25");
    served.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(served.call("task_create", &json!({"goal": "Mend the pump"}))["id"], "T1");
    assert_eq!(served.call("task_next", &json!({}))["goal"], "Mend the pump");
    assert_eq!(served.close(), (Some(0), String::new()));
    assert_eq!(world.json(&["task", "show", "T1"])["goal"], "Mend the pump");
}

#[test]
fn server_inside_a_run_gives_no_instructions_for_self_iteration() {
    let world = World::new();
    let mut told = Vec::new();
    for run in ["", "pump.1.0123456789abcdef"] {
        let mut command = world.command(&["mcp"]);
        let mut served = Served::of(command.env("WINDLASS_RUN", run));
        told.push(served.ask(initialize())["result"]["instructions"].as_str().unwrap().to_owned());
        served.close();
    }
    assert!(told[0].contains("To work through a task by yourself"), "{told:?}");
    assert!(told[1].starts_with("Windlass runs you") && told[1].contains("session_complete"), "{told:?}");
}

/// What others do in the meantime is seen, and a project need not have a store before the first call.
#[test]
fn the_project_is_opened_by_the_first_call() {
    let world = World::empty();
    std::fs::create_dir(world.path(".windlass")).unwrap();
    let mut served = Served::start(&world, &[]);
    served.ask(initialize());
    assert!(!world.path(".windlass/windlass.db").exists());
    let missing = served.call("task_next", &json!({}))["error"].take();
    assert_eq!(missing["code"], "store", "{missing}");
    world.ok(&["init"]);
    world.ok(&["task", "add", "One"]);
    assert_eq!(served.call("task_next", &json!({}))["id"], "T1");
    world.ok(&["task", "add", "Two", "--priority", "0"]);
    assert_eq!(served.call("task_next", &json!({}))["id"], "T2");
    assert_eq!(served.close(), (Some(0), String::new()));
}

#[test]
fn it_says_where_it_cannot_be_started() {
    let world = World::empty();
    insta::assert_snapshot!(world.fails(&["mcp"]), @r"
    error: there is no project here
    caused by: `$WORK` and its parents have no `.windlass` directory
    hint: `windlass init` makes one here
    [64 no_project]
    ");
    let world = World::new();
    insta::assert_snapshot!(world.run(&["mcp", "--json"]), @r#"
    {"error":{"causes":[],"code":"usage","hint":"with --http, --json says where to connect","message":"the tools speak a protocol of their own; they have no --json"}}
    [exit 64]
    "#);
}

/// Some clients use sockets as pipes, and people use files.
#[test]
fn streams_of_every_kind_are_served() {
    let world = World::new();
    let asked = format!("{}\n{}", initialize(), request(1, "ping", &json!({})));
    let pong = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    let input = File::open(world.write("asked", &asked)).unwrap();
    let output = File::create(world.path("answered")).unwrap();
    let ran = world.finish(world.command(&["mcp"]).stdin(input).stdout(output));
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

/// Whatever is sent, there is an error of its own, and the server is still there.
#[test]
fn malformed_messages_do_not_end_the_server() {
    let world = World::new();
    let mut served = Served::start(&world, &[]);
    served.ask(initialize());
    let before = served.memory();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let refused = [
        (b"{\"jsonrpc\":".to_vec(), -32700),
        (b"\xff\xfe\x00".to_vec(), -32700),
        (deep.clone().into_bytes(), -32600),
        (call(1, "task_next", &json!({})).replace("{}", &format!("{{\"a\":{deep}}}")).into_bytes(), -32700),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]".to_vec(), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}".to_vec(), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[]}".to_vec(), -32602),
        (call(1, "no_such_tool", &json!({})).into_bytes(), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}".to_vec(), -32601),
        (vec![b' '; 100_000_000], -32600),
        ([b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"".as_slice(), &vec![b'x'; 100_000_000]].concat(), -32600),
    ];
    for (sent, code) in refused {
        let head = String::from_utf8_lossy(&sent[..sent.len().min(60)]).into_owned();
        assert_eq!(served.ask(&sent)["error"]["code"], code, "{head}");
    }
    for ignored in [r#"{"jsonrpc":"2.0","method":"no/such"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "", CANCEL] {
        served.send(ignored);
    }
    assert_eq!(served.ask(request(9, "ping", &json!({})))["id"], 9);
    let grown = (served.memory() - before) / 1024 / 1024;
    assert!(grown < 40, "memory grew by {grown} MiB");
    assert_eq!(served.close(), (Some(0), String::new()));
}

/// Whoever says all at once and goes is still answered, whatever was said last.
#[test]
fn the_last_word_is_answered_too() {
    let world = World::new();
    for last in ["{broken".to_owned(), call(1, "no_such_tool", &json!({})), call(1, "task_list", &json!({}))] {
        for _ in 0..5 {
            let ran = world.feed(&["mcp"], last.as_bytes());
            assert_eq!((ran.code, ran.stdout.lines().count()), (0, 1), "{last}\n{ran}");
        }
    }
}

/// A hook of a call that runs until it is told to end, and says where it is.
fn stuck() -> World {
    let world = hooked("hooks: {task_created: [{name: stuck, command: sh stuck.sh}]}\n");
    world.write("stuck.sh", "echo $$ > pid; echo > started; exec sleep 1000\n");
    world.make_pipe("started");
    world
}

#[test]
fn others_are_answered_while_a_hook_runs_and_cancelling_a_call_ends_it() {
    let world = stuck();
    let mut served = Served::start(&world, &[]);
    served.ask(initialize());
    served.send(call(1, "task_create", &json!({"goal": "One"})));
    world.await_word("started");
    assert_eq!(served.ask(request(2, "ping", &json!({})))["id"], 2);
    assert_eq!(served.ask(call(3, "task_get", &json!({"taskId": "T1"})))["id"], 3);
    served.send(CANCEL);
    await_end(world.number_in("pid"));
    assert_eq!(served.ask(request(4, "ping", &json!({})))["id"], 4, "the cancelled call is not answered");
    assert_eq!(served.close().0, Some(0));
    assert_eq!(world.ending_of("stuck").0, "cancelled");
}

#[test]
fn a_signal_ends_it_with_everything_that_it_has_started() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = stuck();
        let mut served = Served::start(&world, &[]);
        served.send(call(1, "task_create", &json!({"goal": "One"})));
        world.await_word("started");
        served.signal(signal);
        assert_eq!(served.next()["id"], 1, "what was under way is answered");
        assert_eq!(served.ended().0, Some(0), "{signal:?}");
        await_end(world.number_in("pid"));
        world.ok(&["doctor"]);
    }
}

/// The program of a rule has a supervisor, so that it does not outlive who has it run.
#[test]
fn a_rule_does_not_outlive_a_server_that_is_killed() {
    let world = World::with_tasks(&["One"]);
    world.make_pipe("started");
    let mut served = Served::start(&world, &[]);
    let command = "setsid sh -c 'echo $$ > pid; echo > started; exec sleep 1000'";
    let rules = json!([{"type": "command", "name": "slow", "config": {"command": command}}]);
    let start =
        json!({"taskId": "T1", "maxIterations": 3, "completionPromises": ["COMPLETE"], "validationRules": rules});
    let started = served.ask(call(1, "iteration_start", &start));
    let series = &started["result"]["structuredContent"]["iterationId"];
    assert!(series.is_string(), "{started}");
    served.send(call(2, "iteration_validate", &json!({"iterationId": series, "agentOutput": "x"})));
    world.await_word("started");
    served.signal(Signal::KILL);
    await_end(world.number_in("pid"));
    world.ok(&["doctor"]);
}

/// What a hook prints is not of the protocol.
#[test]
fn only_the_protocol_is_on_standard_output() {
    let world = At::Command.world("echo chatter; echo more >&2; exit 3", "timeout: 30s");
    let mut served = Served::start(&world, &[]);
    served.ask(initialize());
    let created = served.call("task_create", &json!({"goal": "One"}));
    assert_eq!(created["id"], "T1", "{created}");
    let (code, left) = served.close();
    assert_eq!(code, Some(0));
    assert!(left.starts_with("warning: hook `bad` failed: "), "{left}");
}

/// An agent that stops reading must not be waited for for ever.
#[test]
fn server_ends_when_client_stops_reading() {
    let world = World::new();
    let mut command = world.command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", initialize()).unwrap();
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    writeln!(input, "{}", request(1, "ping", &json!({}))).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
