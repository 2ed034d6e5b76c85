//! Output as text: without what only a terminal understands, and no longer than wanted.

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

/// The rest of a control sequence: `[31m`, `]0;title` up to its end, or a single letter.
fn skip_sequence(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.next() {
        Some('[') => while letters.next().is_some_and(|letter| !('\x40'..='\x7e').contains(&letter)) {},
        Some(']' | 'P' | '^' | '_' | 'X') => {
            while let Some(letter) = letters.next() {
                match letter {
                    '\x07' => break,
                    '\x1b' if letters.next_if_eq(&'\\').is_some() => break,
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// At most so many bytes: whole lines from the start and from the end where they fit, and between them how much is missing.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let head = head.rfind('\n').map_or(head, |end| &head[..=end]);
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let tail = tail.find('\n').map_or(tail, |start| &tail[start + 1..]);
    let between = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{between}[{} bytes left out]\n{tail}", text.len() - head.len() - tail.len())
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
        assert_eq!(clean("\x1b]never closed"), "");
    }

    #[test]
    fn long_text_keeps_its_ends() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("one\ntwo\nthree\nfour\nfive\n", 12), "one\n[14 bytes left out]\nfive\n");
        assert_eq!(cut("ääääääää", 6), "ä\n[12 bytes left out]\nä");
        assert_eq!(cut("abcdefgh", 0), "[8 bytes left out]\n");
    }
}
