//! Output as text: without what only a terminal understands.
//!
//! Not here: making it shorter (`telling`).

use std::iter::Peekable;
use std::str::Chars;

pub use crate::telling::cut;

/// Takes control sequences and control characters out, but for line ends and tabs.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => skip_sequence(&mut letters),
            '\n' | '\t' => cleaned.push(letter),
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' => cleaned.push('\n'),
            _ if letter.is_control() => {}
            _ => cleaned.push(letter),
        }
    }
    cleaned
}

/// The rest of a control sequence: `[31m`, `(B`, `]0;title` up to its end, or a single letter. One that does not end where
/// it should ends where text goes on.
fn skip_sequence(letters: &mut Peekable<Chars<'_>>) {
    match letters.next_if(|letter| !letter.is_control()) {
        Some('[') => {
            while letters.next_if(|letter| ('\x20'..='\x3f').contains(letter)).is_some() {}
            letters.next_if(|letter| ('\x40'..='\x7e').contains(letter));
        }
        Some(']' | 'P' | '^' | '_' | 'X') => {
            while let Some(letter) = letters.next_if(|letter| !matches!(letter, '\n' | '\r')) {
                match letter {
                    '\x07' => break,
                    '\x1b' if letters.next_if_eq(&'\\').is_some() => break,
                    _ => {}
                }
            }
        }
        Some('\x20'..='\x2f') => {
            while letters.next_if(|letter| ('\x20'..='\x2f').contains(letter)).is_some() {}
            letters.next_if(|letter| ('\x30'..='\x7e').contains(letter));
        }
        _ => {}
    }
}

/// What there is of some texts, with something between them.
pub(crate) fn join(parts: &[&str], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_left() {
        assert_eq!(clean("\x1b[1;31mred\x1b[0m\r\nnext\ttab\x07"), "red\nnext\ttab");
        assert_eq!(clean("\x1b]0;title\x07a\x1b]8;;url\x1b\\b\x1bMc\0d\u{9b}e"), "abcde");
        assert_eq!(clean("10%\r20%\r"), "10%\n20%\n");
        assert_eq!(clean("\x1b["), "");
        for begins in [']', 'P', '^', '_', 'X'] {
            assert_eq!(clean(&format!("a\x1b{begins}q;secret words\x1b\\b")), "ab", "{begins}");
        }
    }

    #[test]
    fn what_is_not_closed_swallows_no_text() {
        assert_eq!(clean("\x1b]0;title\nall of it"), "\nall of it");
        assert_eq!(clean("\x1b[31\nred"), "\nred");
        assert_eq!(clean("\x1b[31\u{e9}t\u{e9}"), "\u{e9}t\u{e9}");
        assert_eq!(clean("bold\x1b(B\x1b[m off"), "bold off");
        assert_eq!(clean("\x1b\nx"), "\nx");
    }
}
