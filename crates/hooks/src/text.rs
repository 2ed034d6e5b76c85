//! Output as text, without terminal control sequences.
//!
//! Not here: excerpts (`excerpt`).

use std::mem;

pub use crate::excerpt::excerpt_text;

/// Removes control sequences and control characters, except for line ends and tabs.
pub fn clean_output(text: &str) -> String {
    let (mut cleaner, mut cleaned) = (OutputCleaner::default(), String::with_capacity(text.len()));
    cleaner.take_text(text, &mut cleaned);
    cleaner.finish_into(&mut cleaned);
    cleaned
}

/// Cleans output that arrives in chunks, at any boundaries.
#[derive(Default)]
pub struct OutputCleaner {
    within: CleanerState,
    /// The beginning of a UTF-8 letter.
    held: Vec<u8>,
}

/// The construct that the next letter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CleanerState {
    #[default]
    Text,
    /// A carriage return, which may be the first half of a line end.
    Return,
    Escape,
    /// `[31m`.
    Parameters,
    /// `(B`.
    Charset,
    /// `]0;title`, up to its terminator.
    ControlString,
    /// The terminator may have begun.
    ControlStringEscape,
}

impl OutputCleaner {
    /// Takes a chunk, and returns its text.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let bytes = mem::take(&mut self.held);
        let (mut cleaned, mut chunks) = (String::with_capacity(bytes.len()), bytes.utf8_chunks().peekable());
        while let Some(chunk) = chunks.next() {
            self.take_text(chunk.valid(), &mut cleaned);
            match chunk.invalid() {
                [] => {}
                half if chunks.peek().is_none() && is_partial_letter(half) => self.held = half.to_vec(),
                _ => self.take_letter(char::REPLACEMENT_CHARACTER, &mut cleaned),
            }
        }
        cleaned
    }

    /// Returns the text that the end of input completes.
    pub fn finish(mut self) -> String {
        let mut cleaned = String::new();
        if !self.held.is_empty() {
            self.take_letter(char::REPLACEMENT_CHARACTER, &mut cleaned);
        }
        self.finish_into(&mut cleaned);
        cleaned
    }

    fn finish_into(self, cleaned: &mut String) {
        if self.within == CleanerState::Return {
            cleaned.push('\n');
        }
    }

    fn take_text(&mut self, text: &str, cleaned: &mut String) {
        let mut rest = text;
        loop {
            if self.within == CleanerState::Text {
                // Most text has no control characters.
                let (plain, other) = rest.split_at(rest.find(|letter| !is_plain_letter(letter)).unwrap_or(rest.len()));
                cleaned.push_str(plain);
                rest = other;
            }
            let Some(letter) = rest.chars().next() else { return };
            self.take_letter(letter, cleaned);
            rest = &rest[letter.len_utf8()..];
        }
    }

    fn take_letter(&mut self, letter: char, cleaned: &mut String) {
        use CleanerState::{Charset, ControlString, ControlStringEscape, Escape, Parameters, Return, Text};
        if self.within == Return {
            cleaned.push('\n');
        }
        self.within = match (self.within, letter) {
            (Return, '\n') => Text,
            (Escape, '[') => Parameters,
            (Escape, ']' | 'P' | '^' | '_' | 'X') => ControlString,
            (Escape | Charset, '\x20'..='\x2f') => Charset,
            (Escape, letter) if !letter.is_control() => Text,
            (Charset, '\x30'..='\x7e') => Text,
            (Parameters, '\x20'..='\x3f') => Parameters,
            (Parameters, '\x40'..='\x7e') => Text,
            (ControlString | ControlStringEscape, '\x07') | (ControlStringEscape, '\\') => Text,
            (ControlString | ControlStringEscape, '\x1b') => ControlStringEscape,
            (ControlString | ControlStringEscape, letter) if !matches!(letter, '\n' | '\r') => ControlString,
            // Text continues where an unterminated sequence should have ended.
            (_, '\x1b') => Escape,
            (_, '\r') => Return,
            (_, letter) => {
                if is_plain_letter(letter) {
                    cleaned.push(letter);
                }
                Text
            }
        };
    }
}

fn is_plain_letter(letter: char) -> bool {
    !letter.is_control() || matches!(letter, '\n' | '\t')
}

/// Returns whether more bytes could complete a letter.
fn is_partial_letter(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Joins the texts that are not empty.
pub(crate) fn join_nonempty(parts: &[&str], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_left() {
        assert_eq!(clean_output("\x1b[1;31mred\x1b[0m\r\nnext\ttab\x07"), "red\nnext\ttab");
        assert_eq!(clean_output("\x1b]0;title\x07a\x1b]8;;url\x1b\\b\x1bMc\0d\u{9b}e"), "abcde");
        assert_eq!(clean_output("10%\r20%\r"), "10%\n20%\n");
        assert_eq!(clean_output("\x1b["), "");
        for begins in [']', 'P', '^', '_', 'X'] {
            assert_eq!(clean_output(&format!("a\x1b{begins}q;secret words\x1b\\b")), "ab", "{begins}");
        }
    }

    #[test]
    fn unterminated_escape_sequence_does_not_swallow_text() {
        assert_eq!(clean_output("\x1b]0;title\nall of it"), "\nall of it");
        assert_eq!(clean_output("\x1b[31\nred"), "\nred");
        assert_eq!(clean_output("\x1b[31\u{e9}t\u{e9}"), "\u{e9}t\u{e9}");
        assert_eq!(clean_output("bold\x1b(B\x1b[m off"), "bold off");
        assert_eq!(clean_output("\x1b\nx"), "\nx");
    }

    #[test]
    fn pieces_are_cleaned_like_the_whole() {
        let whole = "a\x1b[1;31mb\r\nc\rd\x1b]0;title\x1b\\e\x1b(Bf\0\u{9b}é\u{1f600}\r".as_bytes();
        for bytes in [whole, b"\xff\xe2\x82\xe2\x82\xac\xf0\x9f"] {
            for size in 1..bytes.len() {
                let mut cleaner = OutputCleaner::default();
                let pieces: String = bytes.chunks(size).map(|piece| cleaner.push(piece)).collect();
                assert_eq!(pieces + &cleaner.finish(), clean_output(&String::from_utf8_lossy(bytes)), "{size}");
            }
        }
    }
}
