//! Windlass's own tools for an agent that works under `run`.

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestWorld, WINDLASS, normalize_durations};

/// An agent that records its input, and gives minimal answers.
const RECORDING_AGENT: &str = r#"
while read -r line; do
  printf '%s\n' "$line" >> asked
  printf '%s' "$line" | jq -c '{jsonrpc: "2.0", id, result: {protocolVersion: 1, sessionId: "s", stopReason: "end_turn"}}'
done
"#;

/// The servers that an agent gets under this configuration.
fn servers_of_agent(config: &str, agent: &str) -> Vec<Value> {
    let world = TestWorld::with_scripted_agent(config, "");
    world.write("agent.sh", RECORDING_AGENT);
    world.run(&["run", "Mend the pump", "--agent", agent, "--max-iterations", "1", "--session", "pump"]);
    let asked = std::fs::read_to_string(world.path("asked")).unwrap();
    let opened = asked.lines().find(|line| line.contains("session/new")).unwrap();
    let mut opened: Value = serde_json::from_str(opened).unwrap();
    let mut servers = opened["params"]["mcpServers"].take();
    let run = world.event_payloads("turn_started")[0]["run"].clone();
    for server in servers.as_array_mut().unwrap() {
        for variable in server["env"].as_array_mut().unwrap() {
            if variable["value"] == run {
                variable["value"] = json!("of the turn");
            }
        }
    }
    let text = servers.to_string().replace(&*world.directory.to_string_lossy(), "$WORK");
    let text = text.replace(&*world.directory.parent().unwrap().to_string_lossy(), "$ROOT");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn acp_agent_receives_windlass_mcp_server_with_run_id() {
    let ours = json!({
        "name": "windlass", "command": WINDLASS, "args": ["--project", "$WORK", "mcp"],
        "env": [
            {"name": "WINDLASS_RUN", "value": "of the turn"},
            {"name": "WINDLASS_PROJECT_DIR", "value": "$WORK"},
            {"name": "WINDLASS_TRUSTED", "value": "1"},
            {"name": "WINDLASS_STATE_DIR", "value": "$ROOT/state"},
        ],
    });
    assert_eq!(servers_of_agent("", "acp:sh agent.sh"), std::slice::from_ref(&ours));
    let config = |more: &str| format!("agents: {{mine: {{driver: acp, command: sh agent.sh, {more}}}}}\n");
    let servers = servers_of_agent(&config("mcp_servers: {files: {command: cat}}, tools: true"), "mine");
    assert_eq!((servers.len(), &servers[0]["name"], &servers[1]), (2, &json!("files"), &ours));
    assert_eq!(servers_of_agent(&config("tools: false"), "mine"), Vec::<Value>::new());
    assert_eq!(servers_of_agent("agents: {kimi: {command: sh agent.sh, tools: false}}\n", "kimi"), Vec::<Value>::new());
    // An entry of a person under this name is theirs.
    let servers = servers_of_agent(&config("mcp_servers: {windlass: {command: cat}}"), "mine");
    assert!(servers.len() == 1 && servers[0]["command"].as_str().unwrap().ends_with("/cat"), "{servers:?}");
}

/// An agent that ignores programs, as Copilot does: it calls a tool over HTTP, and tries requests that are refused.
const HTTP_AGENT: &str = r#"
post() { # body, headers; prints the status
  body=$1; shift
  exec 3<> "/dev/tcp/127.0.0.1/$port"
  { printf 'POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n'
    printf '%s\r\n' "$@" "Content-Length: ${#body}" 'Connection: close' '' ; printf '%s' "$body"; } >&3
  cat <&3 > answer
  exec 3>&-
  head -c 12 answer | cut -c 10-
}
while read -r line; do
  case $(printf '%s' "$line" | jq -r .method) in
    initialize)
      result='{"protocolVersion": 1, "agentInfo": {"name": "Copilot"}, "agentCapabilities": {"mcpCapabilities": {"http": true}}}';;
    session/new)
      printf '%s' "$line" | jq -c .params.mcpServers > handed
      result='{"sessionId": "s"}';;
    session/prompt)
      port=$(jq -r '.[0].url | capture(":(?<port>[0-9]+)/").port' handed)
      host="Host: 127.0.0.1:$port"; token=$(jq -r '.[0].headers[0] | "\(.name): \(.value)"' handed)
      greeting='{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "stub", "version": "1"}}}'
      { post "$greeting" "$host"
        post "$greeting" "$host" 'Authorization: Bearer 0123456789abcdef'
        post "$greeting" "$host" "$token" 'Origin: http://evil.example'
        post "$greeting" 'Host: evil.example' "$token"
        post "$greeting" "$host" "$token"
        session=$(grep -i '^mcp-session-id' answer | tr -d '\r')
        post '{"jsonrpc": "2.0", "method": "notifications/initialized"}' "$host" "$token" "$session"
        post '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "note_add", "arguments": {"text": "The valve sticks."}}}' "$host" "$token" "$session"
      } > statuses
      printf '%s' '{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Done. <promise>COMPLETE</promise>"}}}}'
      echo; result='{"stopReason": "end_turn"}';;
  esac
  printf '%s' "$line" | jq -c --argjson result "$result" '{jsonrpc: "2.0", id, result: $result}'
done
"#;

#[test]
fn agent_that_ignores_programs_calls_tools_over_http_and_only_with_its_token() {
    let world = TestWorld::with_scripted_agent("", "");
    world.write("agent.sh", HTTP_AGENT);
    let ran = world.run(&["run", "Mend the pump", "--agent", "acp:bash agent.sh", "--session", "pump"]);
    assert_eq!(ran.code, 0, "{ran}");
    let read = |name: &str| std::fs::read_to_string(world.path(name)).unwrap();
    assert_eq!(read("statuses").lines().collect::<Vec<_>>(), ["401", "401", "403", "403", "200", "202", "200"]);
    let notes = world.json_lines(&["events", "--type", "note_added"]);
    let seen: Vec<_> = notes.iter().map(|note| [&note["session"], &note["iteration"], &note["nodeId"]]).collect();
    assert_eq!(seen, [[&json!("pump"), &json!(1), &json!("T1")]]);
    let handed: Value = serde_json::from_str(&read("handed")).unwrap();
    let server = &handed[0];
    assert_eq!((&server["type"], &server["name"]), (&json!("http"), &json!("windlass")));
    let address = server["url"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert!(std::net::TcpStream::connect(address).is_err(), "it ends with the run");
}

fn run_session(world: &TestWorld) -> CommandOutput {
    world.run(&["run", "Mend the pump", "--agent", "scripted:play.yaml", "--session", "pump"])
}

fn create_repository(config: &str, script: &str) -> TestWorld {
    let world = TestWorld::with_scripted_agent(config, script);
    assert!(world.program("git").args(["init", "-q"]).status().unwrap().success());
    world
}

/// Its server is the same process all the time, and has the run of the first turn.
#[test]
fn tool_calls_are_attributed_to_current_turn() {
    let world = TestWorld::with_scripted_agent(
        "",
        "
turns:
  - do:
      - call: {tool: note_add, arguments: {text: The valve sticks., kind: tip}}
      - say: Not yet.
  - do:
      - call: {tool: note_add, arguments: {text: It does not stick any more.}}
      - call: {tool: note_add, arguments: {text: ''}}
      - call: {tool: sing}
      - call: {server: other, tool: sing}
      - promise: COMPLETE
",
    );
    let ran = run_session(&world);
    assert_eq!(ran.code, 0, "{ran}");
    let notes = world.json_lines(&["events", "--type", "note_added"]);
    let seen: Vec<_> = notes.iter().map(|note| [&note["session"], &note["iteration"], &note["nodeId"]]).collect();
    assert_eq!(seen, [[&json!("pump"), &json!(1), &json!("T1")], [&json!("pump"), &json!(2), &json!("T1")]]);
    assert_eq!(notes[0]["data"], json!({"kind": "tip", "text": "The valve sticks."}));
    // The agent gets the error, and the server goes on after a wrong request.
    let record = world.run_ok(&["session", "logs", "pump"]);
    for said in [
        "[windlass note_add]",
        "note_add failed: text: ",
        "sing failed: there is no tool `sing`",
        "sing failed: no server `other` was handed to the agent",
    ] {
        assert!(record.contains(said), "{said}\n{record}");
    }
}

#[test]
fn rules_that_an_agent_registers_decide_at_the_gate() {
    let world = create_repository(
        "",
        "
turns:
  - do:
      - call:
          tool: hook_register
          arguments:
            taskId: T1
            hookType: rules
            rules:
              - {when: \"'pump.txt' not in filesModified\", action: continue, reason: the pump is as it was, nextPrompt: Write pump.txt.}
              - {when: 'true', action: complete, reason: the pump is mended}
      - say: I am done.
      - promise: COMPLETE
  - when: Write pump.txt.
    do:
      - write: {path: pump.txt, content: mended}
      - say: It is written.
      - promise: COMPLETE
",
    );
    let ran = run_session(&world);
    assert_eq!(ran.code, 0, "{ran}");
    insta::assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session pump
      scripted:play.yaml, at most 25 iterations
    iteration 1
      agent: I am done.
      the agent says that it is done
      registered wants another iteration: HOOK-10 (rules): the pump is as it was
    iteration 2
      the agent gets one piece of feedback
      agent: It is written.
      the agent says that it is done
      registered ok: HOOK-10 (rules): the pump is mended
    complete after 2 iterations
      took <took> agent <took> hooks <took> 2 turns
      changed one file
    ");
    let why = world.run_ok(&["why", "T1", "--full"]);
    assert!(
        why.contains("registered at stop wants another iteration: HOOK-10 (rules): the pump is as it was"),
        "{why}"
    );
}

#[test]
fn validation_rules_of_an_agent_are_looked_at_when_its_turn_ends() {
    let world = TestWorld::with_scripted_agent(
        "",
        "
turns:
  - do:
      - call: {tool: hook_register, arguments: {taskId: T1, hookType: validation}}
      - call:
          tool: iteration_start
          arguments:
            taskId: T1
            maxIterations: 5
            completionPromises: [COMPLETE]
            validationRules: [{type: file_existence, name: written, config: {paths: [pump.txt]}}]
      - say: I am done.
      - promise: COMPLETE
  - when: '1 of 1 paths missing: `pump.txt`'
    do:
      - write: {path: pump.txt, content: mended}
      - say: Now I am.
      - promise: COMPLETE
",
    );
    let ran = run_session(&world);
    assert_eq!(ran.code, 0, "{ran}");
    insta::assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session pump
      scripted:play.yaml, at most 25 iterations
    iteration 1
      agent: I am done.
      the agent says that it is done
      registered wants another iteration: HOOK-10 (validation): 1 of 1 validation rules failed: written
    iteration 2
      the agent gets one piece of feedback
      agent: Now I am.
      the agent says that it is done
      registered ok: HOOK-10 (validation): the validation rule passes
    complete after 2 iterations
      took <took> agent <took> hooks <took> 2 turns
    ");
}

/// A hook that completes does not outvote a rule, and rules need no hook.
#[test]
fn failed_validation_rule_blocks_gate_with_or_without_hook() {
    for (hook, message) in [
        ("{tool: hook_register, arguments: {taskId: T1, hookType: promise}}", "HOOK-10 (promise): "),
        ("{tool: task_next}", "1 of 1 validation rules failed"),
    ] {
        let world = TestWorld::with_scripted_agent(
            "",
            &format!(
                "
turns:
  - do:
      - call: {hook}
      - call:
          tool: iteration_start
          arguments:
            taskId: T1
            maxIterations: 5
            completionPromises: [COMPLETE]
            validationRules: [{{type: file_existence, name: written, config: {{paths: [pump.txt]}}}}]
      - promise: COMPLETE
  - when: 'written: 1 of 1 paths missing: `pump.txt`'
    do:
      - write: {{path: pump.txt, content: mended}}
      - promise: COMPLETE
"
            ),
        );
        let ran = run_session(&world);
        assert_eq!(ran.code, 0, "{ran}");
        let outcomes: Vec<_> =
            world.event_payloads("hook_finished").iter().map(|ended| ended["outcome"].clone()).collect();
        assert_eq!(outcomes, ["continue", "success"], "{ran}");
        assert!(ran.stdout.contains(&format!("registered wants another iteration: {message}")), "{ran}");
    }
}

#[test]
fn command_registered_by_agent_runs_only_when_allowed() {
    let script = "
turns:
  - do:
      - call:
          tool: hook_register
          arguments:
            taskId: T1
            hookType: command
            command: 'echo \"run: $WINDLASS_RUN.\" > ran; test -e pump.txt || { echo pump.txt is missing >&2; exit 2; }'
      - promise: COMPLETE
  - when: pump.txt is missing
    do:
      - write: {path: pump.txt, content: mended}
      - promise: COMPLETE
";
    let world = TestWorld::with_scripted_agent("", script);
    let ran = run_session(&world);
    assert_eq!(ran.code, 0, "{ran}");
    let outcomes: Vec<_> = world.event_payloads("hook_finished").iter().map(|ended| ended["outcome"].clone()).collect();
    assert_eq!(outcomes, ["continue", "success"], "{ran}");
    // The effect of the tool is no claim of the agent.
    assert_eq!(std::fs::read_to_string(world.path("ran")).unwrap(), "run: .\n");

    let world = TestWorld::with_scripted_agent("agent_commands: named\n", script);
    let ran = run_session(&world);
    assert!(ran.code == 0 && ran.stdout.contains("or to set `agent_commands: allow`"), "{ran}");
    assert!(!world.has_file("ran") && world.event_payloads("hook_registered").is_empty(), "{ran}");
}

#[test]
fn hook_registered_by_agent_escalates_to_person() {
    let world = TestWorld::with_scripted_agent(
        "",
        "
turns:
  - do:
      - call:
          tool: hook_register
          arguments: {taskId: T1, hookType: rules, rules: [{action: escalate, reason: the pump belongs to a neighbour}]}
      - say: I am done.
      - promise: COMPLETE
",
    );
    let ran = run_session(&world);
    assert_eq!(ran.code, 4, "{ran}");
    insta::assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session pump
      scripted:play.yaml, at most 25 iterations
    iteration 1
      agent: I am done.
      the agent says that it is done
      registered asks for a person: HOOK-10 (rules): the pump belongs to a neighbour
    a person is needed after one iteration: `registered` asks for a person: HOOK-10 (rules): the pump belongs to a neighbour
      took <took> agent <took> hooks <took> one turn
      next: windlass answer T1 continue
    ");
}

#[test]
fn session_complete_claim_is_judged_by_gate() {
    let world = TestWorld::with_scripted_agent(
        "hooks: {stop: [{name: tests, command: 'test -e pump.txt || { echo pump.txt is missing >&2; exit 2; }'}]}\n",
        "
turns:
  - do:
      - call: {tool: session_complete, arguments: {result: The pump is mended.}}
      - say: I am done.
  - do:
      - write: {path: pump.txt, content: mended}
      - call: {tool: session_complete, arguments: {result: The pump is mended., artifacts: [pump.txt]}}
      - say: Now I am.
",
    );
    let ran = run_session(&world);
    assert_eq!(ran.code, 0, "{ran}");
    insta::assert_snapshot!(normalize_durations(&ran.stdout), @r"
    session pump
      scripted:play.yaml, at most 25 iterations
    iteration 1
      agent: I am done.
      the agent says that it is done
      tests blocks: pump.txt is missing
      [Hook retry 1/5: pump.txt is missing]
      the agent gets one piece of feedback
      agent: Now I am.
      the agent says that it is done
      tests ok
    complete after one iteration
      took <took> agent <took> hooks <took> 2 turns
    ");
    assert_eq!(world.event_payloads("completion_claimed").len(), 2);
    let completed = world.event_payloads("task_completed");
    assert_eq!(completed, [json!({"result": "The pump is mended.", "artifacts": ["pump.txt"]})]);
}
