//! The living processes of a scenario. They are identified by their environment or their executable, which is the scenario's own;
//! so other processes of this machine, and of tests that run beside this one, do not count.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Generous for a busy machine; the work itself takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pub command: String,
}

/// Returns the living processes of a scenario with this recorder, or with this file as their program.
pub fn alive(recorder: &Path, program: &Path) -> Vec<Process> {
    let entries = fs::read_dir("/proc").map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let pids = entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found = Vec::new();
    for pid in pids {
        let of = Path::new("/proc").join(pid.to_string());
        // An unreadable one belongs to another user; an empty one is dead.
        let environment = fs::read(of.join("environ")).unwrap_or_default();
        let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        let recorder = [b"CRASH_RECORDER=".as_slice(), recorder.as_os_str().as_bytes()].concat();
        let is_ours = variables.iter().any(|variable| **variable == *recorder)
            || fs::read_link(of.join("exe")).is_ok_and(|file| file == program);
        if is_ours {
            let command = fs::read(of.join("cmdline")).unwrap_or_default();
            found.push(Process { pid, command: String::from_utf8_lossy(&command).replace('\0', " ") });
        }
    }
    found
}

/// Waits until no process is left, at most for this time, and returns the remaining ones.
pub fn await_none(patience: Duration, look: impl Fn() -> Vec<Process>) -> Vec<Process> {
    let give_up = Instant::now() + patience;
    let ends = |process: &Process| await_end(process.pid, give_up.saturating_duration_since(Instant::now()));
    loop {
        let left = look();
        if left.is_empty() || !left.iter().all(ends) {
            return left;
        }
        // All of these have ended; they may have started others before.
    }
}

/// Waits for the end of any process. Returns whether it ended.
pub fn await_end(pid: i32, patience: Duration) -> bool {
    let pid = Pid::from_raw(pid).expect("a number from /proc");
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let patience = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&patience)).is_ok_and(|ready| ready > 0)
}
