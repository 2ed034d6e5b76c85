//! Lines of a stream, each at most as long as a message.
//!
//! Invariants:
//! - Memory is bounded by [`LONGEST`]: the rest of a longer line is discarded while it is read.
//! - A read that is dropped half way loses nothing.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::message::MAX_MESSAGE_BYTES;

/// Capacity of the buffer that is kept between lines.
const LINE_BUFFER_CAPACITY: usize = 64 * 1024;

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum LineRead {
    /// A whole line, in [`LineReader::current_line`].
    Whole,
    /// A line that was too long, and is discarded.
    TooLong,
    /// The end of the stream.
    End,
}

pub struct LineReader<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Whether the line was returned already.
    given: bool,
    /// Whether the rest of a line is being discarded.
    discarding: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(read: R) -> Self {
        Self {
            read: BufReader::with_capacity(LINE_BUFFER_CAPACITY, read),
            line: Vec::new(),
            given: false,
            discarding: false,
        }
    }

    pub fn current_line(&self) -> &[u8] {
        &self.line
    }

    /// Reads the next line. The last one may have no line end.
    pub async fn read_line(&mut self) -> LineRead {
        if self.given {
            self.given = false;
            self.line.clear();
            self.line.shrink_to(LINE_BUFFER_CAPACITY);
        }
        loop {
            // A stream with a read error is at its end: there is nothing else to do about it.
            let available = self.read.fill_buf().await.unwrap_or_default();
            if available.is_empty() {
                self.given = !self.line.is_empty();
                return if self.given { LineRead::Whole } else { LineRead::End };
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(available.len(), |end| end + 1);
            let discarding = self.discarding;
            let too_long = !discarding && self.line.len() + end.unwrap_or(length) > MAX_MESSAGE_BYTES;
            if too_long {
                self.line.clear();
                self.line.shrink_to(LINE_BUFFER_CAPACITY);
            } else if !discarding {
                self.line.extend_from_slice(&available[..length]);
            }
            self.read.consume(length);
            self.discarding = (discarding || too_long) && end.is_none();
            if too_long {
                return LineRead::TooLong;
            }
            if end.is_some() && !discarding {
                self.given = true;
                return LineRead::Whole;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all_lines(input: &[u8]) -> Vec<(LineRead, usize)> {
        let runtime = crate::server::build_runtime().unwrap();
        runtime.block_on(async {
            let mut lines = LineReader::new(input);
            let mut found = Vec::new();
            loop {
                match lines.read_line().await {
                    LineRead::End => break found,
                    line => found.push((line, lines.current_line().len())),
                }
            }
        })
    }

    #[test]
    fn stream_is_split_into_lines() {
        let whole = |length| (LineRead::Whole, length);
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"a\nbcd\n\n"), [whole(2), whole(4), whole(1)]);
        assert_eq!(lines(b"a\nlast"), [whole(2), whole(4)]);
    }

    #[test]
    fn line_that_is_too_long_is_reported_once_and_skipped() {
        for excess in [1, 2, LINE_BUFFER_CAPACITY, MAX_MESSAGE_BYTES] {
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
