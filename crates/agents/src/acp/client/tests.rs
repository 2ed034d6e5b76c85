//! The protocol client, in memory.

use super::super::permissions::ToolKind;
use super::super::tool_use::ToolUseStatus;
use super::*;

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

fn update(session: &str, update: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}))
}

fn chunk(session: &str, text: &str) -> Vec<u8> {
    update(session, &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}))
}

fn tool(title: &str) -> Vec<u8> {
    update("s", &json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": title}))
}

/// Returns a client that has just sent a prompt as request 1.
fn prompted(permission: ToolPermission) -> AcpClient {
    prompted_with(AgentPermissions::uniform(permission))
}

fn prompted_with(permissions: AgentPermissions) -> AcpClient {
    let mut client = AcpClient::new(permissions);
    client.set_conversation("s");
    client.send_request("session/prompt", json!({}));
    assert_eq!(client.take_outgoing(), b"{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"session/prompt\",\"params\":{}}\n");
    client
}

fn out(client: &mut AcpClient) -> Value {
    serde_json::from_slice(&client.take_outgoing()).expect("one message")
}

#[test]
fn turn_yields_its_chunks_tool_uses_and_answer() {
    let mut client = prompted(ToolPermission::Allow);
    let thought = json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}});
    let image = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": ""}});
    let script = [
        chunk("s", "I look."),
        tool("ls"),
        chunk("other", "not ours"),
        update("s", &thought),
        update("s", &image),
        chunk("s", "Do"),
        update("s", &json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"})),
        chunk("s", "ne"),
        b"\n  \n".to_vec(),
        chunk("s", "."),
        line(&json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}})),
    ];
    // The result must not depend on how the bytes are cut.
    let said: Vec<AcpEvent> =
        script.concat().chunks(7).flat_map(|piece| client.receive_bytes(piece).expect("no breach")).collect();
    let text = |text: &str| AcpEvent::Text(text.to_owned());
    let end = AcpEvent::Answer(Ok(json!({"stopReason": "end_turn"})));
    let tool = |status| ToolUse { title: "ls".to_owned(), kind: ToolKind::Other, status };
    let began = AcpEvent::Tool(ToolUseChange::Began(tool(ToolUseStatus::Pending)));
    let ended = AcpEvent::Tool(ToolUseChange::Ended(tool(ToolUseStatus::Completed)));
    assert_eq!(said, [text("I look."), began, text("Do"), ended, text("ne"), text("."), end]);
    assert_eq!(client.tools.used_count(), 1);
    assert_eq!(client.take_final_message(), "Done.");
    assert!(client.take_outgoing().is_empty());
    assert_eq!(client.receive_bytes(&chunk("s", "more")), Ok(vec![]), "the turn is over");
    client.send_request("session/prompt", json!({}));
    assert_eq!(client.take_final_message(), "");
}

#[test]
fn output_after_answer_counts_until_final_message_is_taken() {
    let answer = || line(&json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}));
    let mut client = prompted(ToolPermission::Allow);
    client.receive_bytes(&answer()).expect("no breach");
    assert!(client.is_turn_empty());
    client.receive_bytes(&chunk("s", "Done.")).expect("no breach");
    assert!(!client.is_turn_empty());
    assert_eq!(client.take_final_message(), "Done.");
    assert_eq!(client.receive_bytes(&chunk("s", "More.")), Ok(vec![]));
    let mut client = prompted(ToolPermission::Allow);
    let said = client.receive_bytes(&[chunk("s", "Done."), answer(), answer(), b"{oops\n".to_vec()].concat());
    assert_eq!(said.map(|said| said.len()), Ok(2), "the answer stands, whatever is behind it");
    client.receive_bytes(&answer()).expect_err("no request is open");
}

#[test]
fn permission_option_is_chosen_by_kind_not_position() {
    let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
    let all = [
        option("a", "reject_always"),
        option("b", "allow_always"),
        option("c", "allow_once"),
        option("d", "reject_once"),
    ];
    let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
    let cancelled = json!({"outcome": "cancelled"});
    let cases = [
        (ToolPermission::Allow, false, &all[..], selected("c")),
        (ToolPermission::Allow, false, &all[..2], selected("b")),
        (ToolPermission::Allow, false, &all[..1], cancelled.clone()),
        (ToolPermission::Deny, false, &all[..], selected("d")),
        (ToolPermission::Deny, false, &all[..1], selected("a")),
        (ToolPermission::Deny, false, &all[1..3], cancelled.clone()),
        (ToolPermission::Allow, true, &all[..], cancelled.clone()),
        (ToolPermission::Allow, false, &[], cancelled),
    ];
    for (permission, cancelling, options, expected) in cases {
        let mut client = prompted(permission);
        if cancelling {
            client.cancel_turn();
            assert_eq!(out(&mut client)["method"], "session/cancel");
        }
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "1"}, "options": options});
        let request = json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": params});
        let answer = options.iter().find(|option| option["optionId"] == expected["optionId"]);
        let answer = answer.and_then(|option| option["kind"].as_str()).map(str::to_owned);
        let asked = AcpEvent::PermissionAnswered { tool: ToolUse::default(), permission, answer };
        assert_eq!(client.receive_bytes(&line(&request)), Ok(vec![asked]));
        assert_eq!(out(&mut client), json!({"jsonrpc": "2.0", "id": "q", "result": {"outcome": expected}}));
    }
}

#[test]
fn permission_depends_on_tool_kind_from_call_or_request() {
    let rules = [(ToolKind::Execute, ToolPermission::Deny)].into();
    let mut client = prompted_with(AgentPermissions { default: ToolPermission::Allow, kinds: rules });
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "run", "title": "rm -r", "kind": "execute"});
    client.receive_bytes(&update("s", &call)).expect("no breach");
    let options = json!([{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]);
    for (tool, expected) in [
        (json!({"toolCallId": "run"}), "n"),
        (json!({"toolCallId": "new", "kind": "execute"}), "n"),
        (json!({"toolCallId": "new", "kind": "edit"}), "y"),
        (json!({"toolCallId": "new", "kind": "novel"}), "y"),
        (Value::Null, "y"),
    ] {
        let params = json!({"sessionId": "s", "toolCall": tool, "options": options});
        let request = json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": params});
        client.receive_bytes(&line(&request)).expect("no breach");
        assert_eq!(out(&mut client)["result"]["outcome"]["optionId"], expected, "{tool}");
    }
}

#[test]
fn client_request_is_left_to_the_caller_to_answer() {
    let mut client = prompted(ToolPermission::Allow);
    let request = |method: &str, params: Value| line(&json!({"id": 4, "method": method, "params": params}));
    let said = client.receive_bytes(&request("terminal/output", json!({"terminalId": "t"})));
    assert_eq!(said, Ok(vec![AcpEvent::Request { id: json!(4), request: ClientRequest::Output("t".to_owned()) }]));
    assert!(client.take_outgoing().is_empty());
    client.send_response(json!(4), Ok(json!({"output": ""})));
    assert_eq!(out(&mut client)["result"]["output"], "");
    assert_eq!(client.receive_bytes(&request("fs/read_text_file", json!({}))), Ok(vec![]));
    assert_eq!(out(&mut client)["error"]["code"], -32602);
}

#[test]
fn unknown_updates_are_ignored() {
    let mut client = prompted(ToolPermission::Allow);
    for strange in [
        json!({"sessionUpdate": "made_up", "content": 3}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}),
        json!({"sessionUpdate": 3}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": "none"}),
        json!([]),
    ] {
        assert_eq!(client.receive_bytes(&update("s", &strange)), Ok(vec![]), "{strange}");
    }
    let plan = json!({"sessionUpdate": "plan", "entries": [{"content": "Look", "status": "completed"}, 3]});
    let steps = vec![("Look".to_owned(), "completed".to_owned()), (String::new(), String::new())];
    assert_eq!(client.receive_bytes(&update("s", &plan)), Ok(vec![AcpEvent::Plan(steps)]));
    assert_eq!(client.take_final_message(), "");
}

#[test]
fn text_cut_inside_a_character_is_accepted() {
    let mut client = prompted(ToolPermission::Allow);
    let cut = String::from_utf8(chunk("s", "CUT")).expect("text").replace("CUT", "half \\ud83d");
    let raw = [&chunk("s", " raw ")[..60], b"\xff", &chunk("s", " raw ")[60..]].concat();
    assert_eq!(client.receive_bytes(cut.as_bytes()), Ok(vec![AcpEvent::Text("half \u{fffd}".to_owned())]));
    client.receive_bytes(&raw).expect("no breach");
    client.receive_bytes(&[b"\xef\xbb\xbf", &chunk("s", " marked")[..]].concat()).expect("no breach");
    assert!(client.take_final_message().ends_with(" marked"));
    assert_eq!(client.first_noise_line(), None);
}

#[test]
fn unknown_request_is_refused_and_turn_continues() {
    let mut client = prompted(ToolPermission::Allow);
    for method in ["elicitation/create", "fs/made_up", "_qwen/made_up", "initialize"] {
        assert_eq!(client.receive_bytes(&line(&json!({"jsonrpc": "2.0", "id": 7, "method": method}))), Ok(vec![]));
        assert_eq!(out(&mut client)["error"]["code"], NO_SUCH_METHOD);
    }
    assert_eq!(client.receive_bytes(&line(&json!({"jsonrpc": "2.0", "method": "$/made_up"}))), Ok(vec![]));
    assert!(client.open.is_some());
}

#[test]
fn protocol_errors_name_their_cause() {
    let answer = |id: Value| line(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    let cases: [(Vec<u8>, &str); 6] = [
        (answer(json!(7)), "it answered a request that was not sent (id 7)"),
        (answer(json!("1")), "it answered a request that was not sent (id \"1\")"),
        (answer(Value::Null), "it answered a request that was not sent (id null)"),
        (b"{\"jsonrpc\": oops\n".to_vec(), "it sent a line that is not JSON (expected value): `{\"jsonrpc\": oops`"),
        (b"{\"x\":1}\n".to_vec(), "it sent a line that is not a JSON-RPC message: `{\"x\":1}`"),
        (vec![b'x'; crate::acp::MAX_LINE_LENGTH + 1], "it sent a line of more than 16 MiB"),
    ];
    for (bytes, expected) in cases {
        let breach = prompted(ToolPermission::Allow).receive_bytes(&bytes).expect_err(expected);
        assert_eq!(breach.to_string(), expected);
    }
    let mut client = prompted(ToolPermission::Allow);
    assert_eq!(client.receive_bytes(&b"starting up\n".repeat(64)), Ok(vec![]));
    assert_eq!(client.first_noise_line(), Some("`starting up`"));
    let breach = client.receive_bytes(b"hello\n").expect_err("too much noise");
    assert!(breach.to_string().ends_with("such as: `starting up`"), "{breach}");
}

#[test]
fn bytes_per_turn_are_bounded() {
    let mut client = prompted(ToolPermission::Allow);
    let piece = chunk("other", &"x".repeat(1024 * 1024));
    let breach = (0..1000).find_map(|_| client.receive_bytes(&piece).err()).expect("it ends");
    assert_eq!(breach.to_string(), "it sent more than 256 MiB in one turn");
}

#[test]
fn cost_of_another_conversation_is_not_counted() {
    let mut client = AcpClient::new(AgentPermissions::default());
    let cost = |session: &str, amount: f64| {
        update(session, &json!({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}}))
    };
    client.receive_bytes(&cost("s", 1.0)).expect("no breach");
    client.set_conversation("s");
    client.send_request(PROMPT, json!({}));
    client.receive_bytes(&cost("other", 9.0)).expect("no breach");
    client.receive_bytes(&cost("s", 1.5)).expect("no breach");
    assert_eq!(client.meter.finish_turn(&json!({})).cost, Some(windlass_engine::UsdCost(500_000)));
}
