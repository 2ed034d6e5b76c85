//! Which tools a hook is for, in our notation: that of Claude Code.
//!
//! There, letters, digits and `_ - , |` and blanks are a list of exact names, and everything else is a regular expression
//! that is looked for anywhere in a name. A matcher of another system that would be read as the other of the two is
//! written so that it is not.

use windlass_engine::Matcher;

use super::Dialect;
use crate::config::quoted;

/// A matcher in our notation. `None` matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matching {
    pub written: Option<String>,
    /// Why it is not written as it was.
    pub note: Option<String>,
}

/// The same matcher in our notation, or why there is none.
pub fn translate(from: Dialect, text: &str) -> Result<Matching, String> {
    if is_all(from, text) {
        return Ok(Matching { written: None, note: None });
    }
    let (written, meaning) = match from {
        Dialect::Claude | Dialect::Automation => (text.to_owned(), ""),
        Dialect::Codemie => codemie(text),
        Dialect::Codex => codex(text),
        Dialect::Gemini => (searched(text.trim()), "is looked for anywhere in a tool's name"),
        Dialect::Qwen => (searched(&trimmed(text)), "is looked for anywhere in a tool's name"),
    };
    if let Some(escape) = foreign_escape(&written) {
        return Err(format!("its matcher {} has {}, which means something else here", quoted(text), quoted(&escape)));
    }
    Matcher::parse(&written).map_err(|error| format!("its matcher {} cannot be used: {error}", quoted(text)))?;
    let note = (written != text && !meaning.is_empty())
        .then(|| format!("the matcher {} {meaning} there; it is written as {}", quoted(text), quoted(&written)));
    Ok(Matching { written: Some(written), note })
}

/// The same for a matcher that does not look at tools. To Gemini CLI it is then the word itself.
pub fn translate_word(from: Dialect, text: &str) -> Result<Matching, String> {
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

/// Whether we read it as a list of names.
fn is_list(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ' ' | ',' | '|'))
}

/// An expression that is found anywhere.
fn searched(pattern: &str) -> String {
    if is_list(pattern) { format!("(?:{pattern})") } else { pattern.to_owned() }
}

/// With any of these signs it is an expression for the whole name, else the name itself.
fn codemie(text: &str) -> (String, &'static str) {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| is_list(&letter.to_string()) && !" ,|".contains(letter))
    };
    match text.contains(['|', '[', ']', '{', '}', '(', ')']) {
        // A list of names means the same to us.
        true if text.split('|').all(is_name) => (text.to_owned(), ""),
        true => (format!("^(?:{text})$"), "is an expression for the whole name of a tool"),
        false if is_name(text) => (text.to_owned(), ""),
        false => (format!("^{}$", escaped(text)), "is the name of a tool"),
    }
}

/// A list has no blanks and no commas, and no `-` in its names.
fn codex(text: &str) -> (String, &'static str) {
    let is_exact = text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '|'));
    if is_exact { (text.to_owned(), "") } else { (searched(text), "is looked for anywhere in a tool's name") }
}

/// Blanks around the parts of a list do not count.
fn trimmed(text: &str) -> String {
    if !is_list(text) {
        return text.trim().to_owned();
    }
    let parts: Vec<&str> = text.split('|').map(str::trim).filter(|part| !part.is_empty()).collect();
    parts.join("|")
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if letter.is_ascii_punctuation() && !matches!(letter, '_' | ',' | '-') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// A backslash with a letter that JavaScript and we do not read alike.
fn foreign_escape(pattern: &str) -> Option<String> {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            continue;
        }
        match letters.next() {
            Some(next) if next.is_ascii_alphanumeric() && !"dDwWsSbBnrtfv".contains(next) => {
                return Some(format!("\\{next}"));
            }
            Some(next @ ('<' | '>')) => return Some(format!("\\{next}")),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, and which of these tools it is for.
    #[track_caller]
    fn check(from: Dialect, matcher: &str, written: Option<&str>, for_these: &[&str], not_these: &[&str]) {
        let found = translate(from, matcher).unwrap();
        assert_eq!(found.written.as_deref(), written, "{matcher:?}");
        let ours = Matcher::parse(found.written.as_deref().unwrap_or_default()).unwrap();
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
            assert_eq!(translate(Dialect::Claude, same).unwrap().note, None);
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
        check(Dialect::Codemie, "Edit.*", Some(r"^Edit\.\*$"), &["Edit.*"], &["EditFile", "Edit"]);
        check(Dialect::Codemie, "a,b", Some("^a,b$"), &["a,b"], &["a", "b"]);
        check(Dialect::Codemie, "a b", Some("^a b$"), &["a b"], &["a", "b"]);
        assert!(translate(Dialect::Codemie, "Edit.*|Write").unwrap().note.unwrap().contains("whole name"));
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
            (Dialect::Claude, r"(a)\1", r"`\1`, which means something else"),
            (Dialect::Claude, r"\ABash", r"`\A`, which means something else"),
            (Dialect::Claude, "Bash(", "cannot be used"),
            (Dialect::Claude, "|", "names no tool"),
        ] {
            let why = translate(from, matcher).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
