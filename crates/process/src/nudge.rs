//! Waking an owner from another process, so that it looks at the log; and whether this process is below one.
//!
//! Invariants:
//! - Only the very process is signalled that the owner's name tells of: it holds the owner's lock, and number and start
//!   time are still its own after it was taken hold of. A name out of a store that somebody else made wakes nobody.
//! - The signal says nothing but "look": whoever gets it believes the log alone.
//!
//! Weaker outside Linux: nobody is woken, and nobody knows what lies above. An owner looks at the log by itself after each
//! piece of work.

use std::path::Path;

use crate::{os, owners, roster};

/// Wakes an owner. Says whether that was possible.
pub fn nudge(directory: &Path, name: &str) -> bool {
    let Some((pid, start)) = owners::process(name) else { return false };
    roster::holds_its_lock(directory, name) && os::nudge(pid, start)
}

/// Whether this process was started by an owner, by way of however many others.
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
        // Without a file, with one that nobody holds, and with another start time: this process would not survive.
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
