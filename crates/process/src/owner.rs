//! Owners: the processes that run programs on this machine, and the processes that dead owners left behind.
//!
//! An owner is a file in a directory. It is alive as long as it holds the kernel's lock on that file, which no crash can leave
//! behind. A program that an owner was about to start when it was killed holds the lock for a moment longer, until its `exec`: a
//! sweep waits for that, or it would miss the program. If the file was removed, the process in the owner's name decides whether it
//! is alive. A line of the file is a leader or a supervisor: its number, two moments between which it was started, and the boot they
//! belong to. Noting two moments is quicker than asking for the start time. The first line is the heartbeat (`heartbeat`).
//!
//! Invariants:
//! - A process is ended only if its environment names a dead owner, or if number, start time and boot match a leader in the list
//!   of a dead owner: then its whole session is ended. Never this process, its ancestors, or its descendants.
//! - A damaged file ends no process that an undamaged one would not. Without a boot there are no leaders.
//!
//! Weaker outside Linux: the environment and start time of a process are unknown, so files of dead owners are only removed, and
//! an owner without its file is dead.
//!
//! Not here: which files are owners' files, and how they are opened safely (`owner_directory`).

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, getpid};

use crate::MachineTag;
use crate::heartbeat::{self, HeartbeatFile};
use crate::os::{self, OrphanSet};
use crate::owner_directory::{self, OwnerDirectory};

/// How long another process may hold the lock on our own new file while it checks whether we are alive.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a program may take to be executed after its owner was killed. An owner that holds its lock and is invisible, perhaps in
/// a container, gets as long. Outside Linux every owner is invisible, and no program inherits the lock.
const OWNER_DEATH_GRACE: Duration = Duration::from_millis(if cfg!(target_os = "linux") { 250 } else { 0 });

/// Limit for the time between the two moments of a leader. A longer one would match any process.
const MAX_START_INTERVAL: Duration = Duration::from_secs(60);

/// The lock that makes this process an owner of runs, until it is dropped or the process dies.
#[derive(Debug)]
pub struct OwnerLock {
    owners: OwnerDirectory,
    name: String,
    /// Locked as long as it is open.
    file: File,
    boot: Option<String>,
    runs: AtomicU64,
}

/// A dead owner, and those of its processes that were ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptOwner {
    pub name: String,
    pub ended: Vec<i32>,
}

impl OwnerLock {
    /// Makes this process an owner with the name `run-PID-START-NONCE`, at most 64 letters, digits and dashes.
    ///
    /// The nonce must be one that this process has not used before, in any directory: the name alone identifies the processes of its
    /// runs. It should not be guessable.
    pub fn acquire(directory: &Path, nonce: u64) -> io::Result<Self> {
        let (pid, start) = own_process();
        Self::acquire_name(directory, owner_directory::format_owner_name(pid, start, nonce))
    }

    /// Does the same with a name that ends with this machine, because owners of other machines are in the same log.
    pub fn acquire_in_fleet(directory: &Path, nonce: u64, machine: &MachineTag) -> io::Result<Self> {
        let (pid, start) = own_process();
        Self::acquire_name(directory, owner_directory::format_fleet_owner_name(pid, start, nonce, machine))
    }

    fn acquire_name(directory: &Path, name: String) -> io::Result<Self> {
        let owners = OwnerDirectory::open_or_create(directory)?;
        let give_up = Instant::now() + LOCK_TIMEOUT;
        loop {
            let file = owners.create_own_file(&name)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if owner_directory::is_valid_owner_file(&file) => {
                    heartbeat::write_first_heartbeat(&file)?;
                    return Ok(Self { owners, name, file, boot: os::read_boot_id(), runs: AtomicU64::new(0) });
                }
                // A sweep has unlinked the file in between, so other processes would not see our lock.
                Ok(()) if file.metadata()?.nlink() == 0 => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(1)),
                Ok(()) | Err(Errno::WOULDBLOCK) => {
                    let text = format!("cannot lock the owner {name}: another process holds it");
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens the heartbeat, which shows to others that this process is not only alive, but makes progress.
    pub fn open_heartbeat(&self) -> io::Result<HeartbeatFile> {
        let file = self.owners.open_own_file(&self.name)?;
        Ok(HeartbeatFile::new(file))
    }

    /// Returns a tag for the processes of a new run.
    pub(crate) fn next_run_tag(&self) -> String {
        format!("{}.{}", self.name, self.runs.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Adds a leader that was started between `then` and now to the list. A full disk does not keep it from running: its tag
    /// identifies it as well.
    pub(crate) fn record_leader(&self, leader: Pid, then: u64) {
        let Some(boot) = &self.boot else { return };
        let line = format!("{} {then} {} {boot}\n", leader.as_raw_nonzero(), os::clock_ticks_now());
        let _ = (&self.file).write_all(line.as_bytes());
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        let _ = self.owners.remove_owner_file(&self.name);
    }
}

/// Returns the number and the start time of this process.
fn own_process() -> (Pid, u64) {
    let me = getpid();
    (me, os::process_start_time(me).unwrap_or(0))
}

/// Returns whether a process holds the lock of a name.
pub(crate) fn is_owner_locked(directory: &Path, name: &str) -> bool {
    let file = OwnerDirectory::open(directory).ok().and_then(|owners| owners.open_owner_file(name));
    file.is_some_and(|file| is_file_locked(&file))
}

fn is_file_locked(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Returns whether the owner itself holds its lock, and not a program that it was about to start when it was killed.
fn is_held_by_owner(file: &File, name: &str) -> bool {
    // An owner in another namespace is waited for only once.
    static INVISIBLE_OWNERS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let elsewhere = || INVISIBLE_OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
    let patience = if elsewhere().contains(name) { Duration::ZERO } else { OWNER_DEATH_GRACE };
    let is_alive = outlives_grace(patience, || is_file_locked(file), || is_owner_visible(name));
    if is_alive && !is_owner_visible(name) {
        elsewhere().insert(name.to_owned());
    }
    is_alive
}

/// Returns whether a lock is held for longer than `patience`, or by a visible owner.
fn outlives_grace(patience: Duration, is_locked: impl Fn() -> bool, is_there: impl Fn() -> bool) -> bool {
    let give_up = Instant::now() + patience;
    while is_locked() {
        if is_there() || Instant::now() >= give_up {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Returns whether the owner of a name is alive: it holds its file, or its process exists although its file was removed.
pub fn is_owner_alive(directory: &Path, name: &str) -> bool {
    match OwnerDirectory::open(directory).ok().and_then(|owners| owners.open_owner_file(name)) {
        Some(file) => is_held_by_owner(&file, name),
        None => is_owner_visible(name),
    }
}

/// Returns whether the process in an owner's name is visible.
pub(crate) fn is_owner_visible(name: &str) -> bool {
    owner_directory::parse_owner_name(name).is_some_and(|(pid, start)| os::process_start_time(pid) == Some(start))
}

/// Returns whether an owner's name is one of this process. The name has to be one of this machine.
pub fn is_this_process(name: &str) -> bool {
    owner_directory::parse_owner_name(name).is_some_and(|process| process == own_process())
}

/// Ends the processes that dead owners left behind, and removes their files.
pub fn sweep_dead_owners(directory: &Path) -> io::Result<Vec<SweptOwner>> {
    let owners = match OwnerDirectory::open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        owners => owners?,
    };
    let boot = os::read_boot_id();
    let mut swept = Vec::new();
    for name in owners.owner_names()? {
        let Some((lock, text)) = lock_dead_owner(&owners, &name) else { continue };
        let orphans = OrphanSet { name, leaders: parse_leaders(&text, boot.as_deref()) };
        let ended = os::end_left_processes(&orphans);
        owners.remove_owner_file(&orphans.name)?;
        drop(lock);
        swept.push(SweptOwner { name: orphans.name, ended });
    }
    Ok(swept)
}

/// Locks and reads the file of a dead owner.
fn lock_dead_owner(owners: &OwnerDirectory, name: &str) -> Option<(File, String)> {
    let file = owners.open_owner_file(name)?;
    if is_held_by_owner(&file, name) {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let text = owner_directory::read_last_lines(&file).ok()?;
    // Another process may have swept it, and a living owner may have taken the name since.
    owner_directory::is_valid_owner_file(&file).then_some((file, text))
}

/// Returns the leaders of this boot in a list.
fn parse_leaders(text: &str, boot: Option<&str>) -> HashMap<Pid, Vec<RangeInclusive<u64>>> {
    let mut leaders = HashMap::<_, Vec<_>>::new();
    let Some(boot) = boot else { return leaders };
    for (pid, times) in text.lines().filter_map(|line| parse_leader_line(line, boot)) {
        leaders.entry(pid).or_default().push(times);
    }
    leaders
}

/// Parses a line of the list, if it is whole and of this boot.
fn parse_leader_line(line: &str, boot: &str) -> Option<(Pid, RangeInclusive<u64>)> {
    let mut words = line.split(' ');
    let (pid, from, to, of) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let pid = Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 1)?)?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    let is_moment = to.saturating_sub(from) <= MAX_START_INTERVAL.as_secs() * clock_ticks_per_second();
    (words.next().is_none() && of == boot && is_moment).then_some((pid, from..=to))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn lock_of_vanished_owner_is_awaited_until_grace_ends() {
        let (long, looks) = (Duration::from_secs(1000), Cell::new(0));
        let is_locked = || looks.replace(looks.get() + 1) < 3;
        assert!(outlives_grace(long, is_locked, || true) && looks.get() == 1, "one that is there is not waited for");
        assert!(!outlives_grace(long, is_locked, || false) && looks.get() == 4);
        assert!(outlives_grace(Duration::ZERO, || true, || false), "one that is not to be seen may live elsewhere");
    }

    #[test]
    fn leader_list_is_empty_without_boot_id() {
        let list = "77 1 2 \n77 1 2 here\n77 8 9 here\n78 3 4 there\n";
        assert_eq!(parse_leaders(list, None), HashMap::new());
        let pid = Pid::from_raw(77).expect("a number");
        assert_eq!(parse_leaders(list, Some("here")), HashMap::from([(pid, vec![1..=2, 8..=9])]));
    }

    #[test]
    fn leader_line_with_start_interval_over_one_minute_is_rejected() {
        let minute = 60 * clock_ticks_per_second();
        assert!(parse_leader_line(&format!("77 5 {} here", 5 + minute), "here").is_some());
        assert_eq!(parse_leader_line(&format!("77 5 {} here", 6 + minute), "here"), None);
        assert_eq!(parse_leader_line(&format!("77 0 {} here", u64::MAX), "here"), None);
    }
}
