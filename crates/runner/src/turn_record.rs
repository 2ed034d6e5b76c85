//! Record of a turn: a file with the output of the agent.
//!
//! Invariants:
//! - A record has no secret, however it was cut into pieces, and whatever stands between these. With a mask it is text without
//!   the control sequences of terminals.
//! - It is bounded, and a file that cannot be written never fails a turn.
//! - Output is written at once: a crash leaves the turn up to its last word, and still no secret.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use windlass_hooks::{MaskedDisplayStream, SecretMask};
use windlass_process::{OutputStream, create_record};

/// Maximum size of a record.
const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// Appends an extension to a file name.
pub(crate) fn with_extension(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    name.into()
}

/// A masked record of the output of one or two streams, which arrives in pieces.
pub(crate) struct TurnRecord<'m> {
    masked: [MaskedDisplayStream<'m>; 2],
    file: TurnRecordFile,
}

/// The file of a record, created with the first output.
struct TurnRecordFile {
    planned: PathBuf,
    created: Option<(File, PathBuf)>,
    written: u64,
    is_over: bool,
}

impl<'m> TurnRecord<'m> {
    pub fn new(mask: &'m SecretMask, planned: PathBuf) -> Self {
        let masked = [mask.open_display_stream(), mask.open_display_stream()];
        Self { masked, file: TurnRecordFile { planned, created: None, written: 0, is_over: false } }
    }

    /// Masks and records a piece of a stream. Returns what can be shown by now.
    pub fn push_masked(&mut self, stream: OutputStream, bytes: &[u8]) -> Vec<u8> {
        let sure = self.masked[usize::from(stream == OutputStream::Stderr)].push(bytes);
        self.file.write_masked(&sure);
        sure
    }

    /// Records the rest of the masked output. Returns the rest of standard output and of standard error, and the path of the
    /// record if there was any output.
    pub fn finish_record(mut self) -> ([Vec<u8>; 2], Option<PathBuf>) {
        let rest = self.masked.map(MaskedDisplayStream::finish);
        rest.iter().for_each(|rest| self.file.write_masked(rest));
        (rest, self.file.created.map(|(_, path)| path))
    }
}

impl TurnRecordFile {
    fn write_masked(&mut self, bytes: &[u8]) {
        if self.is_over || bytes.is_empty() {
            return;
        }
        if self.created.is_none() {
            self.created = create_record(&self.planned).ok();
        }
        let Some((file, _)) = &mut self.created else {
            self.is_over = true;
            return;
        };
        let room = usize::try_from(MAX_RECORD_BYTES - self.written).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        self.written += fits.len() as u64;
        self.is_over = file.write_all(fits).is_err();
        if fits.len() < bytes.len() {
            self.is_over = true;
            let _ = file
                .write_all(format!("\n[more than {} MiB: the rest is left out]\n", MAX_RECORD_BYTES >> 20).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_created_with_first_output_and_is_bounded() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("7.turn");
        let mask = SecretMask::default();
        let mut record = TurnRecord::new(&mask, path.clone());
        record.file.write_masked(b"");
        assert!(!path.exists());
        record.file.write_masked(b"one ");
        assert_eq!(std::fs::read(&path).expect("it is there at once"), b"one ");
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..65 {
            record.file.write_masked(&piece);
        }
        assert_eq!(record.finish_record().1, Some(path.clone()));
        let text = std::fs::read(&path).expect("the file");
        assert!(text.len() < (MAX_RECORD_BYTES as usize) + 100 && text.ends_with(b"left out]\n"), "{}", text.len());
        assert_eq!(TurnRecord::new(&mask, "/nowhere/at/all".into()).finish_record().1, None);
        let mut lost = TurnRecord::new(&mask, "/nowhere/at/all".into());
        lost.file.write_masked(b"x");
        assert_eq!(lost.finish_record().1, None);
    }
}
