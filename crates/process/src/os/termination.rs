//! Ends a tree of processes that may grow meanwhile.
//!
//! ```text
//!   gracefully: ask all to end (TERM) ─► wait, 1 s at most ─► and then, as without it:
//!   scan ─► hold the new ones ─► stop them ─┐   until a scan finds no new one, not even one that ends
//!     ▲─────────────────────────────────────┘   before it is held: then no process can fork
//!   kill all ─► wait until they are dead ─► reap ours ─► scan again
//! ```
//!
//! Invariants:
//! - A process is signalled through a descriptor that was checked after it was opened: never an unrelated process that got a
//!   reused number.
//! - Bounded in time: a process that cannot die, because the kernel holds it, does not hold us.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};

use super::proc::{self, ProcessSnapshot};
use super::{ProcessStatus, TreeEndReport};

const END_TIMEOUT: Duration = Duration::from_secs(3);
const TERMINATION_GRACE: Duration = Duration::from_secs(1);
/// Pause after a scan whose processes could not be held.
const RETRY_INTERVAL: Duration = Duration::from_micros(100);

/// Selects processes: scans all but the known ones, and returns the matching processes with their descendants.
pub(super) type ProcessSelector<'a> = &'a dyn Fn(&KnownPids) -> Vec<ProcessSnapshot>;

/// The numbers of processes that need no further scan.
pub(super) type KnownPids = HashSet<i32>;

/// A process with an open descriptor.
pub(super) struct HeldProcess {
    process: ProcessSnapshot,
    descriptor: OwnedFd,
}

impl HeldProcess {
    fn hold_process(process: ProcessSnapshot) -> Option<Self> {
        let descriptor = pidfd_open(process.pid, PidfdFlags::empty()).ok()?;
        let same = proc::read_process(process.pid).is_some_and(|found| found.start == process.start);
        same.then_some(Self { process, descriptor })
    }

    pub fn send_signal(&self, signal: Signal) {
        // A process that is gone, or a number that was reused, needs no signal.
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }

    fn reap_child(&self) -> Option<ProcessStatus> {
        reap(&self.descriptor)
    }
}

/// Reaps a child that has ended. Takes no status of another parent's child.
pub(super) fn reap(descriptor: &OwnedFd) -> Option<ProcessStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::PidFd(descriptor.as_fd()), options).ok()??;
    Some(match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProcessStatus::Code(code),
        (None, Some(signal)) => ProcessStatus::Signal(signal),
        (None, None) => ProcessStatus::Lost,
    })
}

/// Stops all selected processes, until there is no new one.
pub(super) fn stop_selected(choice: ProcessSelector<'_>) -> Vec<HeldProcess> {
    let give_up = Instant::now() + END_TIMEOUT;
    let (mut held, mut known) = (Vec::new(), KnownPids::new());
    while Instant::now() < give_up {
        let found = choice(&known);
        if found.is_empty() {
            break;
        }
        let before = held.len();
        for process in found.into_iter().filter_map(HeldProcess::hold_process) {
            process.send_signal(Signal::STOP);
            known.insert(process.process.pid.as_raw_nonzero().get());
            held.push(process);
        }
        if held.len() == before {
            std::thread::sleep(RETRY_INTERVAL);
        }
    }
    held
}

/// Waits until all stopped processes are at rest: a signal reaches a process on another processor a moment later.
pub(super) fn await_stopped(stopped: &[HeldProcess]) {
    let give_up = Instant::now() + TERMINATION_GRACE;
    let runs = |HeldProcess { process, .. }: &HeldProcess| {
        proc::read_process(process.pid).is_some_and(|found| found.start == process.start && !found.is_at_rest)
    };
    for process in stopped {
        while runs(process) && Instant::now() < give_up {
            std::thread::sleep(RETRY_INTERVAL);
        }
    }
}

/// Asks all selected processes to end, stopped or not.
pub(super) fn terminate_selected(choice: ProcessSelector<'_>) -> Vec<HeldProcess> {
    let held: Vec<HeldProcess> = choice(&KnownPids::new()).into_iter().filter_map(HeldProcess::hold_process).collect();
    for process in &held {
        process.send_signal(Signal::TERM);
        process.send_signal(Signal::CONT);
    }
    held
}

/// Ends all selected processes, with time to clean up: a git that is killed leaves its locks.
pub(super) fn end_selected_gracefully(choice: ProcessSelector<'_>) -> TreeEndReport {
    wait_until_dead(&terminate_selected(choice), Instant::now() + TERMINATION_GRACE);
    end_selected(choice)
}

/// Ends all selected processes, until there are none.
pub(super) fn end_selected(choice: ProcessSelector<'_>) -> TreeEndReport {
    let give_up = Instant::now() + END_TIMEOUT;
    let mut ended = TreeEndReport::default();
    while Instant::now() < give_up {
        let held = stop_selected(choice);
        if held.is_empty() {
            break;
        }
        for process in &held {
            process.send_signal(Signal::KILL);
        }
        wait_until_dead(&held, give_up);
        for process in &held {
            let status = process.reap_child();
            ended.statuses.extend(status.map(|status| (process.process.pid, status)));
            // The status shows whether a process ended by itself in the meantime. Zombies of other parents were not selected.
            let by_us = status.is_none_or(|status| status == ProcessStatus::Signal(Signal::KILL.as_raw()));
            ended.killed += usize::from(by_us);
        }
    }
    ended
}

/// Waits until all are dead. Their children are ours by then.
fn wait_until_dead(held: &[HeldProcess], until: Instant) {
    for process in held {
        let mut descriptors = [PollFd::new(&process.descriptor, PollFlags::IN)];
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a short time fits");
        while poll(&mut descriptors, Some(&left)) == Err(rustix::io::Errno::INTR) {}
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpid;

    use super::*;

    /// Between a scan and a signal a process may end, and its number be reused.
    #[test]
    fn process_with_reused_pid_is_not_held() {
        let me = proc::read_process(getpid()).expect("we are there");
        assert!(HeldProcess::hold_process(me).is_some());
        assert!(HeldProcess::hold_process(ProcessSnapshot { start: me.start + 1, ..me }).is_none());
    }
}
