//! Processes as `/proc` shows them.
//!
//! Invariants:
//! - A snapshot may be outdated. A process is the same one only if it was read before and after its pidfd was opened.
//! - A process that cannot be read does not exist, for us.
//! - A mount over the files of a process is not trusted: the files must be the kernel's, and name the process themselves.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

use crate::file::read_kernel_file;
use crate::program::TAG_VARIABLE;

/// Limit for probing numbers one by one. For more, listing `/proc` is quicker.
const MAX_PROBED_PIDS: i32 = 512;

/// A process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessSnapshot {
    pub pid: Pid,
    pub parent: i32,
    pub session: i32,
    /// In clock ticks since the system started. Together with the number it identifies a process.
    pub start: u64,
    /// Only its status is left, for its parent to reap.
    pub dead: bool,
    /// It is stopped, dead, or held by the kernel: it runs no code of its own.
    pub is_at_rest: bool,
}

pub(super) fn read_process(pid: Pid) -> Option<ProcessSnapshot> {
    let mut buffer = [0; 1024];
    let (_, rest) = read_stat_fields(pid, &mut buffer)?;
    let mut fields = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let (dead, is_at_rest) = (matches!(state, "Z" | "X"), !matches!(state, "R" | "S"));
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(ProcessSnapshot { pid, parent, session, start, dead, is_at_rest })
}

/// Returns the name of a process, and the fields that follow it.
fn read_stat_fields(pid: Pid, buffer: &mut [u8]) -> Option<(&[u8], &[u8])> {
    let file = open_proc_file(&format!("/proc/{}/stat", pid.as_raw_nonzero()))?;
    if rustix::fs::fstatfs(&file).ok()?.f_type != rustix::fs::PROC_SUPER_MAGIC {
        return None;
    }
    let length = rustix::io::read(&file, &mut *buffer).ok()?;
    let named = buffer[..length].strip_prefix(format!("{} (", pid.as_raw_nonzero()).as_bytes())?;
    // The name may hold anything; the text after the last parenthesis does not.
    let end = named.iter().rposition(|byte| *byte == b')')?;
    Some((&named[..end], &named[end + 1..]))
}

/// Returns whether a process exists that `/proc` hides because it is another user's.
pub(super) fn belongs_to_other_user(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::PERM)
}

/// Returns whether `/proc` uses the same process numbers as we do: in a container it may be another namespace's.
fn is_own_proc() -> bool {
    static IS_OWN_PROC: OnceLock<bool> = OnceLock::new();
    *IS_OWN_PROC.get_or_init(|| {
        let me = getpid().as_raw_nonzero().to_string();
        let is_proc = rustix::fs::statfs("/proc").is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC);
        is_proc && std::fs::read_link("/proc/self").is_ok_and(|target| target == Path::new(&me))
    })
}

/// Reads a process that has this number for us.
pub(super) fn read_own_process(pid: Pid) -> Option<ProcessSnapshot> {
    if is_own_proc() { read_process(pid) } else { None }
}

/// Returns all processes but the known ones, or those of them that may have started after another one.
pub(super) fn list_processes(since: Option<Pid>, known: &HashSet<i32>) -> Vec<ProcessSnapshot> {
    if !is_own_proc() {
        return Vec::new();
    }
    let is_new = |pid: &Pid| !known.contains(&pid.as_raw_nonzero().get());
    match since.and_then(pids_born_since) {
        Some(numbers) => {
            // A probe is a hundred times cheaper than opening a missing file.
            let exists = |pid: &Pid| test_kill_process(*pid) != Err(Errno::SRCH);
            numbers.filter_map(Pid::from_raw).filter(is_new).filter(exists).filter_map(read_process).collect()
        }
        None => list_all_pids().filter(is_new).filter_map(read_process).collect(),
    }
}

/// Returns whether no process at all was started after this one.
pub(super) fn is_youngest_process(pid: Pid) -> bool {
    last_assigned_pid() == Some(pid.as_raw_nonzero().get())
}

/// Returns the numbers from a process to the youngest, if they are few and have not wrapped around in between.
fn pids_born_since(pid: Pid) -> Option<RangeInclusive<i32>> {
    let (first, last) = (pid.as_raw_nonzero().get(), last_assigned_pid()?);
    (first..=first.saturating_add(MAX_PROBED_PIDS)).contains(&last).then_some(first..=last)
}

/// Returns a lower bound for the number of process numbers.
pub(super) fn max_pid_count() -> u32 {
    static MAX_PID: OnceLock<u32> = OnceLock::new();
    let read = || {
        let text = String::from_utf8(read_kernel_file(Path::new("/proc/sys/kernel/pid_max")).ok()?).ok()?;
        text.trim().parse().ok()
    };
    *MAX_PID.get_or_init(|| read().unwrap_or(0))
}

/// Returns the number that the kernel assigned last.
pub(super) fn last_assigned_pid() -> Option<i32> {
    static LOADAVG: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let file = LOADAVG.get_or_init(|| open_proc_file("/proc/loadavg")).as_ref()?;
    let mut buffer = [0; 128];
    let length = rustix::io::pread(file, &mut buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

fn list_all_pids() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// Returns the tag that a process was started with.
pub(super) fn read_process_tag(pid: Pid) -> Option<String> {
    let environment = read_kernel_file(Path::new(&format!("/proc/{}/environ", pid.as_raw_nonzero()))).ok()?;
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(TAG_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

/// Returns the arguments that a process was started with.
pub(super) fn read_command_line(pid: Pid) -> Option<Vec<Vec<u8>>> {
    let text = read_kernel_file(Path::new(&format!("/proc/{}/cmdline", pid.as_raw_nonzero()))).ok()?;
    let words = text.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    Some(words.map(<[u8]>::to_vec).collect())
}

/// Returns whether a process adopts orphans: init, or systemd for the programs of a user.
pub(super) fn adopts_orphans(pid: Pid) -> bool {
    let mut buffer = [0; 1024];
    pid == Pid::INIT || read_stat_fields(pid, &mut buffer).is_some_and(|(name, _)| name == b"systemd")
}

fn open_proc_file(path: &str) -> Option<OwnedFd> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_itself_with_its_parent() {
        let me = read_process(getpid()).expect("this process");
        assert_eq!(me.parent, rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()));
        assert!(!me.dead && me.start > 0);
        assert!(list_processes(None, &HashSet::new()).contains(&me), "among all processes");
        assert!(list_processes(Some(me.pid), &HashSet::new()).contains(&me), "among those since itself");
    }

    #[test]
    fn init_is_not_youngest_process() {
        assert!(!is_youngest_process(Pid::INIT));
        assert!(last_assigned_pid().is_some_and(|last| last > 1));
    }
}
