//! JSON-RPC 2.0, one message a line.
//!
//! Invariants:
//! - The longest accepted line bounds the memory.
//! - A line that is no message is a [`ProtocolError`], with the start of the line.
//!
//! Not here: what the messages mean (`client`), pipes (`connection`).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::protocol_error::ProtocolError;
use crate::headless::parse_json_line;

/// The longest line that is accepted. Agents send whole files in one message.
pub const MAX_LINE_LENGTH: usize = 16 * 1024 * 1024;

/// The standard's code for an unknown method.
pub const NO_SUCH_METHOD: i64 = -32601;
/// The standard's codes for invalid parameters and for an internal error. The latter also stands for a refusal.
pub const INVALID_PARAMS: i64 = -32602;
pub const REQUEST_REFUSED: i64 = -32603;
/// The protocol's codes for a missing login and for a missing resource.
pub const LOGIN_REQUIRED: i64 = -32000;
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// Splits bytes into lines.
#[derive(Debug)]
pub struct BoundedLineBuffer {
    rest: Vec<u8>,
    /// The start of the next line, and the position up to which no line end was found.
    start: usize,
    looked: usize,
    most: usize,
}

impl Default for BoundedLineBuffer {
    fn default() -> Self {
        Self::new(MAX_LINE_LENGTH)
    }
}

impl BoundedLineBuffer {
    pub fn new(most: usize) -> Self {
        Self { rest: Vec::new(), start: 0, looked: 0, most }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// Returns the next complete line, without its line end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        let found = self.rest[self.looked..].iter().position(|byte| *byte == b'\n').map(|at| at + self.looked);
        if found.unwrap_or(self.rest.len()) - self.start > self.most {
            return Err(ProtocolError::TooLong { most: self.most });
        }
        let Some(end) = found else {
            self.rest.drain(..self.start);
            (self.start, self.looked) = (0, self.rest.len());
            return Ok(None);
        };
        let line = self.rest[self.start..end].to_vec();
        (self.start, self.looked) = (end + 1, end + 1);
        Ok(Some(line))
    }
}

/// A message of either side.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonRpcMessage {
    Request { id: Value, method: String, params: Value },
    Notice { method: String, params: Value },
    Answer { id: Value, outcome: Result<Value, JsonRpcError> },
}

/// An error response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JsonRpcError {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl JsonRpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl JsonRpcMessage {
    pub fn parse_line(line: &[u8]) -> Result<Self, ProtocolError> {
        let value = parse_json_line(line).map_err(|error| ProtocolError::from_invalid_json(line, &error))?;
        let strange = || ProtocolError::from_invalid_message(line);
        let Value::Object(mut object) = value else { return Err(strange()) };
        let id = object.remove("id");
        let params = object.remove("params").unwrap_or(Value::Null);
        match (object.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(Self::Request { id, method, params }),
            (Some(Value::String(method)), None) => Ok(Self::Notice { method, params }),
            (Some(_), _) | (None, None) => Err(strange()),
            (None, Some(id)) => {
                let outcome = match (object.remove("error").filter(|error| !error.is_null()), object.remove("result")) {
                    (Some(error), _) => Err(serde_json::from_value(error).map_err(|_| strange())?),
                    (None, Some(result)) => Ok(result),
                    (None, None) => return Err(strange()),
                };
                Ok(Self::Answer { id, outcome })
            }
        }
    }

    pub fn to_line(&self) -> Vec<u8> {
        let value = match self {
            Self::Request { id, method, params } => {
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            }
            Self::Notice { method, params } => json!({"jsonrpc": "2.0", "method": method, "params": params}),
            Self::Answer { id, outcome: Ok(result) } => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Self::Answer { id, outcome: Err(error) } => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        let mut line = value.to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the lines that come out, for every way to cut the bytes.
    fn check(text: &str, most: usize, expected: &[&str], breaks: bool) {
        for size in 1..=text.len().max(1) {
            let (mut lines, mut found, mut broken) = (BoundedLineBuffer::new(most), Vec::new(), false);
            for piece in text.as_bytes().chunks(size) {
                lines.push(piece);
                while let Some(line) = lines.next().unwrap_or_else(|_| {
                    broken = true;
                    None
                }) {
                    found.push(String::from_utf8(line).unwrap());
                }
                if broken {
                    break;
                }
            }
            assert_eq!(
                (found.as_slice(), broken),
                (&*expected.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>(), breaks),
                "{size}"
            );
        }
    }

    #[test]
    fn lines_are_split_however_bytes_arrive() {
        check("", 4, &[], false);
        check("ab\n\ncd\nrest", 4, &["ab", "", "cd"], false);
        check("abcd\n", 4, &["abcd"], false);
        check("ab\nabcde", 4, &["ab"], true);
        check("ab\nabcde\n", 4, &["ab"], true);
    }

    #[test]
    fn messages_round_trip() {
        let refused = JsonRpcError { code: -1, message: "no".to_owned(), data: Some(json!({"why": 1})) };
        for message in [
            JsonRpcMessage::Request { id: json!(1), method: "a/b".to_owned(), params: json!({"x": "y\n"}) },
            JsonRpcMessage::Notice { method: "a".to_owned(), params: Value::Null },
            JsonRpcMessage::Answer { id: json!("x"), outcome: Ok(Value::Null) },
            JsonRpcMessage::Answer { id: Value::Null, outcome: Err(refused) },
        ] {
            let line = message.to_line();
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(Message::parse(&line), Ok(message));
        }
    }

    #[test]
    fn invalid_messages_are_refused() {
        let deep = "[".repeat(1000);
        for line in ["", "hello", "[]", "{}", "3", r#"{"id":1}"#, r#"{"method":3}"#, r#"{"id":1,"error":"x"}"#, &deep] {
            assert!(JsonRpcMessage::parse_line(line.as_bytes()).is_err(), "{line}");
        }
    }
}
