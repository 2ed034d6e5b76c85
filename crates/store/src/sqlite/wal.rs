//! The write-ahead log, as far as SQLite does not tell about it.
//!
//! SQLite takes the log up to the first frame that does not match its checksum, for there a crash may have torn it. But
//! a crash tears one commit at most, and nobody was told that it is durable. More than one commit beyond that frame means
//! that acknowledged ones are damaged, and would be overwritten by the next that is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// How a log begins, by the way in which the words of its checksums are read.
const LITTLE_ENDIAN: u32 = 0x377f_0682;
const BIG_ENDIAN: u32 = 0x377f_0683;

/// Frames without the mark of the present log after which nothing more of it is expected: damage may have hit a mark.
const UNMARKED: u32 = 2;

/// What the names of the files beside a store end with: the log, its index, and what SQLite looks for in its place.
pub(super) const LOG: &str = "-wal";
pub(super) const INDEX: &str = "-shm";
pub(super) const JOURNAL: &str = "-journal";

/// Returns where the write-ahead log of a store is.
pub fn path_of(store: &Path) -> PathBuf {
    beside(store, LOG)
}

/// A file beside a store.
pub(super) fn beside(store: &Path, end: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Whether the log holds more than one commit beyond the frames that SQLite takes or would take.
pub(super) fn has_lost_commits(store: &Path, taken_frames: u64) -> io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "it was seen to be a regular file before SQLite opened it")]
    let log = match File::open(path_of(store)) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER];
    match log.read_exact_at(&mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    if !is_sound(&header) {
        return Ok(true);
    }
    // Whoever is killed between writing a commit and telling the others leaves whole frames that SQLite does not take
    // before the log is opened anew. They are not damaged.
    Ok(commits_beyond(&log, &header, taken_frames) > 1
        && commits_beyond(&log, &header, whole_frames(&log, &header)) > 1)
}

fn frame_length(header: &[u8; HEADER]) -> usize {
    FRAME_HEADER + number(&header[8..12]) as usize
}

/// How many commits of the present log begin beyond so many frames; two are many.
fn commits_beyond(log: &File, header: &[u8; HEADER], frames: u64) -> u32 {
    let frame_length = frame_length(header) as u64;
    let (mut commits, mut unmarked) = (0, 0);
    let mut place = HEADER as u64 + frames * frame_length;
    while unmarked < UNMARKED && commits < 2 {
        let mut frame = [0; FRAME_HEADER];
        if log.read_exact_at(&mut frame, place).is_err() {
            break;
        }
        if frame[8..16] == header[16..24] {
            // The last frame of a commit names the length of the file.
            commits += u32::from(number(&frame[4..8]) != 0);
        } else {
            unmarked += 1;
        }
        place += frame_length;
    }
    commits
}

/// How many frames from the first on match their checksums.
fn whole_frames(log: &File, header: &[u8; HEADER]) -> u64 {
    let mut frame = vec![0; frame_length(header)];
    let mut sum = (number(&header[24..28]), number(&header[28..32]));
    for frames in 0.. {
        let place = HEADER as u64 + frames * frame.len() as u64;
        if log.read_exact_at(&mut frame, place).is_err() {
            return frames;
        }
        sum = summed(header, summed(header, sum, &frame[..8]), &frame[FRAME_HEADER..]);
        let marked = frame[8..16] == header[16..24];
        if !marked || sum != (number(&frame[16..20]), number(&frame[20..24])) {
            return frames;
        }
    }
    unreachable!("a file has an end")
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// Whether the header matches its own checksum. It is shorter than any sector, so a crash cannot tear it.
fn is_sound(header: &[u8; HEADER]) -> bool {
    matches!(number(&header[0..4]), BIG_ENDIAN | LITTLE_ENDIAN)
        && summed(header, (0, 0), &header[..24]) == (number(&header[24..28]), number(&header[28..32]))
}

/// SQLite's checksum, continued. The log's header says how its words are read.
fn summed(header: &[u8; HEADER], (mut one, mut two): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = if number(&header[0..4]) == BIG_ENDIAN { u32::from_be_bytes } else { u32::from_le_bytes };
    for pair in bytes.chunks_exact(8) {
        let at = |place: usize| word(pair[place..place + 4].try_into().expect("four bytes"));
        one = one.wrapping_add(at(0)).wrapping_add(two);
        two = two.wrapping_add(at(4)).wrapping_add(one);
    }
    (one, two)
}

#[cfg(test)]
mod tests {
    use windlass_engine::{Authority, Command, NewTask, Origin, Rules, Timestamp};

    use super::*;
    use crate::{Lifetime, Sqlite, Store};

    /// As after a writer was killed between its last frame and telling the others about it.
    #[test]
    fn whole_frames_that_nobody_was_told_of_are_not_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let mut store = Sqlite::create(&path, Lifetime::Service).unwrap();
        let at = Timestamp::from_millis(0);
        let origin = Origin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        let task = Command::CreateTask(NewTask { goal: "one".to_owned(), ..NewTask::default() });
        for nonce in 0..5 {
            store.execute(&Rules::default(), &origin, &task, nonce).unwrap();
        }
        assert!(!has_lost_commits(&path, 0).unwrap());
        let log = File::options().write(true).open(path_of(&path)).unwrap();
        log.write_all_at(b"!", (HEADER + FRAME_HEADER) as u64).unwrap();
        assert!(has_lost_commits(&path, 0).unwrap());
    }
}
