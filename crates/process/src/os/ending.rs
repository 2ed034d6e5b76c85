//! Ending a tree of processes that may grow while we look at it.
//!
//! ```text
//!   in order: ask all to end (TERM) ─► wait, 1 s at most ─► and then, as without it:
//!   look ─► take hold of the new ones ─► stop them ─┐   until a look finds no new one, not even one that is gone
//!     ▲─────────────────────────────────────────────┘   before it is held: nobody is left who could fork
//!   kill all ─► wait until they are dead ─► reap ours ─► look again
//! ```
//!
//! Invariants:
//! - A process is signalled through a descriptor that was checked after it was opened: never a stranger that was given a
//!   number that has become free.
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
/// How long to rest where nobody could be held who was seen.
const REST: Duration = Duration::from_micros(100);

/// Which processes are meant: those that a look at all others than the known ones picks, what is below these included.
pub(super) type Choice<'a> = &'a dyn Fn(&Known) -> Vec<Process>;

/// The numbers of processes that need not be looked at again.
pub(super) type Known = HashSet<i32>;

/// A process that we hold on to.
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
        // One that is gone, or belongs to somebody else by now, needs no signal.
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }

    fn reap(&self) -> Option<Status> {
        reap(&self.descriptor)
    }
}

/// The status of a child that has ended. Nobody else's is touched.
pub(super) fn reap(descriptor: &OwnedFd) -> Option<Status> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::PidFd(descriptor.as_fd()), options).ok()??;
    Some(match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Lost,
    })
}

/// Stops all that are chosen, until there is no new one.
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

/// Waits until all that were stopped are at rest: a signal reaches one that runs on another processor a moment later.
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

/// Asks all that are chosen to end, stopped or not.
pub(super) fn terminate(choice: Choice<'_>) -> Vec<Held> {
    let held: Vec<Held> = choice(&Known::new()).into_iter().filter_map(Held::take).collect();
    for process in &held {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
    held
}

/// Ends all that are chosen, and gives them time to put away what is theirs: a git that is killed leaves its locks.
pub(super) fn end_in_order(choice: Choice<'_>) -> Ended {
    wait(&terminate(choice), Instant::now() + GRACE);
    end(choice)
}

/// Ends all that are chosen, until there are none.
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
            // One that ended by itself in the meantime says so. The dead who are not our children were not chosen.
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

    /// Between a look and a signal a process may end, and its number be given to another one.
    #[test]
    fn a_process_that_has_the_number_of_another_one_is_not_held() {
        let me = proc::look(getpid()).expect("we are there");
        assert!(Held::take(me).is_some());
        assert!(Held::take(Process { start: me.start + 1, ..me }).is_none());
    }
}
