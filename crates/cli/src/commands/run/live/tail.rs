//! The last lines of a program's output, while it writes.
//!
//! Invariant: memory and work do not grow with the output; of a flood only its end is read.

use std::collections::VecDeque;

use windlass_hooks::clean_output;
use windlass_process::OutputStream;
use windlass_text as text;

/// The number of lines that are shown.
pub const MAX_SHOWN_LINES: usize = 3;
/// The bytes that are kept at the end of an unfinished line.
const MAX_OPEN_LINE_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub struct OutputTail {
    lines: VecDeque<String>,
    /// The unfinished line of each stream.
    open: [Vec<u8>; 2],
    /// The index of the stream that was written to last.
    last: usize,
}

impl OutputTail {
    pub fn append_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.last = usize::from(stream == OutputStream::Stderr);
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        // Blank lines are not shown, so a few more lines than needed are read.
        let most = MAX_SHOWN_LINES * 4 + 1;
        let mut pieces: Vec<&[u8]> = bytes.rsplitn(most + 1, is_end).collect();
        if pieces.len() > most {
            // The last piece of `rsplitn` is everything before these lines.
            pieces.pop();
            self.open[self.last].clear();
        }
        let unfinished = pieces.remove(0);
        for piece in pieces.into_iter().rev() {
            self.open[self.last].extend_from_slice(first_bytes(piece));
            let line = std::mem::take(&mut self.open[self.last]);
            self.push_line(&line);
        }
        let open = &mut self.open[self.last];
        open.extend_from_slice(last_bytes(unfinished, MAX_OPEN_LINE_BYTES));
        if open.len() > 2 * MAX_OPEN_LINE_BYTES {
            open.drain(..open.len() - MAX_OPEN_LINE_BYTES);
        }
    }

    fn push_line(&mut self, line: &[u8]) {
        let line = sanitize_line(line);
        if line.trim().is_empty() {
            return;
        }
        if self.lines.len() == MAX_SHOWN_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Returns the last lines, each at most `width` wide. Of an unfinished line the end is shown.
    pub fn last_lines(&self, width: usize) -> Vec<String> {
        let open = sanitize_line(&self.open[self.last]);
        let open = Some(fit_end(open.trim_end(), width)).filter(|open| !open.trim().is_empty());
        let whole = self.lines.iter().map(|line| text::fit_to_width(line, width));
        let all: Vec<String> = whole.chain(open).collect();
        all[all.len().saturating_sub(MAX_SHOWN_LINES)..].to_vec()
    }
}

fn first_bytes(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_OPEN_LINE_BYTES)]
}

fn last_bytes(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(most)..]
}

/// Returns the line without control characters.
fn sanitize_line(line: &[u8]) -> String {
    text::clean_line(clean_output(&String::from_utf8_lossy(line)).trim_end()).into_owned()
}

/// Returns the end of a single line, at most `width` wide.
fn fit_end(line: &str, width: usize) -> String {
    if text::display_width(line) <= width {
        return line.to_owned();
    }
    let mut used = 1;
    let from = line.char_indices().rev().take_while(|(_, letter)| {
        used += text::display_width(letter.encode_utf8(&mut [0; 4]));
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
        let mut tail = OutputTail::default();
        for piece in pieces {
            tail.append_output(OutputStream::Stdout, piece.as_bytes());
        }
        assert_eq!(tail.last_lines(width), expected, "{pieces:?}");
    }

    #[test]
    fn output_tail_shows_last_three_nonempty_lines() {
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
        let mut tail = OutputTail::default();
        for _ in 0..1000 {
            tail.append_output(OutputStream::Stdout, &[b'x'; 1000]);
        }
        assert!(tail.open[0].len() <= 2 * MAX_OPEN_LINE_BYTES);
        assert_eq!(tail.last_lines(4), ["…xxx"]);
    }

    #[test]
    fn output_tail_sanitizes_terminal_control_characters() {
        check(&["\x1b[2J\x1b]0;title\x07red\u{202e}\x08\n"], 40, &["red\\u{202e}"]);
        check(&["\x1b[3"], 40, &[]);
        check(&["a\tb\0c"], 40, &["a bc"]);
    }

    #[test]
    fn streams_do_not_mix() {
        let mut tail = OutputTail::default();
        tail.append_output(OutputStream::Stdout, b"to be ");
        tail.append_output(OutputStream::Stderr, b"warning\n");
        tail.append_output(OutputStream::Stdout, b"continued\n");
        assert_eq!(tail.last_lines(40), ["warning", "to be continued"]);
    }
}
