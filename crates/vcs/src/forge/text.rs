//! Text for a forge and from one: shortened, or refused.
//!
//! Titles and bodies come from agents and tasks, and may hold any text.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::ForgeError;
use crate::git::{BranchName, GitCommitId};

/// The longest body that GitHub takes, in letters. GitLab takes more.
const MAX_BODY_LETTERS: usize = 65_536;
/// The end of a body that was cut.
const CUT_NOTICE: &str = "\n\n[the rest is left out: it is too long]";
/// The letters that are quoted from a response.
const MAX_QUOTED_LETTERS: usize = 300;
const UNTITLED: &str = "Untitled change";
/// The letters that must be encoded in a query, or in a part of a path.
const ENCODED_LETTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns one line of at most `most` letters.
pub(super) fn fit_title(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|letter| is_plain_letter(*letter)).collect();
    let line = line.trim();
    match line.chars().count() {
        0 => UNTITLED.to_owned(),
        count if count > most => line.chars().take(most - 1).chain(['…']).collect(),
        _ => line.to_owned(),
    }
}

/// Returns lines that are short enough for every forge.
pub(super) fn fit_body(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let kept: String =
        text.chars().filter(|letter| matches!(letter, '\n' | '\t') || is_plain_letter(*letter)).collect();
    cut_body(kept)
}

/// Returns the same without GitLab's quick actions: a line of a description that begins with a slash is a command, such as
/// `/merge`.
pub(super) fn fit_inert_body(text: &str) -> String {
    let escaped = fit_body(text).split('\n').map(escape_quick_action).collect::<Vec<_>>().join("\n");
    cut_body(escaped)
}

fn escape_quick_action(line: &str) -> String {
    let bare = line.trim_start();
    if bare.starts_with('/') { format!("{}\\{bare}", &line[..line.len() - bare.len()]) } else { line.to_owned() }
}

fn cut_body(text: String) -> String {
    if text.chars().count() <= MAX_BODY_LETTERS {
        return text;
    }
    text.chars().take(MAX_BODY_LETTERS - CUT_NOTICE.chars().count()).chain(CUT_NOTICE.chars()).collect()
}

/// Returns whether a letter is neither a control character nor changes the text direction.
fn is_plain_letter(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Encodes a value of a query, or one part of a path.
pub(super) fn encode_component(text: &str) -> String {
    utf8_percent_encode(text, ENCODED_LETTERS).to_string()
}

/// Returns a forge's text as one short line.
pub(super) fn quote_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|letter| is_plain_letter(*letter)).take(MAX_QUOTED_LETTERS).collect()
}

pub(super) fn check_branch(name: &str) -> Result<(), ForgeError> {
    BranchName::new(name).map(drop).map_err(|_| ForgeError::BadBranch { name: name.chars().take(100).collect() })
}

pub(super) fn check_commit(name: &str) -> Result<(), ForgeError> {
    GitCommitId::new(name).map(drop).map_err(|_| ForgeError::BadCommit { name: name.chars().take(100).collect() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn titles_are_one_short_line() {
        for (text, expected) in [
            ("Fix the login", "Fix the login"),
            ("  Fix\r\n the\tlogin\0\u{9b}31m ", "Fix the login31m"),
            ("a\u{202e}b\u{2066}c", "abc"),
            (" \n ", UNTITLED),
            ("\u{1b}", UNTITLED),
        ] {
            assert_eq!(fit_title(text, 256), expected);
        }
        assert_eq!(fit_title(&"ä".repeat(300), 256).chars().count(), 256);
        assert_eq!(fit_title("abcdef", 4), "abc…");
        assert_eq!(fit_title("abcd", 4), "abcd");
    }

    #[test]
    fn bodies_keep_their_lines_and_fit() {
        assert_eq!(fit_body("a\r\n\tb\x1b[31m\0\n"), "a\n\tb[31m\n");
        let long = fit_body(&"ä".repeat(70_000));
        assert_eq!(long.chars().count(), MAX_BODY_LETTERS);
        assert!(long.ends_with(CUT_NOTICE));
    }

    #[test]
    fn body_lines_with_quick_actions_are_escaped() {
        assert_eq!(fit_inert_body("see\n/merge\n  /approve @eve\na/b\n"), "see\n\\/merge\n  \\/approve @eve\na/b\n");
        assert_eq!(fit_inert_body("/\u{202e}merge\n\0/close"), "\\/merge\n\\/close");
        assert!(fit_inert_body(&"/\n".repeat(MAX_BODY_LETTERS / 2)).chars().count() <= MAX_BODY_LETTERS);
    }

    proptest! {
        #[test]
        fn arbitrary_text_yields_bounded_title_and_inert_body(text in any::<String>(), most in 20..300_usize) {
            let title = fit_title(&text, most);
            prop_assert!((1..=most).contains(&title.chars().count()));
            prop_assert!(title.chars().all(is_plain_letter));
            prop_assert!(fit_inert_body(&text).lines().all(|line| !line.trim_start().starts_with('/')));
        }
    }
}
