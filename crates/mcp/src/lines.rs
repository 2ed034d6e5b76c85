//! Lines of a stream, each at most as long as a message.
//!
//! Invariants:
//! - Memory is bounded by [`LONGEST`]: the rest of a longer line is discarded while it is read.
//! - A read that is dropped half way loses nothing.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::message::LONGEST;

/// Capacity of the buffer that is kept between lines.
const KEPT: usize = 64 * 1024;

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line, in [`Lines::line`].
    Whole,
    /// A line that was too long, and is discarded.
    TooLong,
    /// The end of the stream.
    End,
}

pub struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Whether the line was returned already.
    given: bool,
    /// Whether the rest of a line is being discarded.
    discarding: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(read: R) -> Self {
        Self { read: BufReader::with_capacity(KEPT, read), line: Vec::new(), given: false, discarding: false }
    }

    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// Reads the next line. The last one may have no line end.
    pub async fn next(&mut self) -> Line {
        if self.given {
            self.given = false;
            self.line.clear();
            self.line.shrink_to(KEPT);
        }
        loop {
            // A stream with a read error is at its end: there is nothing else to do about it.
            let available = self.read.fill_buf().await.unwrap_or_default();
            if available.is_empty() {
                self.given = !self.line.is_empty();
                return if self.given { Line::Whole } else { Line::End };
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(available.len(), |end| end + 1);
            let discarding = self.discarding;
            let too_long = !discarding && self.line.len() + end.unwrap_or(length) > LONGEST;
            if too_long {
                self.line.clear();
                self.line.shrink_to(KEPT);
            } else if !discarding {
                self.line.extend_from_slice(&available[..length]);
            }
            self.read.consume(length);
            self.discarding = (discarding || too_long) && end.is_none();
            if too_long {
                return Line::TooLong;
            }
            if end.is_some() && !discarding {
                self.given = true;
                return Line::Whole;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> Vec<(Line, usize)> {
        let runtime = crate::server::runtime().unwrap();
        runtime.block_on(async {
            let mut lines = Lines::new(input);
            let mut found = Vec::new();
            loop {
                match lines.next().await {
                    Line::End => break found,
                    line => found.push((line, lines.line().len())),
                }
            }
        })
    }

    #[test]
    fn lines_are_taken_apart() {
        let whole = |length| (Line::Whole, length);
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"a\nbcd\n\n"), [whole(2), whole(4), whole(1)]);
        assert_eq!(lines(b"a\nlast"), [whole(2), whole(4)]);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_leaves_the_others() {
        for excess in [1, 2, KEPT, LONGEST] {
            let mut input = vec![b'x'; LONGEST + excess];
            input.extend(b"\nnext\n");
            assert_eq!(lines(&input), [(Line::TooLong, 0), (Line::Whole, 5)], "{excess}");
        }
        let mut input = vec![b'x'; LONGEST];
        assert_eq!(lines(&input), [(Line::Whole, LONGEST)]);
        input.extend(b"\n\nx");
        assert_eq!(lines(&input), [(Line::Whole, LONGEST + 1), (Line::Whole, 1), (Line::Whole, 1)]);
        assert_eq!(lines(&vec![b'x'; 3 * LONGEST]), [(Line::TooLong, 0)]);
    }
}
