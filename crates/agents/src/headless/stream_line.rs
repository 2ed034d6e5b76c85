//! Lines of an event stream.

use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;

/// Parses a line as an event, if it is an object.
pub(super) fn parse_event_line(line: &[u8]) -> Option<Value> {
    parse_json_line(trim_line(line)).ok().filter(Value::is_object)
}

/// An escaped surrogate. Programs that cut text leave unpaired ones.
static SURROGATE_ESCAPE_REGEX: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").expect("a pattern"));

/// Parses a line. If that fails, tries again without escaped surrogates: half a character must not cost the result of a
/// whole turn.
pub(crate) fn parse_json_line(line: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(line).or_else(|error| {
        let text = String::from_utf8_lossy(line);
        serde_json::from_str(&SURROGATE_ESCAPE_REGEX.replace_all(&text, r"\ufffd")).map_err(|_| error)
    })
}

/// Trims a line: some programs print a byte order mark first, others end lines with a carriage return.
pub(crate) fn trim_line(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

/// Formats a tool call as a short title.
pub(super) fn format_tool_title(name: &str, input: &Value) -> String {
    const TITLE_KEYS: [&str; 8] =
        ["command", "file_path", "filePath", "path", "pattern", "url", "query", "description"];
    match TITLE_KEYS.iter().find_map(|key| input[*key].as_str()) {
        Some(what) => format!("{name}: {what}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpaired_surrogates_are_replaced() {
        let text =
            |line: &str| parse_event_line(line.as_bytes()).and_then(|event| event["a"].as_str().map(str::to_owned));
        for (line, expected) in [
            (r#"{"a":"\ud83d\ude00"}"#, "😀"),
            (r#"{"a":"x\ud83d"}"#, "x\u{fffd}"),
            (r#"{"a":"\ude00\ud83dé"}"#, "\u{fffd}\u{fffd}é"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{feff}{\"a\":\"x\"}\r", "x"),
        ] {
            assert_eq!(text(line).as_deref(), Some(expected), "{line}");
        }
        for line in ["", "[]", "3", "{", r#"{"a":"\ud83"#, r#"{"a":"\"#, r"\", r"\é", &"[".repeat(10_000)] {
            assert_eq!(event(line.as_bytes()), None, "{line}");
        }
        let raw = parse_event_line(b"{\"a\":\"\xff\"}").expect("an event");
        assert_eq!(raw["a"], "\u{fffd}");
    }
}
