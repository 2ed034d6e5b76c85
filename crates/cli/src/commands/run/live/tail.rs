//! The last lines of a program's output, while it writes.
//!
//! Invariant: memory and work do not grow with the output; of a flood only its end is read.

use std::collections::VecDeque;

use windlass_hooks::clean;
use windlass_process::Stream;
use windlass_text as text;

/// The number of lines that are shown.
pub const LINES: usize = 3;
/// The bytes that are kept at the end of an unfinished line.
const LONG: usize = 4096;

#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<String>,
    /// The unfinished line of each stream.
    open: [Vec<u8>; 2],
    /// The index of the stream that was written to last.
    last: usize,
}

impl Tail {
    pub fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        self.last = usize::from(stream == Stream::Stderr);
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        // Blank lines are not shown, so a few more lines than needed are read.
        let most = LINES * 4 + 1;
        let mut pieces: Vec<&[u8]> = bytes.rsplitn(most + 1, is_end).collect();
        if pieces.len() > most {
            // The last piece of `rsplitn` is everything before these lines.
            pieces.pop();
            self.open[self.last].clear();
        }
        let unfinished = pieces.remove(0);
        for piece in pieces.into_iter().rev() {
            self.open[self.last].extend_from_slice(start(piece));
            let line = std::mem::take(&mut self.open[self.last]);
            self.keep(&line);
        }
        let open = &mut self.open[self.last];
        open.extend_from_slice(end(unfinished, LONG));
        if open.len() > 2 * LONG {
            open.drain(..open.len() - LONG);
        }
    }

    fn keep(&mut self, line: &[u8]) {
        let line = shown(line);
        if line.trim().is_empty() {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Returns the last lines, each at most `width` wide. Of an unfinished line the end is shown.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let open = shown(&self.open[self.last]);
        let open = Some(fit_end(open.trim_end(), width)).filter(|open| !open.trim().is_empty());
        let whole = self.lines.iter().map(|line| text::fit(line, width));
        let all: Vec<String> = whole.chain(open).collect();
        all[all.len().saturating_sub(LINES)..].to_vec()
    }
}

fn start(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(LONG)]
}

fn end(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(most)..]
}

/// Returns the line without control characters.
fn shown(line: &[u8]) -> String {
    text::line(clean(&String::from_utf8_lossy(line)).trim_end()).into_owned()
}

/// Returns the end of a single line, at most `width` wide.
fn fit_end(line: &str, width: usize) -> String {
    if text::width(line) <= width {
        return line.to_owned();
    }
    let mut used = 1;
    let from = line.char_indices().rev().take_while(|(_, letter)| {
        used += text::width(letter.encode_utf8(&mut [0; 4]));
        used <= width
    });
    let from = from.last().map_or(line.len(), |(place, _)| place);
    if width == 0 { String::new() } else { format!("…{}", &line[from..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], width: usize, expected: &[&str]) {
        let mut tail = Tail::default();
        for piece in pieces {
            tail.hear(Stream::Stdout, piece.as_bytes());
        }
        assert_eq!(tail.lines(width), expected, "{pieces:?}");
    }

    #[test]
    fn the_last_lines_are_shown() {
        check(&[], 20, &[]);
        check(&["half"], 20, &["half"]);
        check(&["half", " a line\nanother\n\n\nth"], 20, &["half a line", "another", "th"]);
        check(&["1\n2\n3\n4\n5\n"], 20, &["3", "4", "5"]);
        check(&["1\n", "2\n", "3\n", "4"], 20, &["2", "3", "4"]);
        check(&["10%\r20%\r30%"], 20, &["10%", "20%", "30%"]);
        check(&[&"x\n".repeat(10_000), "y\n"], 20, &["x", "x", "y"]);
        check(&["begun ", &"x\n".repeat(100)], 20, &["x", "x", "x"]);
    }

    #[test]
    fn long_lines_are_cut() {
        check(&["abcdefghij\n"], 6, &["abcde…"]);
        check(&["abcdefghij"], 6, &["…fghij"]);
        check(&["漢字漢字"], 5, &["…漢字"]);
        check(&["漢字漢字"], 4, &["…字"]);
        check(&["abc"], 0, &[]);
        let mut tail = Tail::default();
        for _ in 0..1000 {
            tail.hear(Stream::Stdout, &[b'x'; 1000]);
        }
        assert!(tail.open[0].len() <= 2 * LONG);
        assert_eq!(tail.lines(4), ["…xxx"]);
    }

    #[test]
    fn nothing_reaches_the_terminal_raw() {
        check(&["\x1b[2J\x1b]0;title\x07red\u{202e}\x08\n"], 40, &["red\\u{202e}"]);
        check(&["\x1b[3"], 40, &[]);
        check(&["a\tb\0c"], 40, &["a bc"]);
    }

    #[test]
    fn streams_do_not_mix() {
        let mut tail = Tail::default();
        tail.hear(Stream::Stdout, b"to be ");
        tail.hear(Stream::Stderr, b"warning\n");
        tail.hear(Stream::Stdout, b"continued\n");
        assert_eq!(tail.lines(40), ["warning", "to be continued"]);
    }
}
