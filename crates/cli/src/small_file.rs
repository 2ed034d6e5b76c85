//! Files that anybody may have put there: only regular ones are read, and only so much of them.
//!
//! A pipe in a file's place would be waited for, and a device has no end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The first bytes of a regular file, at most so many.
pub fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // One more than it should have, so that the end is seen without growing.
    let expected = usize::try_from(metadata.len().min(most)).unwrap_or_default() + 1;
    let mut bytes = Vec::with_capacity(expected);
    File::open(file)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first bytes of something that is open, at most so many.
pub fn read_from(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same as text; `None` for whatever is not there, not regular or not UTF-8.
pub fn text(file: &Path, most: u64) -> Option<String> {
    String::from_utf8(read(file, most).ok()?).ok()
}
