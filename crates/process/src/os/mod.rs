//! Platform-specific parts: learning of a process's end, finding its descendants, and ending them.
//!
//! Both variants offer the same names. On Linux (`linux`) no process of a run can escape. Elsewhere (`other`) only the process
//! group is known, so a process that leaves the group survives, and nothing is swept after a crash.

#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod proc;
#[cfg(target_os = "linux")]
mod termination;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

pub(crate) use system::{
    DescendantTree, LeaderProcess, LeaderWatch, LoopWaker, StoppedProcesses, SupervisorProcess, clock_ticks_now,
    count_ancestors_with, descends_from_process, end_left_processes, end_lost_run, grow_pipe, has_older_ancestor,
    is_below_program, is_connection_below_program, own_program_path, parent_exit_descriptor, prepare_process,
    process_start_time, read_boot_id, wake_process,
};
pub use system::{can_see_ancestors, system_uptime};

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, WaitStatus};

/// Returns how long a process has existed, if that is known.
pub fn process_age(pid: u32) -> Option<Duration> {
    let started = process_start_time(Pid::from_raw(pid.try_into().ok()?)?)?;
    Some(Duration::from_millis(clock_ticks_now().saturating_sub(started) * 1000 / clock_ticks_per_second()))
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessStatus {
    Code(i32),
    Signal(i32),
    /// The status is unknown.
    Lost,
}

impl From<WaitStatus> for ProcessStatus {
    fn from(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Lost,
        }
    }
}

/// The result of ending a tree.
#[derive(Debug, Default)]
pub(crate) struct TreeEndReport {
    /// Number of processes that were alive until we killed them.
    pub killed: usize,
    /// How our own children among them ended.
    pub statuses: Vec<(Pid, ProcessStatus)>,
}

impl TreeEndReport {
    pub fn find_status(&self, pid: Pid) -> Option<ProcessStatus> {
        self.statuses.iter().find(|(found, _)| *found == pid).map(|(_, status)| *status)
    }
}

/// The processes that a dead owner may have left.
#[derive(Debug)]
pub(crate) struct OrphanSet {
    pub name: String,
    /// Leaders of this boot, with the times between which they were started: a number may have been given twice.
    pub leaders: HashMap<Pid, Vec<RangeInclusive<u64>>>,
}
