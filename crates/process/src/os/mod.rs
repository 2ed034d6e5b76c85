//! Platform-specific parts: learning of a process's end, finding its descendants, and ending them.
//!
//! Both variants offer the same names. On Linux (`linux`) no process of a run can escape. Elsewhere (`other`) only the process
//! group is known, so a process that leaves the group survives, and nothing is swept after a crash.

#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
mod family;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod proc;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

pub(crate) use system::{
    Brood, Helper, Leader, News, Stopped, Waker, above_with, boot_id, end_lost, end_of_parent, end_orphaned, grow,
    has_elder, is_below, is_below_program, nudge, own_program, prepare, start_time, ticks,
};
pub use system::{can_see_ancestors, uptime};

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, WaitStatus};

/// Returns how long a process has existed, if that is known.
pub fn age(pid: u32) -> Option<Duration> {
    let started = start_time(Pid::from_raw(pid.try_into().ok()?)?)?;
    Some(Duration::from_millis(ticks().saturating_sub(started) * 1000 / clock_ticks_per_second()))
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Code(i32),
    Signal(i32),
    /// The status is unknown.
    Lost,
}

impl From<WaitStatus> for Status {
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
pub(crate) struct Ended {
    /// Number of processes that were alive until we killed them.
    pub killed: usize,
    /// How our own children among them ended.
    pub statuses: Vec<(Pid, Status)>,
}

impl Ended {
    pub fn status(&self, pid: Pid) -> Option<Status> {
        self.statuses.iter().find(|(found, _)| *found == pid).map(|(_, status)| *status)
    }
}

/// The processes that a dead owner may have left.
#[derive(Debug)]
pub(crate) struct Legacy {
    pub name: String,
    /// Leaders of this boot, with the times between which they were started: a number may have been given twice.
    pub leaders: HashMap<Pid, Vec<RangeInclusive<u64>>>,
}
