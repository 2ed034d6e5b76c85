//! Ownership of processes: children that this process started, orphans that a run left to it, and unrelated processes.
//!
//! This process is a subreaper, so it adopts every orphan of a run, wherever it tried to hide. An orphan belongs to a run if it is
//! in the leader's session or carries the run's tag. An orphan with neither (`env -i`) belongs to no known run: it is ended when the
//! last run is over.
//!
//! Invariants:
//! - A child in our own session was not left by a run, since runs have other sessions: it is never touched.
//! - While orphans are told from children, no new child exists that is not registered yet.
//!
//! Orphans that end during their run are reaped when it is over. A program that starts many of them runs under a supervisor,
//! which reaps them as they end.

use std::collections::HashSet;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process_group, pidfd_open, waitid};

use super::OrphanSet;
use super::proc::{self, ProcessSnapshot};
use super::termination::KnownPids;
use crate::program::ResolvedProgram;
use crate::spawn::spawn_program;

/// Locked for reading while a child is spawned and registered; for writing while orphans are told from children.
static SPAWN_LOCK: RwLock<()> = RwLock::new(());
static CHILD_REGISTRY: Mutex<ChildRegistry> =
    Mutex::new(ChildRegistry { children: Vec::new(), tags: Vec::new(), unclaimed: false });

/// The children that this process has started.
struct ChildRegistry {
    children: Vec<Pid>,
    /// The tags of runs in progress.
    tags: Vec<String>,
    /// There may be orphans that belong to no known run.
    unclaimed: bool,
}

fn lock_registry() -> MutexGuard<'static, ChildRegistry> {
    CHILD_REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spawns a child and registers it before any scan can see it.
pub(super) fn spawn_child(program: &ResolvedProgram, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<(Pid, OwnedFd)> {
    super::prepare_process();
    let _spawn_guard = SPAWN_LOCK.read().unwrap_or_else(PoisonError::into_inner);
    let pid = spawn_program(program, descriptors)?;
    lock_registry().children.push(pid);
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => Ok((pid, descriptor)),
        Err(error) => {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
            forget_child(pid);
            Err(error.into())
        }
    }
}

/// Removes a child from the registry after it was reaped.
pub(super) fn forget_child(pid: Pid) {
    lock_registry().children.retain(|child| *child != pid);
}

/// Registers a run: from now on orphans with this tag belong to it.
pub(super) fn register_run(tag: &str) {
    lock_registry().tags.push(tag.to_owned());
}

/// Unregisters a run. Returns whether it was the last, and unclaimed orphans are left.
pub(super) fn unregister_run(tag: &str) -> bool {
    let mut registry = lock_registry();
    registry.tags.retain(|found| found != tag);
    registry.tags.is_empty() && std::mem::take(&mut registry.unclaimed)
}

/// Returns whether this process has no child left, in whatever state.
pub(super) fn is_childless() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

/// A run of this process, with all that identifies its processes.
pub(super) struct RunScope<'a> {
    pub tag: &'a str,
    /// The number of the leader's session, if it was started. No other session gets it while any process is in it.
    pub session: Option<Pid>,
    /// The leader, unless it was reaped and its number may be another process's.
    pub leader: Option<Pid>,
    /// A process that is older than all others of the run.
    pub since: Option<Pid>,
}

impl RunScope<'_> {
    /// Returns the leader, the orphans of the run, and all their descendants.
    pub fn find_processes(&self, known: &KnownPids) -> Vec<ProcessSnapshot> {
        let _scan_guard = SPAWN_LOCK.write().unwrap_or_else(PoisonError::into_inner);
        let mut registry = lock_registry();
        let me = raw_pid(getpid());
        // Read from `/proc`: the kernel itself returns 0 for a session outside of our container.
        let Some(session) = proc::read_process(getpid()).map(|process| process.session) else { return Vec::new() };
        let mut unclaimed = false;
        let chosen = with_descendants(proc::list_processes(self.since, known), known, |process| {
            if Some(process.pid) == self.leader {
                return true;
            }
            if process.parent != me || process.session == session || registry.children.contains(&process.pid) {
                return false;
            }
            let claim = self.check_claim(process, &registry);
            unclaimed |= claim.is_none();
            claim == Some(true)
        });
        registry.unclaimed |= unclaimed;
        chosen
    }

    /// Returns whether an orphan belongs to this run. `None` if it may belong to another one.
    fn check_claim(&self, orphan: &ProcessSnapshot, registry: &ChildRegistry) -> Option<bool> {
        if self.session.is_some_and(|session| orphan.session == raw_pid(session)) {
            return Some(true);
        }
        match proc::read_process_tag(orphan.pid) {
            Some(tag) if tag == self.tag => Some(true),
            Some(tag) if registry.tags.contains(&tag) => Some(false),
            _ if registry.tags.iter().all(|tag| tag == self.tag) => Some(true),
            _ => None,
        }
    }
}

/// Returns all descendants of this process.
pub(super) fn find_descendants(since: Option<Pid>, known: &KnownPids) -> Vec<ProcessSnapshot> {
    let me = raw_pid(getpid());
    with_descendants(proc::list_processes(since, known), known, |process| process.parent == me)
}

/// Returns the children of a process, all processes that carry a tag, and all their descendants.
pub(super) fn find_below_or_tagged(parent: Pid, tag: &str, known: &KnownPids) -> Vec<ProcessSnapshot> {
    let is_meant = |process: &ProcessSnapshot| {
        process.parent == raw_pid(parent)
            || process.pid != getpid() && proc::read_process_tag(process.pid).is_some_and(|found| found == tag)
    };
    with_descendants(proc::list_processes(None, known), known, is_meant)
}

/// Returns the processes that a dead owner left: those with a tag of its own, the sessions of its leaders, and all their
/// descendants.
pub(super) fn find_left_by_owner(orphans: &OrphanSet, known: &KnownPids) -> Vec<ProcessSnapshot> {
    // A known process may lead a session or be an ancestor of others, so the scan includes all.
    let processes = proc::list_processes(None, &KnownPids::new());
    let spared = find_own_lineage(&processes);
    let is_leader = |process: &&ProcessSnapshot| {
        orphans.leaders.get(&process.pid).is_some_and(|all| all.iter().any(|times| times.contains(&process.start)))
    };
    let sessions: HashSet<i32> = processes.iter().filter(is_leader).map(|process| raw_pid(process.pid)).collect();
    let is_left = |process: &ProcessSnapshot| {
        !spared.contains(&raw_pid(process.pid))
            && (sessions.contains(&process.session)
                || proc::read_process_tag(process.pid).is_some_and(|tag| is_tag_of_owner(&tag, &orphans.name)))
    };
    let mut chosen = with_descendants(processes, known, is_left);
    chosen.retain(|process| !spared.contains(&raw_pid(process.pid)) && !known.contains(&raw_pid(process.pid)));
    chosen
}

/// Returns whether a tag belongs to this owner: its name, a full stop, a number.
fn is_tag_of_owner(tag: &str, owner: &str) -> bool {
    let number = tag.strip_prefix(owner).and_then(|rest| rest.strip_prefix('.'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns this process, its ancestors, and its descendants.
fn find_own_lineage(processes: &[ProcessSnapshot]) -> HashSet<i32> {
    let me = getpid();
    let below = with_descendants(processes.to_vec(), &KnownPids::new(), |process| process.pid == me);
    let mut spared: HashSet<i32> = below.iter().map(|process| raw_pid(process.pid)).collect();
    let mut next = processes.iter().find(|process| process.pid == me);
    while let Some(process) = next {
        spared.insert(raw_pid(process.pid));
        next = processes.iter().find(|above| raw_pid(above.pid) == process.parent);
    }
    spared
}

/// Returns the root processes and all their descendants, without zombies of other parents.
fn with_descendants(
    mut processes: Vec<ProcessSnapshot>,
    known: &KnownPids,
    mut is_root: impl FnMut(&ProcessSnapshot) -> bool,
) -> Vec<ProcessSnapshot> {
    let me = raw_pid(getpid());
    processes.retain(|process| !process.dead || process.parent == me);
    let mut chosen: Vec<ProcessSnapshot> = processes.iter().filter(|process| is_root(process)).copied().collect();
    let mut numbers: HashSet<i32> =
        chosen.iter().map(|process| raw_pid(process.pid)).chain(known.iter().copied()).collect();
    loop {
        let before = chosen.len();
        for process in &processes {
            if numbers.contains(&process.parent) && numbers.insert(raw_pid(process.pid)) {
                chosen.push(*process);
            }
        }
        if chosen.len() == before {
            return chosen;
        }
    }
}

fn raw_pid(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_matches_owner_only_with_exact_name_and_number() {
        for (tag, expected) in
            [("me.1", true), ("me.120", true), ("me", false), ("me.", false), ("me.1.2", false), ("me2.1", false)]
        {
            assert_eq!(is_tag_of_owner(tag, "me"), expected, "{tag}");
        }
    }

    #[test]
    fn descendants_are_found_in_whatever_order_they_come() {
        let process = |pid, parent| ProcessSnapshot {
            pid: Pid::from_raw(pid).expect("a number"),
            parent,
            session: 0,
            start: 0,
            dead: false,
            is_at_rest: false,
        };
        let all = vec![process(9, 7), process(7, 5), process(8, 4), process(5, 1), process(6, 3)];
        let found = with_descendants(all, &KnownPids::from([3]), |process| raw_pid(process.pid) == 5);
        let mut numbers: Vec<i32> = found.iter().map(|process| raw_pid(process.pid)).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [5, 6, 7, 9], "6 is below one that is known");
    }
}
