//! Reads from non-blocking pipes.

use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

/// Size of one read, and capacity of a pipe.
pub(crate) const PIPE_SIZE: usize = 64 * 1024;

/// Reads once into the spare capacity of a buffer, and closes the pipe at its end. Returns the number of bytes.
pub(crate) fn read_pipe_once(pipe: &mut Option<OwnedFd>, buffer: &mut Vec<u8>) -> usize {
    buffer.clear();
    let Some(open) = &*pipe else { return 0 };
    match rustix::io::read(open, spare_capacity(buffer)) {
        Ok(length) if length > 0 => length,
        Err(Errno::INTR | Errno::AGAIN) => 0,
        Ok(_) | Err(_) => {
            *pipe = None;
            0
        }
    }
}

/// Returns how many bytes are in a pipe.
pub(crate) fn count_waiting_bytes(pipe: &Option<OwnedFd>) -> usize {
    let waiting = pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok());
    waiting.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}
