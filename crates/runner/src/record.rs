//! The record of a turn: what the agent said and did, in words, in a file.
//!
//! Invariants:
//! - No secret is in it, however it was cut into pieces.
//! - It is bounded, and a file that cannot be written never fails a turn.
//! - What is written is there at once: a crash leaves the turn up to its last word.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use windlass_process::create_record;

/// The most that is kept of a turn.
const MOST: u64 = 64 * 1024 * 1024;

/// A file that is made with the first word.
pub(crate) struct TurnRecord {
    planned: PathBuf,
    file: Option<(File, PathBuf)>,
    written: u64,
    over: bool,
}

impl TurnRecord {
    pub fn new(planned: PathBuf) -> Self {
        Self { planned, file: None, written: 0, over: false }
    }

    /// Writes what is masked already.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.over || bytes.is_empty() {
            return;
        }
        if self.file.is_none() {
            self.file = create_record(&self.planned).ok();
        }
        let Some((file, _)) = &mut self.file else {
            self.over = true;
            return;
        };
        let room = usize::try_from(MOST - self.written).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        self.written += fits.len() as u64;
        self.over = file.write_all(fits).is_err();
        if fits.len() < bytes.len() {
            self.over = true;
            let _ = file.write_all(format!("\n[more than {} MiB: the rest is left out]\n", MOST >> 20).as_bytes());
        }
    }

    /// Where it is, if there is any.
    pub fn finish(self) -> Option<PathBuf> {
        self.file.map(|(_, path)| path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_made_with_the_first_word_and_has_an_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("7.turn");
        let mut record = TurnRecord::new(path.clone());
        record.write(b"");
        assert!(!path.exists());
        record.write(b"one ");
        assert_eq!(std::fs::read(&path).expect("it is there at once"), b"one ");
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..65 {
            record.write(&piece);
        }
        assert_eq!(record.finish(), Some(path.clone()));
        let text = std::fs::read(&path).expect("the file");
        assert!(text.len() < (MOST as usize) + 100 && text.ends_with(b"left out]\n"), "{}", text.len());
        assert_eq!(TurnRecord::new("/nowhere/at/all".into()).finish(), None);
        let mut lost = TurnRecord::new("/nowhere/at/all".into());
        lost.write(b"x");
        assert_eq!(lost.finish(), None);
    }
}
