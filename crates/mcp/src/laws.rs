//! Properties that hold for all input of clients. For tests and fuzzing alone.
//!
//! Each law takes bytes and panics if it is broken.

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use windlass_tools::{RunControl, ToolDefinition, ToolEffect, ToolError, ToolErrorCode};

use crate::message::{ClientMessage, excerpt_name, parse_message};
use crate::server::{StopHandle, ToolCaller, ToolReply, ToolServer, build_runtime};

/// Maximum number of lines in a conversation.
const MAX_LINES: usize = 24;

/// Checks that a message is a request with its own ID, or is refused with it as far as it can be read, and that every request gets
/// an answer.
pub fn check_rpc_message(bytes: &[u8]) {
    let heard = parse_message(bytes);
    let text = String::from_utf8_lossy(bytes);
    let value = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}').trim()).unwrap_or_default();
    let id = value.get("id").and_then(expected_id);
    let is_plain = std::str::from_utf8(bytes).is_ok() && text.matches("\"id\"").count() == 1 && !text.contains('\\');
    match &heard {
        ClientMessage::Request(found, _) => {
            assert_eq!(value["jsonrpc"], "2.0");
            assert!(value["method"].is_string());
            assert_eq!(Some(json!(found)), id, "a request has its own id");
        }
        ClientMessage::Refused(refused) => {
            let refused = json!(refused);
            assert!(refused["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
            assert!(refused["error"]["code"].is_i64());
            let answered_id = refused.get("id").filter(|id| !id.is_null()).cloned();
            if is_plain {
                assert!(answered_id.is_none() || answered_id == id, "{refused} has an id of its own");
                assert!(
                    answered_id.is_some() || id.is_none() || value.get("method").is_none(),
                    "{refused} has lost its id"
                );
            }
        }
        ClientMessage::Notification(_) => assert!(value.get("id").is_none(), "a request gets no answer"),
        ClientMessage::Ignored => {
            let waits = id.is_some() && value["method"].is_string() && value["jsonrpc"] == "2.0";
            assert!(!waits || !is_plain, "a request gets no answer");
        }
    }
    let name = excerpt_name(&text);
    assert!(!name.contains(char::is_control), "{name:?}");
}

/// Returns the ID that an answer has: the same text, or the same whole number in any notation.
fn expected_id(id: &Value) -> Option<Value> {
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 2_f64.powi(53)).then(|| json!(number as i64));
    match id {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => number.as_f64().and_then(whole),
        id => (id.is_string() || id.is_i64()).then(|| id.clone()),
    }
}

/// Checks that each request of a client is answered once, and that the server ends after the client.
pub fn check_mcp_conversation(bytes: &[u8]) {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').take(MAX_LINES).collect();
    let input = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    let answers = run_conversation(input);
    let (mut expected, mut asked, mut is_cancelled) = (0, Vec::new(), false);
    // With the line end, as the server reads it: the line end also ends a number.
    for heard in lines.iter().map(|line| parse_message(&[line, &b"\n"[..]].concat())) {
        match heard {
            ClientMessage::Request(id, _) => {
                expected += 1;
                asked.push(json!(id));
            }
            ClientMessage::Refused(refused) => {
                expected += 1;
                asked.extend(json!(refused).get("id").cloned());
            }
            ClientMessage::Notification(message) => is_cancelled |= is_cancellation(&message),
            ClientMessage::Ignored => {}
        }
    }
    for answer in &answers {
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
        if let Some(id) = answer.get("id").filter(|id| !id.is_null()) {
            let place = asked.iter().position(|asked| asked == id);
            asked.remove(place.unwrap_or_else(|| panic!("no request matches {answer}")));
        }
    }
    match is_cancelled {
        true => assert!(answers.len() <= expected),
        false => assert_eq!(answers.len(), expected, "every request is answered once: {answers:?}"),
    }
}

fn is_cancellation(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Notification(notification)
        if matches!(notification.notification, ClientNotification::CancelledNotification(_)))
}

/// Returns all answers of a server to a client that sends everything at once, and closes its end.
fn run_conversation(input: Vec<u8>) -> Vec<Value> {
    let runtime = build_runtime().expect("a runtime");
    let said = runtime.block_on(async {
        let (ours, theirs) = duplex(64 * 1024);
        let (reader, writer) = split(theirs);
        let server = ToolServer::new(TOOLS, || Ok(LawRouter), StopHandle::new(RunControl::new()));
        let serving = tokio::spawn(server.serve_streams(Box::new(reader), Box::new(writer)));
        let (mut output, mut sending) = split(ours);
        let writing = tokio::spawn(async move {
            let _ = sending.write_all(&input).await;
            let _ = sending.shutdown().await;
        });
        let mut said = Vec::new();
        output.read_to_end(&mut said).await.expect("a stream in memory");
        writing.await.expect("it is written");
        serving.await.expect("the server ends");
        said
    });
    let lines = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a message a line")).collect()
}

const fn law_tool(name: &'static str) -> ToolDefinition {
    ToolDefinition { name, description: "For a law.", example: "{}", effect: ToolEffect::Writes, fields: &[] }
}

const TOOLS: &[ToolDefinition] = &[law_tool("echo"), law_tool("fail"), law_tool("slow")];

struct LawRouter;

impl ToolCaller for LawRouter {
    fn call_tool_as_json(&mut self, tool: &str, arguments: Value, _: &RunControl) -> ToolReply {
        match tool {
            "fail" => Err(ToolError::new(ToolErrorCode::NotFound, "there is no T9")),
            _ => Ok(to_raw_value(&json!({ "said": arguments })).expect("it has string keys")),
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn messages_are_read_or_refused() {
        check_law("rpc", super::check_rpc_message);
    }

    #[test]
    fn requests_are_answered_once() {
        check_law("conversation", super::check_mcp_conversation);
    }
}
