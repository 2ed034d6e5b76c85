//! The living processes of a scenario. Their environment or their executable identifies them, so that processes of other tests
//! and programs do not count.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The limit for the exit of a process: milliseconds in practice, with a large margin for a busy machine.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A process that has not ended.
#[derive(Debug)]
pub struct LivingProcess {
    pub pid: i32,
    pub command: String,
}

/// Returns the living processes with this recorder in their environment, or with this executable.
pub fn find_processes(recorder: &Path, program: &Path) -> Vec<LivingProcess> {
    let entries = fs::read_dir("/proc").map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let pids = entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut processes = Vec::new();
    for pid in pids {
        let process_directory = Path::new("/proc").join(pid.to_string());
        // The environment of another user is unreadable, and that of a dead process is empty.
        let environment = fs::read(process_directory.join("environ")).unwrap_or_default();
        let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        let recorder = [b"CRASH_RECORDER=".as_slice(), recorder.as_os_str().as_bytes()].concat();
        let is_match = variables.iter().any(|variable| **variable == *recorder)
            || fs::read_link(process_directory.join("exe")).is_ok_and(|file| file == program);
        if is_match {
            let command = fs::read(process_directory.join("cmdline")).unwrap_or_default();
            processes.push(LivingProcess { pid, command: String::from_utf8_lossy(&command).replace('\0', " ") });
        }
    }
    processes
}

/// Waits until all processes have ended, and returns those that are alive after the timeout.
pub fn await_no_processes(timeout: Duration, find_remaining: impl Fn() -> Vec<LivingProcess>) -> Vec<LivingProcess> {
    let deadline = Instant::now() + timeout;
    let has_ended_in_time =
        |process: &LivingProcess| await_process_end(process.pid, deadline.saturating_duration_since(Instant::now()));
    loop {
        let remaining = find_remaining();
        if remaining.is_empty() || !remaining.iter().all(has_ended_in_time) {
            return remaining;
        }
        // All of these have ended, but they may have started others.
    }
}

/// Waits for the end of a process. Returns whether it has ended within the timeout.
pub fn await_process_end(pid: i32, timeout: Duration) -> bool {
    let pid = Pid::from_raw(pid).expect("a number from /proc");
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}
