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

/// Frames without the mark of the present log after which nothing more of it is expected: damage may have hit a mark.
const UNMARKED: u32 = 2;

/// The log beside a store.
pub(super) fn path_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Whether the log holds more than one commit beyond the frames that SQLite takes.
pub(super) fn has_lost_commits(store: &Path, taken_frames: u64) -> io::Result<bool> {
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
    let frame_length = FRAME_HEADER as u64 + u64::from(number(&header[8..12]));
    let (mut commits, mut unmarked) = (0, 0);
    let mut place = HEADER as u64 + taken_frames * frame_length;
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
    Ok(commits > 1)
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// Whether the header matches its own checksum. It is shorter than any sector, so a crash cannot tear it.
fn is_sound(header: &[u8; HEADER]) -> bool {
    let word: fn([u8; 4]) -> u32 = match number(&header[0..4]) {
        0x377f_0682 => u32::from_le_bytes,
        0x377f_0683 => u32::from_be_bytes,
        _ => return false,
    };
    let (mut one, mut two) = (0_u32, 0_u32);
    for pair in header[..24].chunks_exact(8) {
        let at = |place: usize| word(pair[place..place + 4].try_into().expect("four bytes"));
        one = one.wrapping_add(at(0)).wrapping_add(two);
        two = two.wrapping_add(at(4)).wrapping_add(one);
    }
    (one, two) == (number(&header[24..28]), number(&header[28..32]))
}
