//! Who runs programs on this machine, and what the dead among them have left.
//!
//! An owner is a file in a directory, and is alive as long as it holds the kernel's lock on that file, which no crash
//! can leave behind. Only a program that it was about to start when it was killed has the lock for another moment, until it
//! is executed: nothing is done about the dead before that, or it would be missed. If somebody has removed the file, the process that the name tells of says whether it is alive. A line
//! of the file is a leader that it started, or a supervisor: its number, the two moments between which it was started, and the boot they
//! belong to. To note two moments is quicker than to ask for the start time. The first line is its pulse (`heart`).
//!
//! Invariants:
//! - A process is ended only if its environment names a dead owner, or if number, start time and boot fit a
//!   leader on a dead owner's list: then its whole session is. Never this process, those above it, or those below it.
//! - A file that is damaged ends nothing that an undamaged one would not. Without a boot there are no leaders.
//!
//! Weaker outside Linux: there is no way to see a process's environment or start time, so files of the dead are only
//! removed, and an owner without its file is dead.
//!
//! Not here: which files are owners', and how they are reached safely (`owners`).

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

use crate::heart::{self, Pulse};
use crate::os::{self, Legacy};
use crate::owners::{self, Owners};

/// How long a lock on our own new file may be in the way: somebody is just looking whether we are alive.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a program may take to be executed whose owner was killed meanwhile. As long is waited where an owner holds its lock
/// and is not to be seen: it may be in a container. Outside Linux nobody is to be seen, and no program inherits the lock.
const LAST_BREATH: Duration = Duration::from_millis(if cfg!(target_os = "linux") { 250 } else { 0 });

/// How far the two moments of a leader may be apart. Wider ones would fit any process.
const LONGEST_BIRTH: Duration = Duration::from_secs(60);

/// This process as an owner of runs, until it is dropped or dies.
#[derive(Debug)]
pub struct Roster {
    owners: Owners,
    name: String,
    /// Locked as long as it is open.
    file: File,
    boot: Option<String>,
    runs: AtomicU64,
}

/// A dead owner, and the processes of its that were ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    pub name: String,
    pub ended: Vec<i32>,
}

impl Roster {
    /// Makes this process an owner, with a name that tells of it: `run-PID-START-NONCE`, at most 64 letters, digits and
    /// dashes.
    ///
    /// The nonce must be one that this process has not used before, in whatever directory: the processes of its runs
    /// are known by the name alone. It should not be guessable.
    pub fn enlist(directory: &Path, nonce: u64) -> io::Result<Self> {
        let owners = Owners::open_or_make(directory)?;
        let me = getpid();
        let name = owners::name(me, os::start_time(me).unwrap_or(0), nonce);
        let give_up = Instant::now() + PATIENCE;
        loop {
            let file = owners.make(&name)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if owners::is_sound(&file) => {
                    heart::begin(&file)?;
                    return Ok(Self { owners, name, file, boot: os::boot_id(), runs: AtomicU64::new(0) });
                }
                // Whoever swept it in between has unlinked it: then nobody would see our lock.
                Ok(()) if file.metadata()?.nlink() == 0 => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(1)),
                Ok(()) | Err(Errno::WOULDBLOCK) => {
                    let text = format!("cannot become {name}: somebody else is already");
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What shows to others that this process is not only alive, but goes on.
    pub fn pulse(&self) -> io::Result<Pulse> {
        let file = self.owners.to_write(&self.name)?;
        Ok(Pulse::new(file))
    }

    /// A tag for the processes of a new run.
    pub(crate) fn next_tag(&self) -> String {
        format!("{}.{}", self.name, self.runs.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Puts a leader on the list that was started between then and now. A full disk does not keep it from running: its
    /// tag is known as well.
    pub(crate) fn note(&self, leader: Pid, then: u64) {
        let Some(boot) = &self.boot else { return };
        let line = format!("{} {then} {} {boot}\n", leader.as_raw_nonzero(), os::ticks());
        let _ = (&self.file).write_all(line.as_bytes());
    }
}

impl Drop for Roster {
    fn drop(&mut self) {
        let _ = self.owners.remove(&self.name);
    }
}

/// Whether somebody holds the lock of a name.
pub(crate) fn holds_its_lock(directory: &Path, name: &str) -> bool {
    let file = Owners::open(directory).ok().and_then(|owners| owners.file(name));
    file.is_some_and(|file| is_locked(&file))
}

fn is_locked(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Whether it is the owner who holds its lock, and not what it was about to start when it was killed.
fn is_its_own(file: &File, name: &str) -> bool {
    // Whoever lives elsewhere is waited for once.
    static ELSEWHERE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let elsewhere = || ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
    let patience = if elsewhere().contains(name) { Duration::ZERO } else { LAST_BREATH };
    let is_alive = outlives(patience, || is_locked(file), || is_there(name));
    if is_alive && !is_there(name) {
        elsewhere().insert(name.to_owned());
    }
    is_alive
}

/// Whether a lock is held for longer than that, or by one that is there.
fn outlives(patience: Duration, is_locked: impl Fn() -> bool, is_there: impl Fn() -> bool) -> bool {
    let give_up = Instant::now() + patience;
    while is_locked() {
        if is_there() || Instant::now() >= give_up {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Whether the owner of a name is alive: it holds its file, or it is there although somebody has removed its file.
pub fn is_alive(directory: &Path, name: &str) -> bool {
    match Owners::open(directory).ok().and_then(|owners| owners.file(name)) {
        Some(file) => is_its_own(&file, name),
        None => is_there(name),
    }
}

/// Whether the process that a name tells of is to be seen.
pub(crate) fn is_there(name: &str) -> bool {
    owners::process(name).is_some_and(|(pid, start)| os::start_time(pid) == Some(start))
}

/// Whether a name is one of this very process's.
pub fn is_ours(name: &str) -> bool {
    owners::process(name).is_some_and(|(pid, start)| pid == getpid() && start == os::start_time(pid).unwrap_or(0))
}

/// Ends what owners who are dead have left in their processes, and forgets the owners.
pub fn sweep(directory: &Path) -> io::Result<Vec<Swept>> {
    let owners = match Owners::open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        owners => owners?,
    };
    let boot = os::boot_id();
    let mut swept = Vec::new();
    for name in owners.names()? {
        let Some((lock, text)) = take_over(&owners, &name) else { continue };
        let legacy = Legacy { name, leaders: leaders(&text, boot.as_deref()) };
        let ended = os::end_orphaned(&legacy);
        owners.remove(&legacy.name)?;
        drop(lock);
        swept.push(Swept { name: legacy.name, ended });
    }
    Ok(swept)
}

/// Locks the file of an owner who is dead, and reads it.
fn take_over(owners: &Owners, name: &str) -> Option<(File, String)> {
    let file = owners.file(name)?;
    if is_its_own(&file, name) {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let text = owners::read(&file).ok()?;
    // Somebody else may have swept it, and somebody alive have taken the name since.
    owners::is_sound(&file).then_some((file, text))
}

/// The leaders of this boot that a list has.
fn leaders(text: &str, boot: Option<&str>) -> HashMap<Pid, Vec<RangeInclusive<u64>>> {
    let mut leaders = HashMap::<_, Vec<_>>::new();
    let Some(boot) = boot else { return leaders };
    for (pid, times) in text.lines().filter_map(|line| leader(line, boot)) {
        leaders.entry(pid).or_default().push(times);
    }
    leaders
}

/// A line of the list, if it is whole and of this boot.
fn leader(line: &str, boot: &str) -> Option<(Pid, RangeInclusive<u64>)> {
    let mut words = line.split(' ');
    let (pid, from, to, of) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let pid = Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 1)?)?;
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    let is_moment = to.saturating_sub(from) <= LONGEST_BIRTH.as_secs() * clock_ticks_per_second();
    (words.next().is_none() && of == boot && is_moment).then_some((pid, from..=to))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_lock_that_outlives_its_owner_is_waited_for() {
        let (long, looks) = (Duration::from_secs(1000), Cell::new(0));
        let is_locked = || looks.replace(looks.get() + 1) < 3;
        assert!(outlives(long, is_locked, || true) && looks.get() == 1, "one that is there is not waited for");
        assert!(!outlives(long, is_locked, || false) && looks.get() == 4);
        assert!(outlives(Duration::ZERO, || true, || false), "one that is not to be seen may live elsewhere");
    }

    #[test]
    fn without_a_boot_there_are_no_leaders() {
        let list = "77 1 2 \n77 1 2 here\n77 8 9 here\n78 3 4 there\n";
        assert_eq!(leaders(list, None), HashMap::new());
        let pid = Pid::from_raw(77).expect("a number");
        assert_eq!(leaders(list, Some("here")), HashMap::from([(pid, vec![1..=2, 8..=9])]));
    }

    #[test]
    fn a_leader_that_any_process_would_fit_is_none() {
        let minute = 60 * clock_ticks_per_second();
        assert!(leader(&format!("77 5 {} here", 5 + minute), "here").is_some());
        assert_eq!(leader(&format!("77 5 {} here", 6 + minute), "here"), None);
        assert_eq!(leader(&format!("77 0 {} here", u64::MAX), "here"), None);
    }
}
