//! One message from a client: parsed, or refused with an error that names its fault.
//!
//! Invariants:
//! - Any bytes become exactly one of [`Heard`].
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
pub const LONGEST: usize = 4 * 1024 * 1024;

/// Maximum number of characters of a name in an error.
const SHOWN: usize = 60;

/// Methods that the server answers: if one of them is not understood, its parameters are wrong. All others are unknown.
const REQUESTS: [&str; 4] = ["initialize", "server/discover", "tools/call", "tools/list"];

/// A message from a client.
pub enum Heard {
    Request(RequestId, ClientJsonRpcMessage),
    Notification(ClientJsonRpcMessage),
    /// A message that is refused with this answer.
    Refused(ServerJsonRpcMessage),
    /// A message without an answer: an unknown notification, or an answer to no request.
    Nothing,
}

#[derive(Deserialize)]
struct Envelope<'a> {
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
pub fn read(bytes: &[u8]) -> Heard {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let id = id_alone(&String::from_utf8_lossy(bytes));
        return refused(id, ErrorCode::PARSE_ERROR, "the message is not UTF-8");
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Heard::Nothing;
    }
    if !text.starts_with('{') {
        return match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) => broken(None, &error),
            Ok(_) if text.starts_with('[') => {
                refused(None, ErrorCode::INVALID_REQUEST, "batches are not taken: send each message by itself")
            }
            Ok(_) => refused(None, ErrorCode::INVALID_REQUEST, "a message is a JSON object"),
        };
    }
    match serde_json::from_str::<Envelope<'_>>(text) {
        Ok(envelope) => open(text, &envelope),
        Err(error) if error.is_data() => refused(
            id_alone(text),
            ErrorCode::INVALID_REQUEST,
            "a message has `jsonrpc` and `method`, both text, each once, and may have `id` and `params`",
        ),
        Err(error) => broken(None, &error),
    }
}

fn open(text: &str, envelope: &Envelope<'_>) -> Heard {
    let id = match envelope.id.map(|id| serde_json::from_str::<RequestId>(id.get())) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => {
            return refused(None, ErrorCode::INVALID_REQUEST, "`id` has to be text or a whole number");
        }
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return refused(id, ErrorCode::INVALID_REQUEST, "`jsonrpc` has to be \"2.0\"");
    }
    match (envelope.method.as_deref(), id) {
        (Some(method), Some(id)) => request(text, method, id),
        (Some(_), None) => notification(text),
        // The server sends no requests, so this is an answer to none.
        (None, _) if is_answer(text) => Heard::Nothing,
        (None, id) => refused(id, ErrorCode::INVALID_REQUEST, "`method` is missing"),
    }
}

fn request(text: &str, method: &str, id: RequestId) -> Heard {
    match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        Ok(ClientJsonRpcMessage::Request(request)) => match &request.request {
            // The newest revision has no `initialize`: for its clients that method is unknown, too.
            ClientRequest::CustomRequest(custom)
                if REQUESTS.contains(&method) && (method != "initialize" || custom.get_meta().is_empty()) =>
            {
                wrong_params(id, method)
            }
            _ => Heard::Request(id, ClientJsonRpcMessage::Request(request)),
        },
        Err(error) if !error.is_data() => broken(Some(id), &error),
        _ => wrong_params(id, method),
    }
}

/// Parses a notification. One that is unknown or malformed is ignored, since notifications have no answers.
fn notification(text: &str) -> Heard {
    match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        Ok(ClientJsonRpcMessage::Notification(notification)) => match notification.notification {
            ClientNotification::CancelledNotification(_) | ClientNotification::InitializedNotification(_) => {
                Heard::Notification(ClientJsonRpcMessage::Notification(notification))
            }
            _ => Heard::Nothing,
        },
        _ => Heard::Nothing,
    }
}

fn is_answer(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        result: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    serde_json::from_str::<Answer>(text).is_ok_and(|answer| answer.result.is_some() || answer.error.is_some())
}

/// Returns the ID of a message that has another fault.
fn id_alone(text: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Alone {
        id: RequestId,
    }
    serde_json::from_str::<Alone>(text).ok().map(|alone| alone.id)
}

fn wrong_params(id: RequestId, method: &str) -> Heard {
    let shape = if method == "tools/call" { r#": write `{"name": "…", "arguments": {…}}`"# } else { "" };
    let message = format!("the params of `{}` are not what it takes{shape}", shown(method));
    refused(Some(id), ErrorCode::INVALID_PARAMS, message)
}

/// Refuses a message that is not JSON, or nested too deep.
fn broken(id: Option<RequestId>, error: &serde_json::Error) -> Heard {
    let place = format!("line {}, column {}", error.line(), error.column());
    // serde_json has no category for this error.
    match error.to_string().starts_with("recursion limit") {
        true => refused(
            id,
            ErrorCode::PARSE_ERROR,
            format!("the message is nested too deep at {place}; 127 levels are read"),
        ),
        false => refused(id, ErrorCode::PARSE_ERROR, format!("the message is not JSON at {place}")),
    }
}

fn refused(id: Option<RequestId>, code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Heard {
    Heard::Refused(ServerJsonRpcMessage::error(ErrorData::new(code, message, None), id))
}

/// Returns the error for a request whose ID is in use. The error has no ID, since that would answer the other request.
pub fn taken(id: &RequestId) -> ServerJsonRpcMessage {
    let message = format!("a request with the id `{}` is not answered yet; give each its own", shown(&id.to_string()));
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), None)
}

/// Returns the error for a message that is too long. Its ID is not read.
pub fn too_long() -> ServerJsonRpcMessage {
    let message = format!("the message is longer than {} MiB", LONGEST / 1024 / 1024);
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), None)
}

/// Returns a name from a client, cut and escaped.
pub fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if name.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes a parsed message: its ID and method, `-`, or code, ID and text of its refusal.
    fn heard(bytes: impl AsRef<[u8]>) -> String {
        match read(bytes.as_ref()) {
            Heard::Request(id, ClientJsonRpcMessage::Request(request)) => format!("{id} {}", request.request.method()),
            Heard::Notification(ClientJsonRpcMessage::Notification(_)) => "notification".to_owned(),
            Heard::Refused(refused) => {
                let (error, id) = refused.into_error().unwrap();
                let id = id.map(|id| id.to_string()).unwrap_or_default();
                format!("{} {id}: {}", error.code.0, error.message)
            }
            Heard::Nothing => "-".to_owned(),
            _ => unreachable!("a request is a request"),
        }
    }

    #[track_caller]
    fn check(message: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(heard(message), expected);
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "1 ping");
        check(r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#, "a tools/list");
        check(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}"#, "2 tools/call");
        check(
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}"#,
            "2 tools/call",
        );
        check(r#"{"jsonrpc":"2.0","id":3,"method":"made/up","params":{}}"#, "3 made/up");
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification");
        check(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#, "notification");
    }

    #[test]
    fn what_nobody_waits_for_is_not_answered() {
        check("", "-");
        check(" \t\r\n", "-");
        check(r#"{"jsonrpc":"2.0","method":"made/up"}"#, "-");
        check(r#"{"jsonrpc":"2.0","method":"notifications/made_up","params":7}"#, "-");
        check(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#, "-");
        check(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#, "-");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "-");
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, "-");
    }

    #[test]
    fn broken_messages_are_refused_with_what_is_wrong() {
        check("{", "-32700 : the message is not JSON at line 1, column 1");
        check("nonsense", "-32700 : the message is not JSON at line 1, column 2");
        check("[1,", "-32700 : the message is not JSON at line 1, column 3");
        check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700 1: the message is not UTF-8");
        check("[]", "-32600 : batches are not taken: send each message by itself");
        check("42", "-32600 : a message is a JSON object");
        check(r#"{"id":1,"method":"ping"}"#, "-32600 1: `jsonrpc` has to be \"2.0\"");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "-32600 1: `jsonrpc` has to be \"2.0\"");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1: `method` is missing");
        for id in ["null", "1.5", "[]", "{}", "true", "18446744073709551615"] {
            check(
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
                "-32600 : `id` has to be text or a whole number",
            );
        }
        let fields = "a message has `jsonrpc` and `method`, both text, each once, and may have `id` and `params`";
        check(r#"{"jsonrpc":"2.0","id":7,"method":1}"#, &format!("-32600 7: {fields}"));
        check(r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}"#, &format!("-32600 7: {fields}"));
    }

    #[test]
    fn wrong_params_are_told_from_unknown_methods() {
        let call = r#"the params of `tools/call` are not what it takes: write `{"name": "…", "arguments": {…}}`"#;
        for params in [
            "",
            r#","params":{}"#,
            r#","params":[]"#,
            r#","params":{"name":1}"#,
            r#","params":{"name":"x","arguments":[]}"#,
        ] {
            check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call"{params}}}"#), &format!("-32602 1: {call}"));
        }
        for method in ["initialize", "tools/list"] {
            check(
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":7}}"#),
                &format!("-32602 1: the params of `{method}` are not what it takes"),
            );
        }
        check(r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}}"#, "1 resources/read");
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let call = |levels| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{}}}}}}}"#,
                deep(levels)
            )
        };
        check(call(100), "1 tools/call");
        assert!(
            heard(call(200)).starts_with("-32700 1: the message is nested too deep at line 1"),
            "{}",
            heard(call(200))
        );
        assert!(heard(call(100_000)).starts_with("-32700 1: the message is nested too deep"));
        let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"a":{}}}}}"#, deep(1000));
        assert!(heard(list).starts_with("-32700 1: the message is nested too deep"));
        check(format!(r#"{{"jsonrpc":"2.0","method":"x","params":{}}}"#, deep(1000)), "-");
    }

    #[test]
    fn names_are_shown_short_and_plain() {
        assert_eq!(shown("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), SHOWN + 1);
    }
}
