//! The protocol in memory.

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

/// A conversation in which a prompt was just sent, as question 1.
fn prompted(permission: Permission) -> Talk {
    let mut talk = Talk::new(permission);
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
        update("s", &json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"})),
        chunk("s", "Done"),
        b"\n  \n".to_vec(),
        chunk("s", "."),
        line(&json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}})),
    ];
    // However it is cut.
    let said: Vec<Said> = script.concat().chunks(7).flat_map(|piece| talk.hear(piece).expect("no breach")).collect();
    let text = |text: &str| Said::Text(text.to_owned());
    let end = Said::Answer(Ok(json!({"stopReason": "end_turn"})));
    assert_eq!(said, [text("I look."), Said::Tool("ls".to_owned()), text("Done"), text("."), end]);
    assert_eq!(talk.take_speech(), "Done.");
    assert!(talk.take_out().is_empty());
    assert_eq!(talk.hear(&chunk("s", "more")), Ok(vec![]), "the turn is over");
    talk.ask("session/prompt", json!({}));
    assert_eq!(talk.take_speech(), "");
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
        assert_eq!(talk.hear(&line(&request)), Ok(vec![]));
        assert_eq!(out(&mut talk), json!({"jsonrpc": "2.0", "id": "q", "result": {"outcome": expected}}));
    }
}

#[test]
fn what_we_do_not_serve_is_answered_and_the_turn_goes_on() {
    let mut talk = prompted(Permission::Allow);
    for method in ["fs/read_text_file", "terminal/create", "_qwen/made_up", "initialize"] {
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
        (vec![b'x'; LINE + 1], "it sent a line of more than 16 MiB"),
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
