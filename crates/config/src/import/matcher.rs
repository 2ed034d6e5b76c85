//! Translation of matchers into our notation, which is that of Claude Code.
//!
//! There, letters, digits, blanks and `_ - , |` make a list of exact names. Everything else is a regular expression that matches
//! anywhere in a name. The translation rewrites a matcher of another system if Claude Code's rules would read it differently.

use windlass_expr::Matcher;

use super::Dialect;
use crate::quoted;

/// Translates a matcher, or returns why that is impossible. `None` matches everything.
pub fn translate(from: Dialect, text: &str) -> Result<Option<String>, String> {
    if is_all(from, text) {
        return Ok(None);
    }
    let is_list_there =
        |signs: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || signs.contains(letter));
    let written = match from {
        Dialect::Claude | Dialect::Automation => text.to_owned(),
        // A list of names means the same in codemie.
        Dialect::Codemie if is_list_there("_-|") => text.to_owned(),
        Dialect::Codemie if text.contains(['|', '[', ']', '{', '}', '(', ')']) => format!("^(?:{text})$"),
        Dialect::Codemie => return Err(format!("its matcher {} is the name of a tool there", quoted(text))),
        Dialect::Codex if is_list_there("_|") => text.to_owned(),
        // Qwen Code ignores blanks around names, and empty names.
        Dialect::Qwen if is_list(text) => {
            let names: Vec<&str> = text.split('|').map(str::trim).filter(|name| !name.is_empty()).collect();
            format!("(?:{})", names.join("|"))
        }
        Dialect::Codex | Dialect::Gemini if is_list(text) => format!("(?:{})", text.trim()),
        Dialect::Codex | Dialect::Gemini | Dialect::Qwen => text.trim().to_owned(),
    };
    // JavaScript reads these anchors as letters.
    if [r"\A", r"\z"].iter().any(|anchor| written.contains(anchor)) {
        return Err(format!("its matcher {} has `\\A` or `\\z`, which are anchors here alone", quoted(text)));
    }
    Matcher::parse(&written).map_err(|error| format!("its matcher {} cannot be used: {error}", quoted(text)))?;
    Ok(Some(written))
}

/// Translates a matcher that does not match tools. Gemini CLI compares such a matcher as one word.
pub fn translate_word(from: Dialect, text: &str) -> Result<Option<String>, String> {
    let is_word = |text: &str| is_list(text) && !text.contains([' ', ',', '|']);
    match from {
        Dialect::Gemini if is_all(from, text) || is_word(text.trim()) => translate(Dialect::Claude, text.trim()),
        Dialect::Gemini => {
            Err(format!("its matcher {} is taken for one word there, and would be several here", quoted(text)))
        }
        _ => translate(from, text),
    }
}

pub fn is_all(from: Dialect, text: &str) -> bool {
    let text = text.trim();
    matches!(text, "" | "*") || (from == Dialect::Qwen && text == ".*")
}

/// Returns whether our notation reads the text as a list of names.
fn is_list(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ' ' | ',' | '|'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the translation, and some tools that it matches and does not match.
    #[track_caller]
    fn check(from: Dialect, matcher: &str, written: Option<&str>, for_these: &[&str], not_these: &[&str]) {
        let found = translate(from, matcher).unwrap();
        assert_eq!(found.as_deref(), written, "{matcher:?}");
        let ours = Matcher::parse(found.as_deref().unwrap_or_default()).unwrap();
        for tool in for_these {
            assert!(ours.matches(tool), "{matcher:?} {tool:?}");
        }
        for tool in not_these {
            assert!(!ours.matches(tool), "{matcher:?} {tool:?}");
        }
    }

    #[test]
    fn everything_is_everything() {
        for from in [Dialect::Claude, Dialect::Codemie, Dialect::Codex, Dialect::Gemini, Dialect::Qwen] {
            for all in ["", "*", " "] {
                check(from, all, None, &["Bash", ""], &[]);
            }
        }
        check(Dialect::Qwen, ".*", None, &["x"], &[]);
    }

    #[test]
    fn claude_codes_are_ours() {
        for same in ["Bash", "Edit|Write", "Edit, Write", "mcp__.*__write", "^Edit$", "Notebook.*|Bash"] {
            check(Dialect::Claude, same, Some(same), &[], &[]);
        }
    }

    #[test]
    fn codemies_are_for_the_whole_name() {
        check(Dialect::Codemie, "Bash", Some("Bash"), &["Bash"], &["BashOutput"]);
        check(Dialect::Codemie, "Edit|Write", Some("Edit|Write"), &["Edit", "Write"], &["MultiEdit"]);
        check(
            Dialect::Codemie,
            "Edit.*|Write",
            Some("^(?:Edit.*|Write)$"),
            &["EditFile", "Write"],
            &["MultiEdit", "Writes"],
        );
        check(Dialect::Codemie, "(Edit)", Some("^(?:(Edit))$"), &["Edit"], &["MultiEdit"]);
        for name in ["Edit.*", "a,b", "a b"] {
            assert!(translate(Dialect::Codemie, name).unwrap_err().contains("is the name of a tool there"), "{name}");
        }
    }

    #[test]
    fn others_are_looked_for_anywhere() {
        check(Dialect::Gemini, "write", Some("(?:write)"), &["write_file", "write"], &["read"]);
        check(Dialect::Gemini, "write_.*", Some("write_.*"), &["write_file"], &["read"]);
        check(Dialect::Qwen, " read | edit |", Some("(?:read|edit)"), &["read_file", "edit"], &["write", ""]);
        check(Dialect::Codex, "Bash", Some("Bash"), &["Bash"], &["BashOutput"]);
        check(Dialect::Codex, "my-tool", Some("(?:my-tool)"), &["a-my-tool"], &["mytool"]);
        check(Dialect::Codex, "^Bash", Some("^Bash"), &["BashOutput"], &["aBash"]);
    }

    #[test]
    fn what_we_cannot_say_is_refused() {
        for (from, matcher, part) in [
            (Dialect::Claude, "^(?!Bash)", "cannot be used"),
            (Dialect::Claude, r"(a)\1", "cannot be used"),
            (Dialect::Claude, "Bash(", "cannot be used"),
            (Dialect::Claude, "|", "names no tool"),
            (Dialect::Claude, r"\ABash", "are anchors here alone"),
        ] {
            let why = translate(from, matcher).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
