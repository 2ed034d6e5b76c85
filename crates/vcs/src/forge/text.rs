//! Text for a forge and from one: shortened, or refused.
//!
//! Titles and bodies come from agents and tasks, and may hold any text.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::ForgeError;
use crate::git::{Branch, Commit};

/// The longest body that GitHub takes, in letters. GitLab takes more.
const BODY: usize = 65_536;
/// The end of a body that was cut.
const CUT: &str = "\n\n[the rest is left out: it is too long]";
/// The letters that are quoted from a response.
const QUOTED: usize = 300;
const UNTITLED: &str = "Untitled change";
/// The letters that must be encoded in a query, or in a part of a path.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns one line of at most `most` letters.
pub(super) fn title(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|letter| is_plain(*letter)).collect();
    let line = line.trim();
    match line.chars().count() {
        0 => UNTITLED.to_owned(),
        count if count > most => line.chars().take(most - 1).chain(['…']).collect(),
        _ => line.to_owned(),
    }
}

/// Returns lines that are short enough for every forge.
pub(super) fn body(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let kept: String = text.chars().filter(|letter| matches!(letter, '\n' | '\t') || is_plain(*letter)).collect();
    bounded(kept)
}

/// Returns the same without GitLab's quick actions: a line of a description that begins with a slash is a command, such as
/// `/merge`.
pub(super) fn inert_body(text: &str) -> String {
    let escaped = body(text).split('\n').map(inert).collect::<Vec<_>>().join("\n");
    bounded(escaped)
}

fn inert(line: &str) -> String {
    let bare = line.trim_start();
    if bare.starts_with('/') { format!("{}\\{bare}", &line[..line.len() - bare.len()]) } else { line.to_owned() }
}

fn bounded(text: String) -> String {
    if text.chars().count() <= BODY {
        return text;
    }
    text.chars().take(BODY - CUT.chars().count()).chain(CUT.chars()).collect()
}

/// Returns whether a letter is neither a control character nor changes the text direction.
fn is_plain(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Encodes a value of a query, or one part of a path.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Returns a forge's text as one short line.
pub(super) fn quoted(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|letter| is_plain(*letter)).take(QUOTED).collect()
}

pub(super) fn check_branch(name: &str) -> Result<(), ForgeError> {
    Branch::new(name).map(drop).map_err(|_| ForgeError::BadBranch { name: name.chars().take(100).collect() })
}

pub(super) fn check_commit(name: &str) -> Result<(), ForgeError> {
    Commit::new(name).map(drop).map_err(|_| ForgeError::BadCommit { name: name.chars().take(100).collect() })
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
            assert_eq!(title(text, 256), expected);
        }
        assert_eq!(title(&"ä".repeat(300), 256).chars().count(), 256);
        assert_eq!(title("abcdef", 4), "abc…");
        assert_eq!(title("abcd", 4), "abcd");
    }

    #[test]
    fn bodies_keep_their_lines_and_fit() {
        assert_eq!(body("a\r\n\tb\x1b[31m\0\n"), "a\n\tb[31m\n");
        let long = body(&"ä".repeat(70_000));
        assert_eq!(long.chars().count(), BODY);
        assert!(long.ends_with(CUT));
    }

    #[test]
    fn no_line_is_a_command() {
        assert_eq!(inert_body("see\n/merge\n  /approve @eve\na/b\n"), "see\n\\/merge\n  \\/approve @eve\na/b\n");
        assert_eq!(inert_body("/\u{202e}merge\n\0/close"), "\\/merge\n\\/close");
        assert!(inert_body(&"/\n".repeat(BODY / 2)).chars().count() <= BODY);
    }

    proptest! {
        #[test]
        fn whatever_it_is_it_fits(text in any::<String>(), most in 20..300_usize) {
            let title = title(&text, most);
            prop_assert!((1..=most).contains(&title.chars().count()));
            prop_assert!(title.chars().all(is_plain));
            prop_assert!(inert_body(&text).lines().all(|line| !line.trim_start().starts_with('/')));
        }
    }
}
