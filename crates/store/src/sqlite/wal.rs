//! Checks of the write-ahead log that SQLite does not make.
//!
//! SQLite takes the log up to the first frame that does not match its checksum, since a crash may have torn it there. But a crash
//! tears one commit at most, which was not acknowledged. More than one commit beyond that frame means that acknowledged commits are
//! damaged, and the next write would overwrite them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER_SIZE: usize = 32;
const FRAME_HEADER_SIZE: usize = 24;

/// First word of a log. It determines the byte order of its checksums.
const LITTLE_ENDIAN_MAGIC: u32 = 0x377f_0682;
const BIG_ENDIAN_MAGIC: u32 = 0x377f_0683;

/// After so many frames without the salt of the present log, no more of its frames follow: damage may have hit one salt.
const MAX_UNMARKED_FRAMES: u32 = 2;

/// Suffixes of the files beside a store: the log, its index, and the rollback journal.
pub(super) const LOG_SUFFIX: &str = "-wal";
pub(super) const INDEX_SUFFIX: &str = "-shm";
pub(super) const JOURNAL_SUFFIX: &str = "-journal";

/// Returns the path of a store's write-ahead log.
pub fn wal_path(store: &Path) -> PathBuf {
    companion_path(store, LOG_SUFFIX)
}

/// Returns the path of a file beside a store.
pub(super) fn companion_path(store: &Path, end: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Returns whether the log holds more than one commit beyond the frames that SQLite takes or would take.
pub(super) fn has_lost_commits(store: &Path, taken_frames: u64) -> io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "it was seen to be a regular file before SQLite opened it")]
    let log = match File::open(wal_path(store)) {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER_SIZE];
    match log.read_exact_at(&mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    if !is_header_sound(&header) {
        return Ok(true);
    }
    // A process that is killed between its last frame and the update of the index leaves whole frames that SQLite takes only after
    // the log is opened anew. They are not damaged.
    Ok(count_commits_beyond(&log, &header, taken_frames) > 1
        && count_commits_beyond(&log, &header, count_whole_frames(&log, &header)) > 1)
}

fn frame_length(header: &[u8; HEADER_SIZE]) -> usize {
    FRAME_HEADER_SIZE + read_big_endian(&header[8..12]) as usize
}

/// Counts the commits of the present log beyond so many frames, up to two.
fn count_commits_beyond(log: &File, header: &[u8; HEADER_SIZE], frames: u64) -> u32 {
    let frame_length = frame_length(header) as u64;
    let (mut commits, mut unmarked) = (0, 0);
    let mut place = HEADER_SIZE as u64 + frames * frame_length;
    while unmarked < MAX_UNMARKED_FRAMES && commits < 2 {
        let mut frame = [0; FRAME_HEADER_SIZE];
        if log.read_exact_at(&mut frame, place).is_err() {
            break;
        }
        if frame[8..16] == header[16..24] {
            // The last frame of a commit holds the length of the file.
            commits += u32::from(read_big_endian(&frame[4..8]) != 0);
        } else {
            unmarked += 1;
        }
        place += frame_length;
    }
    commits
}

/// Counts the frames from the first on that match their checksums.
fn count_whole_frames(log: &File, header: &[u8; HEADER_SIZE]) -> u64 {
    let mut frame = vec![0; frame_length(header)];
    let mut sum = (read_big_endian(&header[24..28]), read_big_endian(&header[28..32]));
    for frames in 0.. {
        let place = HEADER_SIZE as u64 + frames * frame.len() as u64;
        if log.read_exact_at(&mut frame, place).is_err() {
            return frames;
        }
        sum = extend_checksum(header, extend_checksum(header, sum, &frame[..8]), &frame[FRAME_HEADER_SIZE..]);
        let marked = frame[8..16] == header[16..24];
        if !marked || sum != (read_big_endian(&frame[16..20]), read_big_endian(&frame[20..24])) {
            return frames;
        }
    }
    unreachable!("a file has an end")
}

fn read_big_endian(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// Returns whether the header matches its own checksum. It is shorter than any sector, so a crash cannot tear it.
fn is_header_sound(header: &[u8; HEADER_SIZE]) -> bool {
    matches!(number(&header[0..4]), BIG_ENDIAN | LITTLE_ENDIAN)
        && extend_checksum(header, (0, 0), &header[..24])
            == (read_big_endian(&header[24..28]), read_big_endian(&header[28..32]))
}

/// Continues SQLite's checksum. The log's header determines the byte order.
fn extend_checksum(header: &[u8; HEADER_SIZE], (mut one, mut two): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let word = if read_big_endian(&header[0..4]) == BIG_ENDIAN_MAGIC { u32::from_be_bytes } else { u32::from_le_bytes };
    for pair in bytes.chunks_exact(8) {
        let at = |place: usize| word(pair[place..place + 4].try_into().expect("four bytes"));
        one = one.wrapping_add(at(0)).wrapping_add(two);
        two = two.wrapping_add(at(4)).wrapping_add(one);
    }
    (one, two)
}

#[cfg(test)]
mod tests {
    use windlass_engine::{Authority, Command, CommandOrigin, EngineRules, NewTask, Timestamp};

    use super::*;
    use crate::{Lifetime, SqliteStore, Store};

    /// Imitates a writer that was killed between its last frame and the update of the index.
    #[test]
    fn unindexed_whole_frames_are_not_lost_commits() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let mut store = SqliteStore::create(&path, Lifetime::Service).unwrap();
        let at = Timestamp::from_millis(0);
        let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        let task = Command::CreateTask(NewTask { goal: "one".to_owned(), ..NewTask::default() });
        for nonce in 0..5 {
            store.execute_command(&EngineRules::default(), &origin, &task, nonce).unwrap();
        }
        assert!(!has_lost_commits(&path, 0).unwrap());
        let log = File::options().write(true).open(wal_path(&path)).unwrap();
        log.write_all_at(b"!", (HEADER_SIZE + FRAME_HEADER_SIZE) as u64).unwrap();
        assert!(has_lost_commits(&path, 0).unwrap());
    }
}
