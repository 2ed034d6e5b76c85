//! Requests of an agent for client services: files and terminals.
//!
//! Not here: serving them (`client_services`).

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::json_rpc::{INVALID_PARAMS, JsonRpcError};

/// A request that is served during the turn. It gets one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientRequest {
    Read(ReadFileRequest),
    Write(WriteFileRequest),
    /// Runs a program in a new terminal.
    Create(CreateTerminalRequest),
    Output(String),
    WaitForExit(String),
    Kill(String),
    Release(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadFileRequest {
    pub path: PathBuf,
    /// The first line to read, counted from 1.
    #[serde(default)]
    pub line: Option<u64>,
    /// How many lines to read.
    #[serde(default)]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WriteFileRequest {
    pub path: PathBuf,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTerminalRequest {
    pub command: String,
    #[serde(default, deserialize_with = "or_default")]
    pub args: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub env: Vec<EnvironmentVariable>,
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// How many bytes of output to keep, from the end.
    #[serde(default)]
    pub output_byte_limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EnvironmentVariable {
    pub name: String,
    pub value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerminalParams {
    terminal_id: String,
}

impl ClientRequest {
    /// Parses a request. `None` for any other method.
    pub fn from_request(method: &str, params: &Value) -> Option<Result<Self, JsonRpcError>> {
        fn parse_params<T: serde::de::DeserializeOwned>(method: &str, params: &Value) -> Result<T, JsonRpcError> {
            T::deserialize(params)
                .map_err(|error| JsonRpcError::new(INVALID_PARAMS, format!("cannot understand `{method}`: {error}")))
        }
        let terminal = || parse_params::<TerminalParams>(method, params).map(|terminal| terminal.terminal_id);
        Some(match method {
            "fs/read_text_file" => parse_params(method, params).map(Self::Read),
            "fs/write_text_file" => parse_params(method, params).map(Self::Write),
            "terminal/create" => parse_params(method, params).map(Self::Create),
            "terminal/output" => terminal().map(Self::Output),
            "terminal/wait_for_exit" => terminal().map(Self::WaitForExit),
            "terminal/kill" => terminal().map(Self::Kill),
            "terminal/release" => terminal().map(Self::Release),
            _ => return None,
        })
    }
}

/// Reads `null` as the default: some agents send it for absent fields.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn client_requests_parse_from_protocol_params() {
        let check = |method: &str, params: Value, expected: ClientRequest| {
            assert_eq!(Wish::of(method, &params), Some(Ok(expected)), "{method}");
        };
        check("fs/read_text_file", json!({"sessionId": "s", "path": "/a", "line": 3, "limit": null, "_meta": {}}), {
            ClientRequest::Read(ReadFileRequest { path: "/a".into(), line: Some(3), limit: None })
        });
        check("fs/write_text_file", json!({"sessionId": "s", "path": "/a", "content": "x"}), {
            ClientRequest::Write(WriteFileRequest { path: "/a".into(), content: "x".to_owned() })
        });
        let env = vec![Variable { name: "A".to_owned(), value: "1".to_owned() }];
        let (command, args) = ("ls".to_owned(), vec!["-l".to_owned()]);
        let created = json!({"command": "ls", "args": ["-l"], "env": [{"name": "A", "value": "1"}],
            "cwd": "/b", "outputByteLimit": 10});
        check("terminal/create", created, {
            ClientRequest::Create(CreateTerminalRequest {
                command,
                args,
                env,
                cwd: Some("/b".into()),
                output_byte_limit: Some(10),
            })
        });
        let bare = CreateTerminalRequest {
            command: "ls".to_owned(),
            args: vec![],
            env: vec![],
            cwd: None,
            output_byte_limit: None,
        };
        check("terminal/create", json!({"command": "ls", "args": null, "env": null}), ClientRequest::Create(bare));
        let terminal = || json!({"sessionId": "s", "terminalId": "t1"});
        check("terminal/output", terminal(), ClientRequest::Output("t1".to_owned()));
        check("terminal/wait_for_exit", terminal(), ClientRequest::WaitForExit("t1".to_owned()));
        check("terminal/kill", terminal(), ClientRequest::Kill("t1".to_owned()));
        check("terminal/release", terminal(), ClientRequest::Release("t1".to_owned()));
    }

    #[test]
    fn invalid_params_are_refused_and_unknown_methods_ignored() {
        let refused =
            ClientRequest::from_request("terminal/create", &json!({"args": 3})).expect("known").expect_err("bad");
        assert_eq!(refused.code, INVALID);
        assert_eq!(Wish::of("fs/made_up", &Value::Null), None);
    }
}
