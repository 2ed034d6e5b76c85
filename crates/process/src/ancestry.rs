//! Checks whether a command may come from a process that a run left behind, or that hides its origin.
//!
//! An agent runs with the rights of the user: only a sandbox keeps it from opening a terminal of its own or from writing to the
//! user's files. This module finds what can be found without a sandbox.
//!
//! Weaker outside Linux: the ancestors of this process are unknown, and the checks suspect nothing.

use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::owner::{is_owner_alive, is_owner_visible};
use crate::{os, owner_directory};

pub use os::can_see_ancestors;

/// Returns whether this process has a controlling terminal.
pub fn has_controlling_terminal() -> bool {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open("/dev/tty", flags, Mode::empty()).is_ok()
}

/// Returns whether an owner is alive but invisible to this process: one of the two is in a PID namespace of its own.
pub fn is_owner_in_other_namespace(directory: &Path, name: &str) -> bool {
    cfg!(target_os = "linux") && is_owner_alive(directory, name) && !is_owner_visible(name)
}

/// Returns whether an owner that started `ago` may have left this process behind: neither this process, nor an ancestor other
/// than init, nor the leader of its session is older than the owner. An owner that started before the last boot left nothing.
pub fn may_be_left_by_owner(name: &str, ago: Duration) -> bool {
    ago <= os::system_uptime()
        && owner_directory::parse_owner_name(name).is_some_and(|(pid, start)| !os::has_older_ancestor(pid, start))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{getpid, getppid};

    use super::*;

    fn name(pid: rustix::process::Pid, start: u64) -> String {
        owner_directory::format_owner_name(pid, start, 7)
    }

    #[test]
    fn process_younger_than_an_owner_may_be_left_of_it() {
        assert!(can_see_ancestors());
        let (now, mine) = (Duration::ZERO, os::process_start_time(getpid()).expect("this process is there"));
        let parent = getppid().expect("a parent");
        let parents = os::process_start_time(parent).expect("it is there");
        assert!(!may_be_left_by_owner(&name(getpid(), mine + 1), now), "this process is older");
        assert!(!may_be_left_by_owner(&name(getpid(), mine), now), "its parent is older");
        assert!(may_be_left_by_owner(&name(parent, 1), now), "everything but init is younger");
        assert!(!may_be_left_by_owner(&name(parent, 1), Duration::MAX), "the system was started since");
        assert!(!may_be_left_by_owner("ghost", now));
        assert!(parents <= mine);
    }

    #[test]
    fn owner_that_holds_its_lock_and_is_not_seen_is_out_of_sight() {
        let directory = tempfile::tempdir().expect("a directory");
        let owner_lock = crate::OwnerLock::acquire(directory.path(), 8).expect("a name");
        assert!(!is_owner_in_other_namespace(directory.path(), owner_lock.name()));
        let other = name(getpid(), 1);
        std::fs::rename(directory.path().join(owner_lock.name()), directory.path().join(&other)).expect("another name");
        assert!(is_owner_in_other_namespace(directory.path(), &other));
        assert!(!is_owner_in_other_namespace(directory.path(), "ghost"));
    }
}
