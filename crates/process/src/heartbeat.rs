//! The heartbeat of an owner: whether a process that is alive makes progress, or has been stopped.
//!
//! ```text
//!   HeartbeatThread ─ every few seconds ─► first line of the owner's file ◄─ heartbeat_age: any other process
//! ```
//!
//! The line holds the time of the last beat, by a clock that stands still while the machine sleeps. Every reader shares
//! that clock: a living owner was started after the last boot.
//!
//! Invariants:
//! - The line has a fixed length, and is overwritten in one write.
//! - An owner whose file has no such line never counts as stopped.
//!
//! Not here: what is done about a stopped owner, and after how long.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::owner_directory::OwnerDirectory;

/// Start of the heartbeat line. It is no number, so the line is no entry of a leader.
const HEARTBEAT_PREFIX: &str = "beat ";
const HEARTBEAT_DIGITS: usize = 16;

/// Access to the heartbeat line of one owner.
#[derive(Debug)]
pub struct HeartbeatFile(File);

impl HeartbeatFile {
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }

    fn write_heartbeat(&self) {
        // A write that fails now may succeed at the next beat.
        let _ = self.0.write_all_at(format_heartbeat_line(monotonic_now()).as_bytes(), 0);
    }
}

/// A thread that writes heartbeats for some owners until it is dropped.
#[derive(Debug)]
pub struct HeartbeatThread {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeartbeatThread {
    pub fn start(files: Vec<HeartbeatFile>, every: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let beat = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                files.iter().for_each(HeartbeatFile::write_heartbeat);
            }
        };
        let thread = thread::Builder::new().name("heartbeat".to_owned()).spawn(beat)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for HeartbeatThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Only a build that unwinds gets here after a panic in the thread, and such a thread writes no more.
            let _ = thread.join();
        }
    }
}

/// Writes the first heartbeat into an empty file.
pub(crate) fn write_first_heartbeat(mut file: &File) -> io::Result<()> {
    match file.metadata()?.len() {
        0 => file.write_all(format_heartbeat_line(monotonic_now()).as_bytes()),
        _ => Ok(()),
    }
}

/// Returns the time since the last heartbeat of an owner. `None` if it never wrote one.
pub fn heartbeat_age(directory: &Path, name: &str) -> Option<Duration> {
    let mut file = OwnerDirectory::open(directory).ok()?.open_owner_file(name)?;
    let mut text = [0; HEARTBEAT_PREFIX.len() + HEARTBEAT_DIGITS + 1];
    file.read_exact(&mut text).ok()?;
    let then = parse_heartbeat_line(std::str::from_utf8(&text).ok()?)?;
    Some(monotonic_now().saturating_sub(then))
}

fn format_heartbeat_line(at: Duration) -> String {
    format!("{HEARTBEAT_PREFIX}{:0HEARTBEAT_DIGITS$}\n", at.as_millis())
}

fn parse_heartbeat_line(line: &str) -> Option<Duration> {
    let digits = line.strip_prefix(HEARTBEAT_PREFIX)?.strip_suffix('\n')?;
    digits.parse().ok().map(Duration::from_millis)
}

/// Returns the time of a clock that stands still while the machine sleeps.
fn monotonic_now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnerLock;

    #[test]
    fn heartbeat_line_has_fixed_length() {
        for seconds in [0, 1, 86_400 * 365 * 1000] {
            let at = Duration::from_secs(seconds);
            assert_eq!(
                (format_heartbeat_line(at).len(), parse_heartbeat_line(&format_heartbeat_line(at))),
                (HEARTBEAT_PREFIX.len() + HEARTBEAT_DIGITS + 1, Some(at))
            );
        }
        assert_eq!(
            (parse_heartbeat_line("beat 12"), parse_heartbeat_line("77 1 2 here\n"), parse_heartbeat_line("beat x\n")),
            (None, None, None)
        );
    }

    #[test]
    fn heartbeat_thread_refreshes_heartbeat_age_of_live_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let owner_lock = OwnerLock::acquire(directory.path(), 7).expect("an owner");
        let then = heartbeat_age(directory.path(), owner_lock.name()).expect("it has a heartbeat from its beginning");
        let heartbeat =
            HeartbeatThread::start(vec![owner_lock.open_heartbeat().expect("its own file")], Duration::from_millis(1))
                .expect("a thread");
        // After a beat, the age is shorter than the first age plus the time that has passed.
        let began = std::time::Instant::now();
        loop {
            let passed = began.elapsed();
            if heartbeat_age(directory.path(), owner_lock.name()).expect("a heartbeat") < then + passed {
                break;
            }
            assert!(passed < Duration::from_secs(60));
            thread::yield_now();
        }
        drop(heartbeat);
        assert_eq!(heartbeat_age(directory.path(), "run-1-2-0123456789abcdef"), None);
    }
}
