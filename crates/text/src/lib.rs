//! Cleans untrusted text for display in a terminal.
//!
//! Agents and unknown authors write goals, labels, results and hook output. A terminal obeys escape sequences, and invisible or
//! direction-changing characters mislead a reader. This crate makes them visible and inert.

#[cfg(any(test, fuzzing))]
pub mod laws;
mod line_splitter;

use std::borrow::Cow;
use std::fmt::Write;

pub use line_splitter::LineSplitter;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns whether a character changes how other text is shown, or cannot be seen at all.
pub fn is_unsafe_character(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn escape_unsafe(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(|c| is_unsafe_character(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if keep(c) || !is_unsafe_character(c) => cleaned.push(c),
            '\n' => cleaned.push('⏎'),
            '\t' => cleaned.push(' '),
            c => write!(cleaned, "\\u{{{:x}}}", u32::from(c)).expect("a string takes all text"),
        }
    }
    Cow::Owned(cleaned)
}

/// Returns text as one line.
pub fn clean_line(text: &str) -> Cow<'_, str> {
    escape_unsafe(text, |_| false)
}

/// Returns text that may have several lines.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    escape_unsafe(text, |c| c == '\n' || c == '\t')
}

/// Escapes every unsafe character in JSON text.
pub fn clean_json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe_character) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe_character(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes all text");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns text as one line of at most `width` columns. `…` marks a cut.
pub fn fit_to_width(text: &str, width: usize) -> String {
    let text = clean_line(text);
    if text.width() <= width {
        return text.into_owned();
    }
    if width == 0 {
        return String::new();
    }
    let mut used = 1;
    let kept = text.chars().take_while(|c| {
        used += column_width(*c);
        used <= width
    });
    kept.chain(['…']).collect()
}

/// Returns the maximum number of columns that a character adds to the text before it.
fn column_width(c: char) -> usize {
    // A variation selector makes a wide emoji of the character before it.
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// Breaks text into rows: the first at most `first` columns wide, the others `rest`. Words stay whole where they fit.
pub fn wrap_to_width(text: &str, first: usize, rest: usize) -> Vec<String> {
    let text = clean_line(text);
    let mut rows = vec![String::new()];
    let (mut room, rest) = (first.max(2), rest.max(2));
    for word in text.split_inclusive(' ') {
        // The blank after a word needs no column of its own.
        let width = word.trim_end().width();
        if width > room && width <= rest {
            rows.push(String::new());
            room = rest;
        }
        for letter in word.chars() {
            let wide = column_width(letter);
            if letter == ' ' && room == 0 {
                continue;
            }
            if wide > room {
                rows.push(String::new());
                room = rest;
            }
            rows.last_mut().expect("there is a first one").push(letter);
            room = room.saturating_sub(wide);
        }
    }
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

/// Returns how many columns a text takes on a terminal.
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// Pads text with blanks to `width` columns.
pub fn pad_to_width(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(clean_line("a\u{1b}[31mred\u{9b}0m"), "a\\u{1b}[31mred\\u{9b}0m");
        assert_eq!(clean_line("two\nlines\tand\r"), "two⏎lines and\\u{d}");
        assert_eq!(clean_lines("two\nlines"), "two\nlines");
        assert_eq!(clean_line("abc\u{202e}def"), "abc\\u{202e}def");
        assert_eq!(clean_line("\u{ad}\u{61c}\u{3164}"), "\\u{ad}\\u{61c}\\u{3164}");
        assert!(matches!(clean_line("plain ünïcode 漢字"), Cow::Borrowed(_)));
    }

    #[test]
    fn cleaned_json_parses_to_the_same_value() {
        let text = serde_json::to_string("a\u{9b}b\u{202e}c\u{e0041}").unwrap();
        let shown = clean_json(&text);
        assert!(shown.is_ascii());
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "a\u{9b}b\u{202e}c\u{e0041}");
    }

    #[test]
    fn long_text_is_cut_by_columns() {
        assert_eq!(fit_to_width("abcdef", 6), "abcdef");
        assert_eq!(fit_to_width("abcdefg", 6), "abcde…");
        assert_eq!(fit_to_width("漢字漢字", 5), "漢字…");
        assert_eq!(fit_to_width("☺\u{fe0f}☺\u{fe0f}☺", 4), "☺\u{fe0f}☺…");
        assert_eq!((fit_to_width("abc", 1), fit_to_width("abc", 0)), ("…".to_owned(), String::new()));
    }

    #[test]
    fn long_text_is_broken_between_words() {
        let check = |text: &str, first, rest, expected: &[&str]| {
            assert_eq!(wrap_to_width(text, first, rest), expected, "{text}")
        };
        check("", 10, 8, &[""]);
        check("a few words", 11, 8, &["a few words"]);
        check("a few words of it", 11, 8, &["a few words", "of it"]);
        check("a few words of it", 10, 8, &["a few", "words of", "it"]);
        check("T1  two blanks", 6, 6, &["T1", "two", "blanks"]);
        check("a-word-without-end so", 8, 6, &["a-word-w", "ithout", "-end", "so"]);
        check("x a-word-without-end", 4, 6, &["x a-", "word-w", "ithout", "-end"]);
        check("漢字漢字 漢", 5, 4, &["漢字", "漢字", "漢"]);
        check("two\nlines\u{1b}[2J", 20, 20, &["two⏎lines\\u{1b}[2J"]);
        check("abc", 0, 0, &["ab", "c"]);
        let long = "some words and averyveryverylongone ".repeat(20);
        for width in 2..50 {
            let rows = wrap_to_width(&long, width, width - 1);
            assert!(
                rows.iter()
                    .enumerate()
                    .all(|(at, row)| display_width(row) <= if at == 0 { width } else { (width - 1).max(2) })
            );
            assert_eq!(rows.concat().replace(' ', ""), long.replace(' ', ""));
        }
    }
}
