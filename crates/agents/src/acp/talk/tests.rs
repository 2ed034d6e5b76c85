//! The protocol client, in memory.

use super::super::permissions::ToolKind;
use super::super::tools::Status;
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
fn prompted(permission: Permission) -> Talk {
    prompted_with(Permissions::all(permission))
}

fn prompted_with(permissions: Permissions) -> Talk {
    let mut talk = Talk::new(permissions);
    talk.listen_to("s");
    talk.ask("session/prompt", json!({}));
    assert_eq!(talk.take_out(), b"{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"session/prompt\",\"params\":{}}\n");
    talk
}

fn out(talk: &mut Talk) -> Value {
    serde_json::from_slice(&talk.take_out()).expect("one message")
}

#[test]
fn a_turn_is_its_chunks_and_an_answer() {
    let mut talk = prompted(Permission::Allow);
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
    let said: Vec<Said> = script.concat().chunks(7).flat_map(|piece| talk.hear(piece).expect("no breach")).collect();
    let text = |text: &str| Said::Text(text.to_owned());
    let end = Said::Answer(Ok(json!({"stopReason": "end_turn"})));
    let tool = |status| Tool { title: "ls".to_owned(), kind: ToolKind::Other, status };
    let began = Said::Tool(Change::Began(tool(Status::Pending)));
    let ended = Said::Tool(Change::Ended(tool(Status::Completed)));
    assert_eq!(said, [text("I look."), began, text("Do"), ended, text("ne"), text("."), end]);
    assert_eq!(talk.tools.used(), 1);
    assert_eq!(talk.take_speech(), "Done.");
    assert!(talk.take_out().is_empty());
    assert_eq!(talk.hear(&chunk("s", "more")), Ok(vec![]), "the turn is over");
    talk.ask("session/prompt", json!({}));
    assert_eq!(talk.take_speech(), "");
}

#[test]
fn what_comes_behind_an_answer_is_heard_until_the_speech_is_taken() {
    let answer = || line(&json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}));
    let mut talk = prompted(Permission::Allow);
    talk.hear(&answer()).expect("no breach");
    assert!(talk.is_wordless());
    talk.hear(&chunk("s", "Done.")).expect("no breach");
    assert!(!talk.is_wordless());
    assert_eq!(talk.take_speech(), "Done.");
    assert_eq!(talk.hear(&chunk("s", "More.")), Ok(vec![]));
    let mut talk = prompted(Permission::Allow);
    let said = talk.hear(&[chunk("s", "Done."), answer(), answer(), b"{oops\n".to_vec()].concat());
    assert_eq!(said.map(|said| said.len()), Ok(2), "the answer stands, whatever is behind it");
    talk.hear(&answer()).expect_err("no request is open");
}

#[test]
fn permission_is_given_by_kind_not_by_place() {
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
        (Permission::Allow, false, &all[..], selected("c")),
        (Permission::Allow, false, &all[..2], selected("b")),
        (Permission::Allow, false, &all[..1], cancelled.clone()),
        (Permission::Deny, false, &all[..], selected("d")),
        (Permission::Deny, false, &all[..1], selected("a")),
        (Permission::Deny, false, &all[1..3], cancelled.clone()),
        (Permission::Allow, true, &all[..], cancelled.clone()),
        (Permission::Allow, false, &[], cancelled),
    ];
    for (permission, cancelling, options, expected) in cases {
        let mut talk = prompted(permission);
        if cancelling {
            talk.cancel();
            assert_eq!(out(&mut talk)["method"], "session/cancel");
        }
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "1"}, "options": options});
        let request = json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": params});
        let answer = options.iter().find(|option| option["optionId"] == expected["optionId"]);
        let answer = answer.and_then(|option| option["kind"].as_str()).map(str::to_owned);
        let asked = Said::Asked { tool: Tool::default(), permission, answer };
        assert_eq!(talk.hear(&line(&request)), Ok(vec![asked]));
        assert_eq!(out(&mut talk), json!({"jsonrpc": "2.0", "id": "q", "result": {"outcome": expected}}));
    }
}

#[test]
fn permission_depends_on_the_kind_of_the_tool_wherever_it_was_told() {
    let rules = [(ToolKind::Execute, Permission::Deny)].into();
    let mut talk = prompted_with(Permissions { default: Permission::Allow, kinds: rules });
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "run", "title": "rm -r", "kind": "execute"});
    talk.hear(&update("s", &call)).expect("no breach");
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
        talk.hear(&line(&request)).expect("no breach");
        assert_eq!(out(&mut talk)["result"]["outcome"]["optionId"], expected, "{tool}");
    }
}

#[test]
fn what_is_to_be_done_is_answered_by_whoever_does_it() {
    let mut talk = prompted(Permission::Allow);
    let request = |method: &str, params: Value| line(&json!({"id": 4, "method": method, "params": params}));
    let said = talk.hear(&request("terminal/output", json!({"terminalId": "t"})));
    assert_eq!(said, Ok(vec![Said::Wish { id: json!(4), wish: Wish::Output("t".to_owned()) }]));
    assert!(talk.take_out().is_empty());
    talk.answer(json!(4), Ok(json!({"output": ""})));
    assert_eq!(out(&mut talk)["result"]["output"], "");
    assert_eq!(talk.hear(&request("fs/read_text_file", json!({}))), Ok(vec![]));
    assert_eq!(out(&mut talk)["error"]["code"], -32602);
}

#[test]
fn what_is_not_known_is_passed_over() {
    let mut talk = prompted(Permission::Allow);
    for strange in [
        json!({"sessionUpdate": "made_up", "content": 3}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}),
        json!({"sessionUpdate": 3}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": "none"}),
        json!([]),
    ] {
        assert_eq!(talk.hear(&update("s", &strange)), Ok(vec![]), "{strange}");
    }
    let plan = json!({"sessionUpdate": "plan", "entries": [{"content": "Look", "status": "completed"}, 3]});
    let steps = vec![("Look".to_owned(), "completed".to_owned()), (String::new(), String::new())];
    assert_eq!(talk.hear(&update("s", &plan)), Ok(vec![Said::Plan(steps)]));
    assert_eq!(talk.take_speech(), "");
}

#[test]
fn text_that_was_cut_in_a_letter_is_no_breach() {
    let mut talk = prompted(Permission::Allow);
    let cut = String::from_utf8(chunk("s", "CUT")).expect("text").replace("CUT", "half \\ud83d");
    let raw = [&chunk("s", " raw ")[..60], b"\xff", &chunk("s", " raw ")[60..]].concat();
    assert_eq!(talk.hear(cut.as_bytes()), Ok(vec![Said::Text("half \u{fffd}".to_owned())]));
    talk.hear(&raw).expect("no breach");
    talk.hear(&[b"\xef\xbb\xbf", &chunk("s", " marked")[..]].concat()).expect("no breach");
    assert!(talk.take_speech().ends_with(" marked"));
    assert_eq!(talk.first_noise(), None);
}

#[test]
fn what_we_do_not_serve_is_answered_and_the_turn_goes_on() {
    let mut talk = prompted(Permission::Allow);
    for method in ["elicitation/create", "fs/made_up", "_qwen/made_up", "initialize"] {
        assert_eq!(talk.hear(&line(&json!({"jsonrpc": "2.0", "id": 7, "method": method}))), Ok(vec![]));
        assert_eq!(out(&mut talk)["error"]["code"], NO_SUCH_METHOD);
    }
    assert_eq!(talk.hear(&line(&json!({"jsonrpc": "2.0", "method": "$/made_up"}))), Ok(vec![]));
    assert!(talk.open.is_some());
}

#[test]
fn breaches_are_told_apart() {
    let answer = |id: Value| line(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    let cases: [(Vec<u8>, &str); 6] = [
        (answer(json!(7)), "it answered a question that nobody asked (id 7)"),
        (answer(json!("1")), "it answered a question that nobody asked (id \"1\")"),
        (answer(Value::Null), "it answered a question that nobody asked (id null)"),
        (b"{\"jsonrpc\": oops\n".to_vec(), "it sent a line that is not JSON (expected value): `{\"jsonrpc\": oops`"),
        (b"{\"x\":1}\n".to_vec(), "it sent a line that is no message of JSON-RPC: `{\"x\":1}`"),
        (vec![b'x'; crate::acp::LINE + 1], "it sent a line of more than 16 MiB"),
    ];
    for (bytes, expected) in cases {
        let breach = prompted(Permission::Allow).hear(&bytes).expect_err(expected);
        assert_eq!(breach.to_string(), expected);
    }
    let mut talk = prompted(Permission::Allow);
    assert_eq!(talk.hear(&b"starting up\n".repeat(64)), Ok(vec![]));
    assert_eq!(talk.first_noise(), Some("`starting up`"));
    let breach = talk.hear(b"hello\n").expect_err("too much noise");
    assert!(breach.to_string().ends_with("such as: `starting up`"), "{breach}");
}

#[test]
fn a_flood_is_bounded() {
    let mut talk = prompted(Permission::Allow);
    let piece = chunk("other", &"x".repeat(1024 * 1024));
    let breach = (0..1000).find_map(|_| talk.hear(&piece).err()).expect("it ends");
    assert_eq!(breach.to_string(), "it sent more than 256 MiB in one turn");
}

#[test]
fn what_another_conversation_costs_is_not_counted() {
    let mut talk = Talk::new(Permissions::default());
    let cost = |session: &str, amount: f64| {
        update(session, &json!({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}}))
    };
    talk.hear(&cost("s", 1.0)).expect("no breach");
    talk.listen_to("s");
    talk.ask(PROMPT, json!({}));
    talk.hear(&cost("other", 9.0)).expect("no breach");
    talk.hear(&cost("s", 1.5)).expect("no breach");
    assert_eq!(talk.meter.turn(&json!({})).cost, Some(windlass_engine::Cost(500_000)));
}
