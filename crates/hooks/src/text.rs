//! Output as text: without what only a terminal understands, and no longer than wanted.

use std::iter::Peekable;
use std::str::Chars;

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

/// The longest line that says how much is missing.
const MARK: usize = "\n[18446744073709551615 bytes left out]\n".len();

/// At most so many bytes: whole lines from the start and from the end where they fit, and between them how much is missing.
/// Where there is not even room to say that, as much of the start as fits.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(MARK) else { return text[..text.floor_char_boundary(most)].to_owned() };
    let head = &text[..text.floor_char_boundary(room / 2)];
    let head = head.rfind('\n').map_or(head, |end| &head[..=end]);
    let tail = &text[text.ceil_char_boundary(text.len() - room / 2)..];
    let tail = tail.find('\n').map_or(tail, |start| &tail[start + 1..]);
    let between = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    let missing = missing(&text[head.len()..text.len() - tail.len()]);
    format!("{head}{between}[{missing} bytes left out]\n{tail}")
}

/// How many bytes a part stands for that is left out: it may say itself that some are missing.
fn missing(part: &str) -> u64 {
    let said = |line: &str| line.strip_prefix('[')?.strip_suffix(" bytes left out]")?.parse::<u64>().ok();
    part.lines().filter_map(said).fold(part.len() as u64, u64::saturating_add)
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
    }

    #[test]
    fn what_is_not_closed_swallows_no_text() {
        assert_eq!(clean("\x1b]0;title\nall of it"), "\nall of it");
        assert_eq!(clean("\x1b[31\nred"), "\nred");
        assert_eq!(clean("\x1b[31\u{e9}t\u{e9}"), "\u{e9}t\u{e9}");
        assert_eq!(clean("bold\x1b(B\x1b[m off"), "bold off");
        assert_eq!(clean("\x1b\nx"), "\nx");
    }

    #[test]
    fn long_text_keeps_its_ends() {
        assert_eq!(cut("short", 5), "short");
        let lines: String = (0..100).map(|number| format!("line {number}\n")).collect();
        assert_eq!(cut(&lines, 60), "line 0\n[775 bytes left out]\nline 99\n");
        let twice = lines.replace("line 50\n", "[1000 bytes left out]\n");
        assert_eq!(cut(&twice, 60), "line 0\n[1789 bytes left out]\nline 99\n");
        assert_eq!(cut("\u{e4}\u{e4}\u{e4}", 3), "\u{e4}");
    }

    #[test]
    fn it_is_never_longer_than_wanted() {
        let text = "\u{fffd}".repeat(1000) + &"x\n".repeat(500);
        for most in 0..text.len() + 2 {
            assert!(cut(&text, most).len() <= most, "{most}");
        }
    }
}
