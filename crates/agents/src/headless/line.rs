//! A line of a stream as an event.

use serde_json::Value;

/// The event in a line, if it is an object.
pub(super) fn event(line: &[u8]) -> Option<Value> {
    parse(bare(line)).ok().filter(Value::is_object)
}

/// What a line holds. Half of a pair of surrogates, which programs leave that cut text as they count it, is replaced: a
/// whole turn must not be lost for it.
pub(crate) fn parse(line: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(line).or_else(|error| {
        let text = String::from_utf8_lossy(line);
        serde_json::from_str(&whole(&text)).map_err(|_| error)
    })
}

/// A line without the mark that some programs begin their output with, and without the end of line of others.
pub(crate) fn bare(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

/// The text without escapes that stand for half a letter.
fn whole(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match unit(rest) {
            Some(0xd800..=0xdbff) if unit(&rest[6..]).is_some_and(|next| (0xdc00..=0xdfff).contains(&next)) => 12,
            Some(0xd800..=0xdfff) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // The letter after it, however long it is.
            _ => rest.chars().take(2).map(char::len_utf8).sum(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// The number of an escape such as `\u00e9` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// What a tool is called with, in a few words.
pub(super) fn title(name: &str, input: &Value) -> String {
    const TELLING: [&str; 8] = ["command", "file_path", "filePath", "path", "pattern", "url", "query", "description"];
    match TELLING.iter().find_map(|key| input[*key].as_str()) {
        Some(what) => format!("{name}: {what}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_letters_are_replaced() {
        let text = |line: &str| event(line.as_bytes()).and_then(|event| event["a"].as_str().map(str::to_owned));
        for (line, expected) in [
            (r#"{"a":"\ud83d\ude00"}"#, "😀"),
            (r#"{"a":"x\ud83d"}"#, "x\u{fffd}"),
            (r#"{"a":"\ude00\ud83dé\\ud83d"}"#, "\u{fffd}\u{fffd}é\\ud83d"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}😀"),
            ("\u{feff}{\"a\":\"x\"}\r", "x"),
        ] {
            assert_eq!(text(line).as_deref(), Some(expected), "{line}");
        }
        for line in ["", "[]", "3", "{", r#"{"a":"\ud83"#, r#"{"a":"\"#, r"\", r"\é", &"[".repeat(10_000)] {
            assert_eq!(event(line.as_bytes()), None, "{line}");
        }
        let raw = event(b"{\"a\":\"\xff\"}").expect("an event");
        assert_eq!(raw["a"], "\u{fffd}");
    }
}
