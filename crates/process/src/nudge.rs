//! Wakes an owner from another process, so that it reads the log, and checks whether this process descends from one.
//!
//! Invariants:
//! - Only the exact process that the owner's name describes is signalled: it holds the owner's lock, and its number and start
//!   time are checked again through a pidfd. A name from a store of another machine wakes no process.
//! - The signal carries no data: the receiver trusts only the log.
//!
//! Weaker outside Linux: no owner is woken, and ancestors are unknown. An owner reads the log by itself after each piece of work.

use std::path::Path;

use crate::{os, owners, roster};

/// Wakes an owner. Returns whether that was possible.
pub fn nudge(directory: &Path, name: &str) -> bool {
    let Some((pid, start)) = owners::process(name) else { return false };
    roster::holds_its_lock(directory, name) && os::nudge(pid, start)
}

/// Returns whether an owner started this process, directly or through other processes.
pub fn is_below(name: &str) -> bool {
    owners::process(name).is_some_and(|(pid, start)| os::is_below(pid, start))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpid;

    use super::*;
    use crate::Roster;

    #[test]
    fn nobody_is_woken_who_does_not_hold_the_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let mine = os::start_time(getpid()).expect("this process is there");
        // Without a file, with a file that is not locked, and with another start time. A signal would end this process.
        let name = owners::name(getpid(), mine, 7);
        assert!(!nudge(directory.path(), &name));
        std::fs::write(directory.path().join(&name), "").expect("a file");
        assert!(!nudge(directory.path(), &name));
        let roster = Roster::enlist(directory.path(), 8).expect("a name");
        let other = owners::name(getpid(), mine + 1, 8);
        std::fs::rename(directory.path().join(roster.name()), directory.path().join(&other)).expect("another name");
        assert!(!nudge(directory.path(), &other));
    }

    #[test]
    fn a_process_is_below_its_parent_and_not_below_itself() {
        let name = |pid| owners::name(pid, os::start_time(pid).expect("it is there"), 7);
        let parent = rustix::process::getppid().expect("a parent");
        assert!(is_below(&name(parent)));
        assert!(!is_below(&name(getpid())));
        assert!(!is_below(&owners::name(parent, 1, 7)), "another process with the same number");
        assert!(!is_below("nobody"));
    }
}
