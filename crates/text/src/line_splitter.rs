//! Lines out of text that arrives in pieces.

/// The longest line. A longer one is split.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// Splits bytes that arrive in pieces into lines. Of a line that was redrawn with carriage returns, the last state counts.
#[derive(Debug, Default)]
pub struct LineSplitter {
    open: Vec<u8>,
}

impl LineSplitter {
    /// Returns the lines that a piece has finished.
    pub fn push(&mut self, piece: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n').flat_map(|part| part.chunks(MAX_LINE_BYTES)) {
            self.open.extend_from_slice(part);
            if self.open.ends_with(b"\n") || self.open.len() >= MAX_LINE_BYTES {
                lines.push(self.take_line());
            }
        }
        lines
    }

    /// Returns the unfinished line, unless it is blank.
    pub fn finish(&mut self) -> Option<String> {
        Some(self.take_line()).filter(|line| !line.trim().is_empty())
    }

    fn take_line(&mut self) -> String {
        let bytes = std::mem::take(&mut self.open);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        line.rsplit('\r').next().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], lines: &[&str], rest: Option<&str>) {
        let mut splitter = LineSplitter::default();
        let split: Vec<String> = pieces.iter().flat_map(|piece| splitter.push(piece.as_bytes())).collect();
        assert_eq!(
            (split, splitter.finish()),
            (lines.iter().map(|&line| line.to_owned()).collect(), rest.map(str::to_owned))
        );
    }

    #[test]
    fn splitter_joins_pieces_and_returns_unfinished_line_at_end() {
        check(&["ha", "lf\nand", " half"], &["half"], Some("and half"));
        check(&["a\n\nb\n"], &["a", "", "b"], None);
        check(&["dos\r\n", " "], &["dos"], None);
        check(&["10%\r20%\r100%\ndone\n"], &["100%", "done"], None);
        let half = "é".repeat(MAX_LINE_BYTES / 2);
        check(&[&half, &half], &[&half, &half], None);
    }
}
