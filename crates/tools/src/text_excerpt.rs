//! Excerpts of text from callers for errors: one short line without hidden characters.

use std::fmt::Write as _;

use serde_json::Value;

/// Maximum number of characters in an excerpt.
const MAX_EXCERPT_CHARS: usize = 60;

/// Returns text as one short line without hidden characters.
pub fn excerpt_text(given: &str) -> String {
    let mut shown = String::new();
    for (place, letter) in given.chars().enumerate() {
        if place == MAX_EXCERPT_CHARS {
            shown.push('…');
            break;
        }
        match letter {
            '`' => shown.push('\''),
            letter if letter.is_ascii() && !letter.is_control() || letter.is_alphanumeric() => shown.push(letter),
            letter => write!(shown, "\\u{{{:x}}}", u32::from(letter)).expect("a string takes all text"),
        }
    }
    shown
}

/// Describes a value by its kind, with its content if that is short.
pub fn describe_value(given: &Value) -> String {
    match given {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => excerpt_text(&number.to_string()),
        Value::String(given) => format!("the text `{}`", text(given)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_escapes_hidden_characters_and_is_short() {
        assert_eq!(text("a\u{1b}[31mb\nc\u{202e}d`e\u{301}"), "a\\u{1b}[31mb\\u{a}c\\u{202e}d'e\\u{301}");
        assert_eq!(text("grün"), "grün");
        assert_eq!(text(&"x".repeat(1000)).chars().count(), LONG + 1);
        assert_eq!(value(&Value::from("../T1")), "the text `../T1`");
    }
}
