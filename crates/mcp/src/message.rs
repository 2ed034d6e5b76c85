//! One message from a client: parsed, or refused with an error that names its fault.
//!
//! Invariants:
//! - Any bytes become exactly one of [`ClientMessage`].
//! - A refusal has the ID of its request wherever that can be read.
//! - An error does not repeat text of a client, except for the name of a method, cut and escaped.

use std::borrow::Cow;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetMeta, RequestId,
    ServerJsonRpcMessage,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Maximum size of a message.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of characters of a name in an error.
const MAX_NAME_CHARS: usize = 60;

/// Methods that the server answers: if one of them is not understood, its parameters are wrong. All others are unknown.
const ANSWERED_METHODS: [&str; 4] = ["initialize", "server/discover", "tools/call", "tools/list"];

/// A message from a client.
pub enum ClientMessage {
    Request(RequestId, ClientJsonRpcMessage),
    Notification(ClientJsonRpcMessage),
    /// A message that is refused with this answer.
    Refused(ServerJsonRpcMessage),
    /// A message without an answer: an unknown notification, or an answer to no request.
    Ignored,
}

#[derive(Deserialize)]
struct JsonRpcEnvelope<'a> {
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    method: Option<String>,
}

/// Keeps `null` as a value: an ID that is `null` is wrong, while a missing ID makes a notification.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parses one message.
pub fn parse_message(bytes: &[u8]) -> ClientMessage {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let id = read_id_only(&String::from_utf8_lossy(bytes));
        return refuse_message(id, ErrorCode::PARSE_ERROR, "the message is not UTF-8");
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return ClientMessage::Ignored;
    }
    if !text.starts_with('{') {
        return match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) => refuse_json(None, &error),
            Ok(_) if text.starts_with('[') => refuse_message(
                None,
                ErrorCode::INVALID_REQUEST,
                "batches are not supported: send each message by itself",
            ),
            Ok(_) => refuse_message(None, ErrorCode::INVALID_REQUEST, "a message is a JSON object"),
        };
    }
    match serde_json::from_str::<JsonRpcEnvelope<'_>>(text) {
        Ok(envelope) => parse_envelope(text, &envelope),
        Err(error) if error.is_data() => refuse_message(
            read_id_only(text),
            ErrorCode::INVALID_REQUEST,
            "a message has `jsonrpc` and `method`, both text, each once, and may have `id` and `params`",
        ),
        Err(error) => refuse_json(None, &error),
    }
}

fn parse_envelope(text: &str, envelope: &JsonRpcEnvelope<'_>) -> ClientMessage {
    let id = match envelope.id.map(|id| serde_json::from_str::<RequestId>(id.get())) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => {
            return refuse_message(None, ErrorCode::INVALID_REQUEST, "`id` has to be text or a whole number");
        }
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return refuse_message(id, ErrorCode::INVALID_REQUEST, "`jsonrpc` has to be \"2.0\"");
    }
    match (envelope.method.as_deref(), id) {
        (Some(method), Some(id)) => parse_request(text, method, id),
        (Some(_), None) => parse_notification(text),
        // The server sends no requests, so this is an answer to none.
        (None, _) if is_answer(text) => ClientMessage::Ignored,
        (None, id) => refuse_message(id, ErrorCode::INVALID_REQUEST, "`method` is missing"),
    }
}

fn parse_request(text: &str, method: &str, id: RequestId) -> ClientMessage {
    match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        Ok(ClientJsonRpcMessage::Request(request)) => match &request.request {
            // The newest revision has no `initialize`: for its clients that method is unknown, too.
            ClientRequest::CustomRequest(custom)
                if ANSWERED_METHODS.contains(&method) && (method != "initialize" || custom.get_meta().is_empty()) =>
            {
                refuse_params(id, method)
            }
            _ => ClientMessage::Request(id, ClientJsonRpcMessage::Request(request)),
        },
        Err(error) if !error.is_data() => refuse_json(Some(id), &error),
        _ => refuse_params(id, method),
    }
}

/// Parses a notification. One that is unknown or malformed is ignored, since notifications have no answers.
fn parse_notification(text: &str) -> ClientMessage {
    match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        Ok(ClientJsonRpcMessage::Notification(notification)) => match notification.notification {
            ClientNotification::CancelledNotification(_) | ClientNotification::InitializedNotification(_) => {
                ClientMessage::Notification(ClientJsonRpcMessage::Notification(notification))
            }
            _ => ClientMessage::Ignored,
        },
        _ => ClientMessage::Ignored,
    }
}

fn is_answer(text: &str) -> bool {
    #[derive(Deserialize)]
    struct ResultOrError {
        result: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    serde_json::from_str::<ResultOrError>(text).is_ok_and(|answer| answer.result.is_some() || answer.error.is_some())
}

/// Returns the ID of a message that has another fault.
fn read_id_only(text: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct IdOnly {
        id: RequestId,
    }
    serde_json::from_str::<IdOnly>(text).ok().map(|alone| alone.id)
}

fn refuse_params(id: RequestId, method: &str) -> ClientMessage {
    let shape = if method == "tools/call" { r#": write `{"name": "…", "arguments": {…}}`"# } else { "" };
    let message = format!("the params of `{}` are invalid{shape}", excerpt_name(method));
    refuse_message(Some(id), ErrorCode::INVALID_PARAMS, message)
}

/// Refuses a message that is not JSON, or nested too deep.
fn refuse_json(id: Option<RequestId>, error: &serde_json::Error) -> ClientMessage {
    let place = format!("line {}, column {}", error.line(), error.column());
    // serde_json has no category for this error.
    match error.to_string().starts_with("recursion limit") {
        true => refuse_message(
            id,
            ErrorCode::PARSE_ERROR,
            format!("the message is nested too deep at {place}; 127 levels are read"),
        ),
        false => refuse_message(id, ErrorCode::PARSE_ERROR, format!("the message is not JSON at {place}")),
    }
}

fn refuse_message(id: Option<RequestId>, code: ErrorCode, message: impl Into<Cow<'static, str>>) -> ClientMessage {
    ClientMessage::Refused(ServerJsonRpcMessage::error(ErrorData::new(code, message, None), id))
}

/// Returns the error for a request whose ID is in use. The error has no ID, since that would answer the other request.
pub fn id_in_use_error(id: &RequestId) -> ServerJsonRpcMessage {
    let message =
        format!("a request with the id `{}` is not answered yet; give each its own", excerpt_name(&id.to_string()));
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), None)
}

/// Returns the error for a message that is too long. Its ID is not read.
pub fn too_long_error() -> ServerJsonRpcMessage {
    let message = format!("the message is longer than {} MiB", MAX_MESSAGE_BYTES / 1024 / 1024);
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), None)
}

/// Returns a name from a client, cut and escaped.
pub fn excerpt_name(name: &str) -> String {
    let mut shown: String = name.chars().take(MAX_NAME_CHARS).flat_map(char::escape_debug).collect();
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes a parsed message: its ID and method, `-`, or code, ID and text of its refusal.
    fn describe_message(bytes: impl AsRef<[u8]>) -> String {
        match parse_message(bytes.as_ref()) {
            ClientMessage::Request(id, ClientJsonRpcMessage::Request(request)) => {
                format!("{id} {}", request.request.method())
            }
            ClientMessage::Notification(ClientJsonRpcMessage::Notification(_)) => "notification".to_owned(),
            ClientMessage::Refused(refused) => {
                let (error, id) = refused.into_error().unwrap();
                let id = id.map(|id| id.to_string()).unwrap_or_default();
                format!("{} {id}: {}", error.code.0, error.message)
            }
            ClientMessage::Ignored => "-".to_owned(),
            _ => unreachable!("a request is a request"),
        }
    }

    #[track_caller]
    fn check_message(message: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(describe_message(message), expected);
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        check_message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "1 ping");
        check_message(r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#, "a tools/list");
        check_message(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}"#, "2 tools/call");
        check_message(
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}"#,
            "2 tools/call",
        );
        check_message(r#"{"jsonrpc":"2.0","id":3,"method":"made/up","params":{}}"#, "3 made/up");
        check_message(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification");
        check_message(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            "notification",
        );
    }

    #[test]
    fn messages_without_an_answer_are_ignored() {
        check_message("", "-");
        check_message(" \t\r\n", "-");
        check_message(r#"{"jsonrpc":"2.0","method":"made/up"}"#, "-");
        check_message(r#"{"jsonrpc":"2.0","method":"notifications/made_up","params":7}"#, "-");
        check_message(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#, "-");
        check_message(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#, "-");
        check_message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "-");
        check_message(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, "-");
    }

    #[test]
    fn malformed_messages_are_refused_with_the_cause() {
        check_message("{", "-32700 : the message is not JSON at line 1, column 1");
        check_message("nonsense", "-32700 : the message is not JSON at line 1, column 2");
        check_message("[1,", "-32700 : the message is not JSON at line 1, column 3");
        check_message(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700 1: the message is not UTF-8");
        check_message("[]", "-32600 : batches are not supported: send each message by itself");
        check_message("42", "-32600 : a message is a JSON object");
        check_message(r#"{"id":1,"method":"ping"}"#, "-32600 1: `jsonrpc` has to be \"2.0\"");
        check_message(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "-32600 1: `jsonrpc` has to be \"2.0\"");
        check_message(r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1: `method` is missing");
        for id in ["null", "1.5", "[]", "{}", "true", "18446744073709551615"] {
            check_message(
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
                "-32600 : `id` has to be text or a whole number",
            );
        }
        let fields = "a message has `jsonrpc` and `method`, both text, each once, and may have `id` and `params`";
        check_message(r#"{"jsonrpc":"2.0","id":7,"method":1}"#, &format!("-32600 7: {fields}"));
        check_message(r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}"#, &format!("-32600 7: {fields}"));
    }

    #[test]
    fn wrong_params_are_told_from_unknown_methods() {
        let call = r#"the params of `tools/call` are invalid: write `{"name": "…", "arguments": {…}}`"#;
        for params in [
            "",
            r#","params":{}"#,
            r#","params":[]"#,
            r#","params":{"name":1}"#,
            r#","params":{"name":"x","arguments":[]}"#,
        ] {
            check_message(
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call"{params}}}"#),
                &format!("-32602 1: {call}"),
            );
        }
        for method in ["initialize", "tools/list"] {
            check_message(
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":7}}"#),
                &format!("-32602 1: the params of `{method}` are invalid"),
            );
        }
        check_message(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}}"#, "1 resources/read");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let call = |levels| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{}}}}}}}"#,
                deep(levels)
            )
        };
        check_message(call(100), "1 tools/call");
        assert!(
            describe_message(call(200)).starts_with("-32700 1: the message is nested too deep at line 1"),
            "{}",
            describe_message(call(200))
        );
        assert!(describe_message(call(100_000)).starts_with("-32700 1: the message is nested too deep"));
        let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"a":{}}}}}"#, deep(1000));
        assert!(describe_message(list).starts_with("-32700 1: the message is nested too deep"));
        check_message(format!(r#"{{"jsonrpc":"2.0","method":"x","params":{}}}"#, deep(1000)), "-");
    }

    #[test]
    fn names_in_errors_are_cut_and_escaped() {
        assert_eq!(excerpt_name("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(excerpt_name(&"x".repeat(1000)).chars().count(), MAX_NAME_CHARS + 1);
    }
}
