//! What a tool said, as clients are told: as text for a model, and as an object for a program.
//!
//! Invariants:
//! - Both are the same, written once.

use rmcp::model::{CallToolResult, ContentBlock, RequestId};
use serde_json::value::{RawValue, to_raw_value};
use windlass_tools::ToolError;

use crate::server::Said;

/// As rmcp takes it.
pub fn result(said: Said) -> CallToolResult {
    let mut result = match &said {
        Ok(said) => CallToolResult::success(vec![ContentBlock::text(said.get())]),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    };
    result.structured_content = match said {
        // What is nested too deep to be read again is told as text alone.
        Ok(said) => serde_json::from_str(said.get()).ok(),
        Err(error) => Some(error.to_json()),
    };
    result
}

/// Which words an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// Of the revisions with a handshake.
    Older,
    /// Of the newest.
    Newest,
}

/// The same as a whole line, which is what most answers become: rmcp would take it apart and write it anew.
pub fn line(id: &RequestId, said: &Said, wording: Wording) -> Vec<u8> {
    match said {
        Ok(said) => write(id, said.get(), said, wording, false),
        Err(error) => write(id, &error.to_string(), &object(error), wording, true),
    }
}

fn object(error: &ToolError) -> Box<RawValue> {
    to_raw_value(&error.to_json()).expect("an error has string keys")
}

fn write(id: &RequestId, text: &str, object: &RawValue, wording: Wording, is_error: bool) -> Vec<u8> {
    let result_type = match wording {
        Wording::Older => "",
        Wording::Newest => r#""resultType":"complete","#,
    };
    // The text has quotes that are escaped, and there is something around both.
    let mut line = Vec::with_capacity(text.len() * 2 + object.get().len() + 256);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    serde_json::to_writer(&mut line, id).expect("an id is a number or text");
    line.extend_from_slice(br#","result":{"#);
    line.extend_from_slice(result_type.as_bytes());
    line.extend_from_slice(br#""content":[{"type":"text","text":"#);
    serde_json::to_writer(&mut line, text).expect("text can be written");
    line.extend_from_slice(br#"}],"structuredContent":"#);
    line.extend_from_slice(object.get().as_bytes());
    line.extend_from_slice(if is_error { br#","isError":true}}"# } else { br#","isError":false}}"# });
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_tools::Code;

    use super::*;

    /// Whichever way an answer takes, it says the same.
    #[test]
    fn a_line_says_what_rmcp_would_say() {
        let ok = || Ok(to_raw_value(&json!({"text": "a \"b\"\n\u{1f600}", "list": [1, null, 2.5]})).unwrap());
        let failed = || Err(ToolError::new(Code::NotFound, "there is no \"T9\"").hint("look"));
        let id = RequestId::String("a\"b".into());
        for said in [ok as fn() -> Said, failed] {
            for wording in [Wording::Older, Wording::Newest] {
                let mut result = result(said());
                if wording == Wording::Older {
                    result.result_type = None;
                }
                let line: Value = serde_json::from_slice(&line(&id, &said(), wording)).unwrap();
                assert_eq!(line, json!({"jsonrpc": "2.0", "id": "a\"b", "result": result}), "{wording:?}");
            }
        }
    }
}
