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

use super::proc::{self, Process};
use super::{Ended, Status};

const PATIENCE: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(1);
/// Pause after a scan whose processes could not be held.
const REST: Duration = Duration::from_micros(100);

/// Selects processes: scans all but the known ones, and returns the matching processes with their descendants.
pub(super) type Choice<'a> = &'a dyn Fn(&Known) -> Vec<Process>;

/// The numbers of processes that need no further scan.
pub(super) type Known = HashSet<i32>;

/// A process with an open descriptor.
pub(super) struct Held {
    process: Process,
    descriptor: OwnedFd,
}

impl Held {
    fn take(process: Process) -> Option<Self> {
        let descriptor = pidfd_open(process.pid, PidfdFlags::empty()).ok()?;
        let same = proc::look(process.pid).is_some_and(|found| found.start == process.start);
        same.then_some(Self { process, descriptor })
    }

    pub fn signal(&self, signal: Signal) {
        // A process that is gone, or a number that was reused, needs no signal.
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }

    fn reap(&self) -> Option<Status> {
        reap(&self.descriptor)
    }
}

/// Reaps a child that has ended. Takes no status of another parent's child.
pub(super) fn reap(descriptor: &OwnedFd) -> Option<Status> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::PidFd(descriptor.as_fd()), options).ok()??;
    Some(match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Lost,
    })
}

/// Stops all selected processes, until there is no new one.
pub(super) fn stop(choice: Choice<'_>) -> Vec<Held> {
    let give_up = Instant::now() + PATIENCE;
    let (mut held, mut known) = (Vec::new(), Known::new());
    while Instant::now() < give_up {
        let found = choice(&known);
        if found.is_empty() {
            break;
        }
        let before = held.len();
        for process in found.into_iter().filter_map(Held::take) {
            process.signal(Signal::STOP);
            known.insert(process.process.pid.as_raw_nonzero().get());
            held.push(process);
        }
        if held.len() == before {
            std::thread::sleep(REST);
        }
    }
    held
}

/// Waits until all stopped processes are at rest: a signal reaches a process on another processor a moment later.
pub(super) fn await_rest(stopped: &[Held]) {
    let give_up = Instant::now() + GRACE;
    let runs = |Held { process, .. }: &Held| {
        proc::look(process.pid).is_some_and(|found| found.start == process.start && !found.is_at_rest)
    };
    for process in stopped {
        while runs(process) && Instant::now() < give_up {
            std::thread::sleep(REST);
        }
    }
}

/// Asks all selected processes to end, stopped or not.
pub(super) fn terminate(choice: Choice<'_>) -> Vec<Held> {
    let held: Vec<Held> = choice(&Known::new()).into_iter().filter_map(Held::take).collect();
    for process in &held {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
    held
}

/// Ends all selected processes, with time to clean up: a git that is killed leaves its locks.
pub(super) fn end_in_order(choice: Choice<'_>) -> Ended {
    wait(&terminate(choice), Instant::now() + GRACE);
    end(choice)
}

/// Ends all selected processes, until there are none.
pub(super) fn end(choice: Choice<'_>) -> Ended {
    let give_up = Instant::now() + PATIENCE;
    let mut ended = Ended::default();
    while Instant::now() < give_up {
        let held = stop(choice);
        if held.is_empty() {
            break;
        }
        for process in &held {
            process.signal(Signal::KILL);
        }
        wait(&held, give_up);
        for process in &held {
            let status = process.reap();
            ended.statuses.extend(status.map(|status| (process.process.pid, status)));
            // The status shows whether a process ended by itself in the meantime. Zombies of other parents were not selected.
            let by_us = status.is_none_or(|status| status == Status::Signal(Signal::KILL.as_raw()));
            ended.killed += usize::from(by_us);
        }
    }
    ended
}

/// Waits until all are dead. Their children are ours by then.
fn wait(held: &[Held], until: Instant) {
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
    fn a_process_that_has_the_number_of_another_one_is_not_held() {
        let me = proc::look(getpid()).expect("we are there");
        assert!(Held::take(me).is_some());
        assert!(Held::take(Process { start: me.start + 1, ..me }).is_none());
    }
}
