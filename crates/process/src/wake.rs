//! Wakes an owner from another process, so that it reads the log, and checks whether this process descends from one.
//!
//! Invariants:
//! - Only the exact process that the owner's name describes is signalled: it holds the owner's lock, and its number and start
//!   time are checked again through a pidfd. A name from a store of another machine wakes no process.
//! - The signal carries no data: the receiver trusts only the log.
//!
//! Weaker outside Linux: no owner is woken, and ancestors are unknown. An owner reads the log by itself after each piece of work.

use std::path::Path;

use crate::{os, owner, owner_directory};

/// Wakes an owner. Returns whether that was possible.
pub fn wake_owner(directory: &Path, name: &str) -> bool {
    let Some((pid, start)) = owner_directory::parse_owner_name(name) else { return false };
    owner::is_owner_locked(directory, name) && os::wake_process(pid, start)
}

/// Returns whether an owner started this process, directly or through other processes.
pub fn is_below_owner(name: &str) -> bool {
    owner_directory::parse_owner_name(name).is_some_and(|(pid, start)| os::descends_from_process(pid, start))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpid;

    use super::*;
    use crate::OwnerLock;

    #[test]
    fn wake_owner_refuses_process_without_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let mine = os::process_start_time(getpid()).expect("this process is there");
        // Without a file, with a file that is not locked, and with another start time. A signal would end this process.
        let name = owner_directory::format_owner_name(getpid(), mine, 7);
        assert!(!wake_owner(directory.path(), &name));
        std::fs::write(directory.path().join(&name), "").expect("a file");
        assert!(!wake_owner(directory.path(), &name));
        let owner_lock = OwnerLock::acquire(directory.path(), 8).expect("a name");
        let other = owner_directory::format_owner_name(getpid(), mine + 1, 8);
        std::fs::rename(directory.path().join(owner_lock.name()), directory.path().join(&other)).expect("another name");
        assert!(!wake_owner(directory.path(), &other));
    }

    #[test]
    fn process_is_below_its_parent_but_not_below_itself() {
        let name = |pid| owner_directory::format_owner_name(pid, os::process_start_time(pid).expect("it is there"), 7);
        let parent = rustix::process::getppid().expect("a parent");
        assert!(is_below_owner(&name(parent)));
        assert!(!is_below_owner(&name(getpid())));
        assert!(
            !is_below_owner(&owner_directory::format_owner_name(parent, 1, 7)),
            "another process with the same number"
        );
        assert!(!is_below_owner("absent"));
    }
}
