//! Bounded capture of output: the first bytes, the last bytes, and a file for all of it.
//!
//! Invariants:
//! - Memory is bounded by head and tail, whatever the program writes.
//! - Bytes are never changed. Omitted bytes are counted.
//! - A file is made only when memory does not suffice. It then holds every byte from the first up to its cap.
//! - A file that cannot be written is recorded and never fails a run.
//! - A file is always new, and only this user can read it: a file or link that is already there is neither followed nor changed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{CaptureLimits, OutputStream};

/// Limit for the numbers that are tried as a suffix of a file name.
const MAX_FILE_NAMES: u32 = 100;

/// The captured bytes of one output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    pub head: Vec<u8>,
    /// The last bytes of those that follow the head.
    pub tail: Vec<u8>,
    /// Number of bytes that the program wrote.
    pub total: u64,
    pub spilled: Option<SpillFile>,
}

/// The file with the output that memory could not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillFile {
    /// The planned path, with `-2`, `-3` and so on appended where it was taken.
    pub path: PathBuf,
    /// Number of bytes in the file, from the first on.
    pub kept: u64,
    /// The reason why the file has fewer bytes than it should.
    pub error: Option<String>,
}

impl SpillFile {
    /// Opens the file if it is still what was written: the program could have put something else in its place.
    pub fn open_unchanged(&self) -> io::Result<File> {
        // Opening a fifo must not wait for its other end.
        let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&self.path)?;
        let found = file.metadata()?;
        match found.is_file() && found.len() == self.kept {
            true => Ok(file),
            false => Err(io::Error::other("it is not what was written")),
        }
    }
}

impl CapturedOutput {
    /// Returns the number of bytes that are neither in the head nor in the tail.
    pub fn omitted_byte_count(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Returns all bytes, or head and tail with a line between them that counts the missing bytes.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        if self.tail.is_empty() && self.omitted_byte_count() == 0 {
            return Cow::Borrowed(&self.head);
        }
        let mut bytes = self.head.clone();
        if self.omitted_byte_count() > 0 {
            if !bytes.is_empty() && !bytes.ends_with(b"\n") {
                bytes.push(b'\n');
            }
            bytes.extend(format!("[{} bytes left out]\n", self.omitted_byte_count()).into_bytes());
        }
        bytes.extend(&self.tail);
        Cow::Owned(bytes)
    }

    /// Returns [`to_bytes`](Self::to_bytes) as text. Invalid UTF-8 is replaced.
    pub fn to_text_lossy(&self) -> String {
        String::from_utf8_lossy(&self.to_bytes()).into_owned()
    }
}

/// Collects the output of one stream.
pub(crate) struct OutputCapture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    limits: (usize, usize),
    file: SpillState,
}

/// State of the file for output that memory cannot hold.
enum SpillState {
    Dropped,
    /// The file is made when memory does not suffice.
    Planned {
        path: PathBuf,
        cap: u64,
    },
    Written {
        file: File,
        cap: u64,
        spilled: SpillFile,
    },
    Failed(SpillFile),
}

impl OutputCapture {
    pub fn new(capture: &CaptureLimits, stream: OutputStream) -> Self {
        let file = match &capture.spill {
            None => SpillState::Dropped,
            Some(spill) => {
                let mut path = spill.path.clone().into_os_string();
                path.push(match stream {
                    OutputStream::Stdout => ".stdout",
                    OutputStream::Stderr => ".stderr",
                });
                SpillState::Planned { path: path.into(), cap: spill.cap }
            }
        };
        let limits = (capture.head, capture.tail);
        Self { head: Vec::new(), tail: VecDeque::new(), total: 0, limits, file }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        if self.total > (self.limits.0 as u64).saturating_add(self.limits.1 as u64) {
            self.spill_chunk(chunk);
        }
        let (first, rest) = chunk.split_at(chunk.len().min(self.limits.0 - self.head.len()));
        self.head.extend_from_slice(first);
        let last = &rest[rest.len().saturating_sub(self.limits.1)..];
        let over = (self.tail.len() + last.len()).saturating_sub(self.limits.1);
        self.tail.drain(..over);
        self.tail.extend(last);
    }

    /// Writes a chunk to the file. Before the first chunk it writes all that memory still holds in full.
    fn spill_chunk(&mut self, chunk: &[u8]) {
        if let SpillState::Planned { path, cap } = &self.file {
            self.file = match create_record_file(path) {
                Ok((file, path)) => {
                    SpillState::Written { file, cap: *cap, spilled: SpillFile { path, kept: 0, error: None } }
                }
                Err(error) => {
                    let error = Some(error.to_string());
                    SpillState::Failed(SpillFile { path: path.clone(), kept: 0, error })
                }
            };
            let (first, second) = self.tail.as_slices();
            for part in [&self.head, first, second, chunk] {
                self.file.write_within_cap(part);
            }
        } else {
            self.file.write_within_cap(chunk);
        }
    }

    /// Returns the last bytes so far, and whether there were bytes before them.
    pub fn last_bytes(&self) -> (Vec<u8>, bool) {
        (self.tail.iter().copied().collect(), self.total > self.tail.len() as u64)
    }

    pub fn finish_capture(self) -> CapturedOutput {
        let spilled = match self.file {
            SpillState::Dropped | SpillState::Planned { .. } => None,
            SpillState::Written { spilled, .. } | SpillState::Failed(spilled) => Some(spilled),
        };
        CapturedOutput { head: self.head, tail: self.tail.into(), total: self.total, spilled }
    }
}

impl SpillState {
    fn write_within_cap(&mut self, bytes: &[u8]) {
        let Self::Written { file, cap, spilled } = self else { return };
        let room = usize::try_from(*cap - spilled.kept).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        match file.write_all(bytes) {
            Ok(()) => spilled.kept += bytes.len() as u64,
            Err(error) => {
                spilled.error = Some(error.to_string());
                spilled.kept = file.metadata().map_or(spilled.kept, |found| found.len());
                *self = Self::Failed(spilled.clone());
            }
        }
    }
}

/// Creates a new file that only this user can read, with a number appended if the name is taken.
pub fn create_record_file(planned: &Path) -> io::Result<(File, PathBuf)> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let mut path = planned.to_owned();
    if let Some(directory) = planned.parent().filter(|directory| !directory.exists()) {
        // Old records are removed together with their directory.
        let _ = std::fs::create_dir(directory);
    }
    for number in 2..=MAX_FILE_NAMES {
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (file, path)),
        }
        path = planned.to_owned();
        path.as_mut_os_string().push(format!("-{number}"));
    }
    options.open(&path).map(|file| (file, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpillTarget;

    fn check(head: usize, tail: usize, chunks: &[&str], expected: &str) {
        let mut keeper = OutputCapture::new(&CaptureLimits { head, tail, spill: None }, OutputStream::Stdout);
        for chunk in chunks {
            keeper.push(chunk.as_bytes());
        }
        let captured = keeper.finish_capture();
        assert_eq!(captured.to_text_lossy(), expected);
        assert_eq!(captured.total as usize, chunks.concat().len());
    }

    #[test]
    fn keeps_the_start_and_the_end() {
        check(4, 4, &[], "");
        check(4, 4, &["ab", "cd", "ef", "gh"], "abcdefgh");
        check(4, 4, &["abcdefgh"], "abcdefgh");
        check(4, 4, &["abcdefghi"], "abcd\n[1 bytes left out]\nfghi");
        check(4, 4, &["abc\n", "efghijklm"], "abc\n[5 bytes left out]\njklm");
        check(4, 4, &["abcdef", "g", "hijklmn", "o"], "abcd\n[7 bytes left out]\nlmno");
        check(0, 2, &["abc"], "[1 bytes left out]\nbc");
        check(2, 0, &["abc", "d"], "ab\n[2 bytes left out]\n");
        check(0, 0, &["abc"], "[3 bytes left out]\n");
    }

    #[test]
    fn spill_file_receives_output_from_start_up_to_cap() {
        let directory = tempfile::tempdir().expect("a directory");
        for (cap, expected) in [(100, "abcdefghijk"), (9, "abcdefghi"), (3, "abc"), (0, "")] {
            let spill = SpillTarget { path: directory.path().join(cap.to_string()), cap };
            let capture = CaptureLimits { head: 3, tail: 4, spill: Some(spill) };
            let mut keeper = OutputCapture::new(&capture, OutputStream::Stderr);
            keeper.push(b"abcde");
            keeper.push(b"fg");
            let path = directory.path().join(format!("{cap}.stderr"));
            assert!(!path.exists(), "all is still in memory");
            keeper.push(b"hi");
            keeper.push(b"jk");
            let spilled = keeper.finish_capture().spilled.expect("too much for memory");
            assert_eq!(std::fs::read_to_string(&path).expect("the file"), expected);
            assert_eq!(spilled, SpillFile { path, kept: expected.len() as u64, error: None });
        }
    }

    #[test]
    fn spill_file_opens_only_if_regular_and_unchanged() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let open = |name: &str| SpillFile { path: path(name), kept: 3, error: None }.open_unchanged();
        std::fs::write(path("whole"), "abc").expect("a file");
        std::fs::write(path("longer"), "abcd").expect("a file");
        std::os::unix::fs::symlink(path("whole"), path("link")).expect("a link");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).expect("a fifo");
        assert!(open("whole").is_ok());
        for other in ["longer", "link", "pipe", ".", "gone"] {
            assert!(open(other).is_err(), "{other}");
        }
    }

    #[test]
    fn spill_file_creation_or_write_error_is_recorded() {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let spilled = SpillFile { path: "/dev/full".into(), kept: 0, error: None };
        for file in [
            SpillState::Planned { path: "/nowhere/at/all".into(), cap: 10 },
            SpillState::Written { file: full, cap: 10, spilled },
        ] {
            let mut keeper = OutputCapture::new(&CaptureLimits { head: 1, tail: 1, spill: None }, OutputStream::Stdout);
            keeper.file = file;
            keeper.push(b"abc");
            keeper.push(b"def");
            let captured = keeper.finish_capture();
            let spilled = captured.spilled.expect("it was tried");
            assert!(spilled.error.is_some(), "{spilled:?}");
            assert_eq!((spilled.kept, captured.total), (0, 6));
        }
    }

    #[test]
    fn spill_file_takes_free_name_beside_existing_files_and_links() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("precious"), "precious").expect("a file");
        std::fs::hard_link(path("precious"), path("run.stdout")).expect("a second name");
        std::os::unix::fs::symlink(path("precious"), path("run.stdout-2")).expect("a link");
        std::os::unix::fs::symlink(path("nowhere"), path("run.stdout-3")).expect("a link");
        let spill = Some(SpillTarget { path: path("run"), cap: 10 });
        let mut keeper = OutputCapture::new(&CaptureLimits { head: 1, tail: 1, spill }, OutputStream::Stdout);
        keeper.push(b"abc");
        let spilled = keeper.finish_capture().spilled.expect("too much for memory");
        assert_eq!(spilled, SpillFile { path: path("run.stdout-4"), kept: 3, error: None });
        assert_eq!(std::fs::read(path("precious")).expect("it is there"), b"precious");
        assert!(!path("nowhere").exists());
        let mode = std::fs::metadata(&spilled.path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for number in 4..=MAX_FILE_NAMES {
            std::fs::write(path(&format!("run.stdout-{number}")), "").expect("a file");
        }
        assert!(create_record_file(&path("run.stdout")).is_err(), "there is an end to it");
    }
}
