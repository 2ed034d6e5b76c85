//! The parameters with which agents of the Agent Client Protocol are opened: servers of tools, a model, permissions

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::{Value, json};
use windlass_agents::TurnEnd;
use windlass_agents::acp::McpServer;
use windlass_process::ProgramInvocation;

use crate::support::WINDLASS;
use crate::support::acp_agents::{AcpOpenOptions, ScriptedAcpAgent};

fn initialize_answer(capabilities: &Value) -> (&'static str, Value) {
    ("initialize", json!({"protocolVersion": 1, "agentCapabilities": capabilities}))
}

fn new_session_answer(more: Value) -> (&'static str, Value) {
    let mut answer = more;
    answer["sessionId"] = "one".into();
    ("session/new", answer)
}

#[test]
fn servers_of_tools_are_handed_over_however_the_conversation_is_opened() {
    let env = vec![("TOKEN".to_owned(), "a b".to_owned())];
    let args = vec!["mcp".to_owned(), "--task".to_owned()];
    let http_args = vec!["mcp".to_owned(), "--http".to_owned()];
    let (name, command) = ("windlass".to_owned(), PathBuf::from("/bin/windlass"));
    let server = McpServer { name, command, args, env, http_args };
    let handed = json!([{"name": "windlass", "command": "/bin/windlass", "args": ["mcp", "--task"],
        "env": [{"name": "TOKEN", "value": "a b"}]}]);
    let cases = [
        (json!({}), None, "session/new"),
        (json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), Some("one"), "session/load"),
        (json!({"sessionCapabilities": {"resume": {}}}), Some("one"), "session/resume"),
    ];
    for (capabilities, before, method) in cases {
        let driven = ScriptedAcpAgent::new(&[initialize_answer(&capabilities), new_session_answer(json!({}))]);
        let opened = driven.open_conversation(&AcpOpenOptions {
            servers: vec![server.clone()],
            before,
            ..AcpOpenOptions::default()
        });
        assert_eq!((opened.connection.conversation(), opened.restarted_because), ("one", None));
        let [(asked, params)] = &driven.requests()[..] else { panic!("one question") };
        assert_eq!((asked.as_str(), &params["mcpServers"]), (method, &handed));
        assert_eq!(params["cwd"], driven.world.directory.to_str().unwrap());
        assert_eq!(params["sessionId"].as_str(), before);
    }
}

/// The greeting of an agent that ignores programs.
fn http_initialize_answer(capabilities: Value) -> (&'static str, Value) {
    let mut capabilities = capabilities;
    capabilities["mcpCapabilities"] = json!({"http": true, "sse": true});
    let agent = json!({"name": "Copilot", "version": "1.0.102"});
    ("initialize", json!({"protocolVersion": 1, "agentInfo": agent, "agentCapabilities": capabilities}))
}

/// A server that runs this script to serve over HTTP.
fn http_mcp_server(name: &str, script: &str) -> McpServer {
    let env = vec![("WINDLASS_RUN".to_owned(), "s/1/ab".to_owned())];
    let http_args = if script.is_empty() { vec![] } else { vec!["-c".to_owned(), script.to_owned()] };
    McpServer { name: name.to_owned(), command: "/bin/sh".into(), args: vec![], env, http_args }
}

#[test]
fn server_over_http_is_handed_with_its_token_and_ends_with_the_agent() {
    let script = r#"echo "$$ $WINDLASS_RUN ${WINDLASS_MCP_TOKEN:-none}" >> started
        echo '{"url": "http://127.0.0.1:7/mcp", "token": "abc"}'; exec sleep 600"#;
    let servers = vec![http_mcp_server("files", ""), http_mcp_server("windlass", script)];
    let handed = json!([
        {"name": "files", "command": "/bin/sh", "args": [], "env": [{"name": "WINDLASS_RUN", "value": "s/1/ab"}]},
        {"type": "http", "name": "windlass", "url": "http://127.0.0.1:7/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer abc"}]},
    ]);
    for (before, method) in [(None, "session/new"), (Some("one"), "session/load")] {
        let driven = ScriptedAcpAgent::new(&[
            http_initialize_answer(json!({"loadSession": true})),
            new_session_answer(json!({})),
        ]);
        let opened =
            driven.open_conversation(&AcpOpenOptions { servers: servers.clone(), before, ..AcpOpenOptions::default() });
        assert_eq!((&opened.restarted_because, &opened.notices[..]), (&None, &[][..]));
        let [(asked, params)] = &driven.requests()[..] else { panic!("one question") };
        assert_eq!((asked.as_str(), &params["mcpServers"]), (method, &handed));
        let started = std::fs::read_to_string(driven.world.path("started")).unwrap();
        let [pid, run, token] = started.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{started}") };
        assert_eq!((run, token), ("s/1/ab", "none"));
        let alive = || rustix::process::test_kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap()).is_ok();
        assert!(alive());
        opened.connection.close_connection();
        assert!(!alive(), "it ends with the agent");
    }
}

/// The agent keeps the address of a server that is gone; another conversation passes it a new one.
#[test]
fn connection_is_not_ready_once_its_server_has_ended() {
    let script = r#"echo $$ > started; echo '{"url": "http://127.0.0.1:7/mcp", "token": "abc"}'; exec sleep 600"#;
    let driven = ScriptedAcpAgent::new(&[http_initialize_answer(json!({})), new_session_answer(json!({}))]);
    let opened = driven.open_conversation(&AcpOpenOptions {
        servers: vec![http_mcp_server("windlass", script)],
        ..AcpOpenOptions::default()
    });
    let mut connection = opened.connection;
    for _ in 0..2 {
        assert!(driven.is_ready(&mut connection));
    }
    let started = std::fs::read_to_string(driven.world.path("started")).unwrap();
    let pid = Pid::from_raw(started.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while driven.is_ready(&mut connection) {
        assert!(Instant::now() < deadline, "the connection counts as ready without its server");
    }
}

#[test]
fn server_over_http_that_does_not_start_is_left_out_with_a_notice() {
    for (script, why) in [
        ("echo no socket >&2; exit 1", "it ended before it listened: no socket"),
        (
            r#"echo '{"url": "http://127.0.0.1:7/mcp", "token": null}'; exec sleep 600"#,
            "it does not say where it listens",
        ),
    ] {
        let driven = ScriptedAcpAgent::new(&[http_initialize_answer(json!({})), new_session_answer(json!({}))]);
        let opened = driven.open_conversation(&AcpOpenOptions {
            servers: vec![http_mcp_server("windlass", script)],
            ..AcpOpenOptions::default()
        });
        let command = format!("/bin/sh -c '{}'", script.replace('\'', r"'\''"));
        let notice = format!(
            "the agent has no tools of `windlass`: cannot start its server: {why}; try it by hand: `{command}`"
        );
        assert_eq!(opened.notices, [notice]);
        assert_eq!(driven.requests()[0].1["mcpServers"], json!([]));
    }
}

#[test]
fn session_opening_sets_model_only_if_agent_offers_it() {
    let options = json!({"configOptions": [{"id": "m", "category": "model", "type": "select", "currentValue": "big",
        "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}]}]});
    let opened = |model, answer: &Value| {
        let driven = ScriptedAcpAgent::new(&[initialize_answer(&json!({})), new_session_answer(answer.clone())]);
        let notices =
            driven.open_conversation(&AcpOpenOptions { model: Some(model), ..AcpOpenOptions::default() }).notices;
        (driven.requests().into_iter().nth(1), notices)
    };
    let set = ("session/set_config_option".to_owned(), json!({"sessionId": "one", "configId": "m", "value": "small"}));
    assert_eq!(opened("small", &options), (Some(set), vec![]));
    assert_eq!(opened("big", &options), (None, vec![]));
    let none = "the agent has no model `huge`: it offers `big`, `small`".to_owned();
    assert_eq!(opened("huge", &options), (None, vec![none]));
    let (asked, notices) = opened("huge", &json!({}));
    assert!(asked.is_none() && notices[0].contains("offers no choice of models"), "{notices:?}");
}

/// Returns the outcome of a turn of the scripted agent under these permissions.
fn run_scripted_turn(permissions: &str, steps: &str) -> (String, String) {
    let driven = ScriptedAcpAgent::new(&[]);
    driven.world.write("play.yaml", format!("turns: [{{do: [{steps}]}}]"));
    let words = [WINDLASS, "agent", "play.yaml"].map(Into::into);
    let connection = driven
        .open_program(
            ProgramInvocation::Argv(words.into()),
            &AcpOpenOptions { permissions, ..AcpOpenOptions::default() },
        )
        .connection;
    let (outcome, connection, told) = driven.run_prompt(connection);
    connection.expect("it is good for another prompt").close_connection();
    let TurnEnd::Answered(said) = outcome.end else { panic!("{outcome:?}") };
    (said, told)
}

#[test]
fn permissions_decide_what_is_allowed_and_what_is_done() {
    let (said, told) = run_scripted_turn("allow", "ask: Mend it?, say: Mended.");
    assert!(said == "Mended.\n" && told.contains("[asks for permission, Mend it?: allowed (allow_once)]"), "{told}");
    let (said, told) = run_scripted_turn("deny", "ask: Mend it?, say: Mended.");
    assert_eq!(said, "I may not do this: Mend it? (reject_once-option)\n");
    assert!(told.contains("[asks for permission, Mend it?: denied (reject_once)]"), "{told}");
    let run = "request: {method: terminal/create, params: {command: touch ran}}";
    let write = "request: {method: fs/write_text_file, params: {path: new, content: x}}";
    let read = "request: {method: fs/read_text_file, params: {path: play.yaml, limit: 0}}";
    let denied = |kind: &str| format!(" failed: not allowed: `permissions` deny {kind} here (-32603)\n");
    let (said, told) = run_scripted_turn("{default: allow, execute: deny}", &format!("{run}, {write}"));
    assert_eq!(said, format!("terminal/create{}fs/write_text_file: {{}}\n", denied("execute")));
    assert!(told.contains("[runs touch ran: denied]"), "{told}");
    let (said, _) = run_scripted_turn("read-only", &format!("{run}, {write}, {read}"));
    let expected = [
        format!("terminal/create{}", denied("execute")),
        format!("fs/write_text_file{}", denied("edit")),
        "fs/read_text_file: {\"content\":\"\"}\n".to_owned(),
    ];
    assert_eq!(said, expected.concat());
}
