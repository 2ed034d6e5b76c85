//! Which processes of a scenario are alive. They are known by their environment or by the file that they run, which is
//! the scenario's own; so others of this machine, and of tests that run beside this one, do not count.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// A moment for a machine that is busy; the work itself takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which processes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    /// Those that may not survive the program at all: the supervisor, and what it supervises.
    Supervised,
}

#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pub command: String,
}

/// What is alive of a scenario with this directory, whose program is this file.
pub fn alive(directory: &Path, program: &Path, which: Which, direct: &[&str]) -> Vec<Process> {
    let entries = fs::read_dir("/proc").map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let pids = entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found = Vec::new();
    for pid in pids {
        let of = Path::new("/proc").join(pid.to_string());
        // Unreadable is somebody else's; empty is dead.
        let environment = fs::read(of.join("environ")).unwrap_or_default();
        let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        let recorder = [b"CRASH_RECORDER=".as_slice(), directory.as_os_str().as_bytes()].concat();
        let is_ours = variables.iter().any(|variable| variable.starts_with(&recorder))
            || fs::read_link(of.join("exe")).is_ok_and(|file| file == program);
        let hook = variables.iter().find_map(|variable| variable.strip_prefix(b"WINDLASS_HOOK="));
        let is_direct = hook.is_some_and(|hook| direct.iter().any(|name| name.as_bytes() == hook));
        if is_ours && (which == Which::All || !is_direct) {
            let command = fs::read(of.join("cmdline")).unwrap_or_default();
            found.push(Process { pid, command: String::from_utf8_lossy(&command).replace('\0', " ") });
        }
    }
    found
}

/// Waits until there is nothing of it, and returns what is left all the same.
pub fn await_none(look: impl Fn() -> Vec<Process>) -> Vec<Process> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let left = look();
        if left.is_empty() || Instant::now() > give_up {
            return left;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
