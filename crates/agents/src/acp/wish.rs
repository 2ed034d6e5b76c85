//! Requests of an agent for client services: files and terminals.
//!
//! Not here: serving them (`client_services`).

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::wire::{INVALID, Refused};

/// A request that is served during the turn. It gets one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Read(ReadFile),
    Write(WriteFile),
    /// Runs a program in a new terminal.
    Create(CreateTerminal),
    Output(String),
    WaitForExit(String),
    Kill(String),
    Release(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadFile {
    pub path: PathBuf,
    /// The first line to read, counted from 1.
    #[serde(default)]
    pub line: Option<u64>,
    /// How many lines to read.
    #[serde(default)]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WriteFile {
    pub path: PathBuf,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTerminal {
    pub command: String,
    #[serde(default, deserialize_with = "or_default")]
    pub args: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub env: Vec<Variable>,
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// How many bytes of output to keep, from the end.
    #[serde(default)]
    pub output_byte_limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminal {
    terminal_id: String,
}

impl Wish {
    /// Parses a request. `None` for any other method.
    pub fn of(method: &str, params: &Value) -> Option<Result<Self, Refused>> {
        fn read<T: serde::de::DeserializeOwned>(method: &str, params: &Value) -> Result<T, Refused> {
            T::deserialize(params)
                .map_err(|error| Refused::new(INVALID, format!("cannot understand `{method}`: {error}")))
        }
        let terminal = || read::<Terminal>(method, params).map(|terminal| terminal.terminal_id);
        Some(match method {
            "fs/read_text_file" => read(method, params).map(Self::Read),
            "fs/write_text_file" => read(method, params).map(Self::Write),
            "terminal/create" => read(method, params).map(Self::Create),
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
    fn requests_are_read_as_the_protocol_writes_them() {
        let check = |method: &str, params: Value, expected: Wish| {
            assert_eq!(Wish::of(method, &params), Some(Ok(expected)), "{method}");
        };
        check("fs/read_text_file", json!({"sessionId": "s", "path": "/a", "line": 3, "limit": null, "_meta": {}}), {
            Wish::Read(ReadFile { path: "/a".into(), line: Some(3), limit: None })
        });
        check("fs/write_text_file", json!({"sessionId": "s", "path": "/a", "content": "x"}), {
            Wish::Write(WriteFile { path: "/a".into(), content: "x".to_owned() })
        });
        let env = vec![Variable { name: "A".to_owned(), value: "1".to_owned() }];
        let (command, args) = ("ls".to_owned(), vec!["-l".to_owned()]);
        let created = json!({"command": "ls", "args": ["-l"], "env": [{"name": "A", "value": "1"}],
            "cwd": "/b", "outputByteLimit": 10});
        check("terminal/create", created, {
            Wish::Create(CreateTerminal { command, args, env, cwd: Some("/b".into()), output_byte_limit: Some(10) })
        });
        let bare =
            CreateTerminal { command: "ls".to_owned(), args: vec![], env: vec![], cwd: None, output_byte_limit: None };
        check("terminal/create", json!({"command": "ls", "args": null, "env": null}), Wish::Create(bare));
        let terminal = || json!({"sessionId": "s", "terminalId": "t1"});
        check("terminal/output", terminal(), Wish::Output("t1".to_owned()));
        check("terminal/wait_for_exit", terminal(), Wish::WaitForExit("t1".to_owned()));
        check("terminal/kill", terminal(), Wish::Kill("t1".to_owned()));
        check("terminal/release", terminal(), Wish::Release("t1".to_owned()));
    }

    #[test]
    fn what_cannot_be_understood_is_refused_and_what_is_not_known_is_none() {
        let refused = Wish::of("terminal/create", &json!({"args": 3})).expect("known").expect_err("bad");
        assert_eq!(refused.code, INVALID);
        assert_eq!(Wish::of("fs/made_up", &Value::Null), None);
    }
}
