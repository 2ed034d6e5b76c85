//! Translation of matchers into our notation, which is that of Claude Code.
//!
//! There, letters, digits, blanks and `_ - , |` make a list of exact names. Everything else is a regular expression that matches
//! anywhere in a name. The translation rewrites a matcher of another system if Claude Code's rules would read it differently.

use windlass_expr::ToolMatcher;

use super::ImportDialect;
use crate::quote_text;

/// Translates a matcher, or returns why that is impossible. `None` matches everything.
pub fn translate_matcher(from: ImportDialect, text: &str) -> Result<Option<String>, String> {
    if matches_everything(from, text) {
        return Ok(None);
    }
    let is_list_there =
        |signs: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || signs.contains(letter));
    let written = match from {
        ImportDialect::Claude | ImportDialect::Automation => text.to_owned(),
        // A list of names means the same in codemie.
        ImportDialect::Codemie if is_list_there("_-|") => text.to_owned(),
        ImportDialect::Codemie if text.contains(['|', '[', ']', '{', '}', '(', ')']) => format!("^(?:{text})$"),
        ImportDialect::Codemie => return Err(format!("its matcher {} is the name of a tool there", quote_text(text))),
        ImportDialect::Codex if is_list_there("_|") => text.to_owned(),
        // Qwen Code ignores blanks around names, and empty names.
        ImportDialect::Qwen if is_name_list(text) => {
            let names: Vec<&str> = text.split('|').map(str::trim).filter(|name| !name.is_empty()).collect();
            format!("(?:{})", names.join("|"))
        }
        ImportDialect::Codex | ImportDialect::Gemini if is_name_list(text) => format!("(?:{})", text.trim()),
        ImportDialect::Codex | ImportDialect::Gemini | ImportDialect::Qwen => text.trim().to_owned(),
    };
    // JavaScript reads these anchors as letters.
    if [r"\A", r"\z"].iter().any(|anchor| written.contains(anchor)) {
        return Err(format!("its matcher {} has `\\A` or `\\z`, which are anchors here alone", quote_text(text)));
    }
    ToolMatcher::parse(&written)
        .map_err(|error| format!("its matcher {} cannot be used: {error}", quote_text(text)))?;
    Ok(Some(written))
}

/// Translates a matcher that does not match tools. Gemini CLI compares such a matcher as one word.
pub fn translate_word_matcher(from: ImportDialect, text: &str) -> Result<Option<String>, String> {
    let is_word = |text: &str| is_name_list(text) && !text.contains([' ', ',', '|']);
    match from {
        ImportDialect::Gemini if matches_everything(from, text) || is_word(text.trim()) => {
            translate_matcher(ImportDialect::Claude, text.trim())
        }
        ImportDialect::Gemini => {
            Err(format!("its matcher {} is one word there, and would be several here", quote_text(text)))
        }
        _ => translate_matcher(from, text),
    }
}

pub fn matches_everything(from: ImportDialect, text: &str) -> bool {
    let text = text.trim();
    matches!(text, "" | "*") || (from == ImportDialect::Qwen && text == ".*")
}

/// Returns whether our notation reads the text as a list of names.
fn is_name_list(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ' ' | ',' | '|'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the translation, and some tools that it matches and does not match.
    #[track_caller]
    fn check_translation(
        from: ImportDialect,
        matcher: &str,
        written: Option<&str>,
        for_these: &[&str],
        not_these: &[&str],
    ) {
        let found = translate_matcher(from, matcher).unwrap();
        assert_eq!(found.as_deref(), written, "{matcher:?}");
        let ours = ToolMatcher::parse(found.as_deref().unwrap_or_default()).unwrap();
        for tool in for_these {
            assert!(ours.matches_tool(tool), "{matcher:?} {tool:?}");
        }
        for tool in not_these {
            assert!(!ours.matches_tool(tool), "{matcher:?} {tool:?}");
        }
    }

    #[test]
    fn match_all_forms_translate_to_no_matcher() {
        for from in [
            ImportDialect::Claude,
            ImportDialect::Codemie,
            ImportDialect::Codex,
            ImportDialect::Gemini,
            ImportDialect::Qwen,
        ] {
            for all in ["", "*", " "] {
                check_translation(from, all, None, &["Bash", ""], &[]);
            }
        }
        check_translation(ImportDialect::Qwen, ".*", None, &["x"], &[]);
    }

    #[test]
    fn claude_matchers_stay_as_written() {
        for same in ["Bash", "Edit|Write", "Edit, Write", "mcp__.*__write", "^Edit$", "Notebook.*|Bash"] {
            check_translation(ImportDialect::Claude, same, Some(same), &[], &[]);
        }
    }

    #[test]
    fn codemie_matchers_match_the_whole_name() {
        check_translation(ImportDialect::Codemie, "Bash", Some("Bash"), &["Bash"], &["BashOutput"]);
        check_translation(ImportDialect::Codemie, "Edit|Write", Some("Edit|Write"), &["Edit", "Write"], &["MultiEdit"]);
        check_translation(
            ImportDialect::Codemie,
            "Edit.*|Write",
            Some("^(?:Edit.*|Write)$"),
            &["EditFile", "Write"],
            &["MultiEdit", "Writes"],
        );
        check_translation(ImportDialect::Codemie, "(Edit)", Some("^(?:(Edit))$"), &["Edit"], &["MultiEdit"]);
        for name in ["Edit.*", "a,b", "a b"] {
            assert!(
                translate_matcher(ImportDialect::Codemie, name).unwrap_err().contains("is the name of a tool there"),
                "{name}"
            );
        }
    }

    #[test]
    fn other_matchers_match_anywhere() {
        check_translation(ImportDialect::Gemini, "write", Some("(?:write)"), &["write_file", "write"], &["read"]);
        check_translation(ImportDialect::Gemini, "write_.*", Some("write_.*"), &["write_file"], &["read"]);
        check_translation(
            ImportDialect::Qwen,
            " read | edit |",
            Some("(?:read|edit)"),
            &["read_file", "edit"],
            &["write", ""],
        );
        check_translation(ImportDialect::Codex, "Bash", Some("Bash"), &["Bash"], &["BashOutput"]);
        check_translation(ImportDialect::Codex, "my-tool", Some("(?:my-tool)"), &["a-my-tool"], &["mytool"]);
        check_translation(ImportDialect::Codex, "^Bash", Some("^Bash"), &["BashOutput"], &["aBash"]);
    }

    #[test]
    fn untranslatable_matcher_is_refused() {
        for (from, matcher, part) in [
            (ImportDialect::Claude, "^(?!Bash)", "cannot be used"),
            (ImportDialect::Claude, r"(a)\1", "cannot be used"),
            (ImportDialect::Claude, "Bash(", "cannot be used"),
            (ImportDialect::Claude, "|", "names no tool"),
            (ImportDialect::Claude, r"\ABash", "are anchors here alone"),
        ] {
            let why = translate_matcher(from, matcher).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
