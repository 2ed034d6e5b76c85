//! Who runs programs on this machine, and what the dead among them have left.
//!
//! An owner is a file in a directory, and is alive as long as it holds the kernel's lock on that file, which no crash
//! can leave behind. A line of the file is a leader that it started: its number, the two moments between which it was
//! started, and the boot they belong to. To note two moments is quicker than to ask for the start time.
//!
//! Invariants:
//! - A process is ended only if its environment names a dead owner, or if number, start time and boot fit a
//!   leader on a dead owner's list: then its whole session is. Never this process, those above it, or those below it.
//! - A file that is damaged ends nothing that an undamaged one would not.
//!
//! Weaker outside Linux: there is no way to see a process's environment or start time, so files of the dead are only
//! removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::os::{self, Legacy};

/// How long a lock on our own new file may be in the way: somebody is just looking whether we are alive.
const PATIENCE: Duration = Duration::from_millis(500);

/// This process as an owner of runs, until it is dropped or dies.
#[derive(Debug)]
pub struct Roster {
    path: PathBuf,
    name: String,
    /// Locked as long as it is open.
    file: File,
    boot: String,
    runs: AtomicU64,
}

/// A dead owner, and the processes of its that were ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    pub name: String,
    pub ended: Vec<i32>,
}

impl Roster {
    /// Makes this process the owner of a name.
    ///
    /// It must be a name that nobody else on this machine has or had, in whatever directory: the processes of its runs
    /// are known by it alone.
    pub fn enlist(directory: &Path, name: &str) -> io::Result<Self> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("cannot use {name:?} as an owner's name")));
        }
        std::fs::create_dir_all(directory)?;
        let path = directory.join(name);
        let give_up = Instant::now() + PATIENCE;
        loop {
            let file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Whoever swept it in between has unlinked it: then nobody would see our lock.
                Ok(()) if file.metadata()?.nlink() == 0 => {}
                Ok(()) => {
                    let boot = os::boot_id().unwrap_or_default();
                    return Ok(Self { path, name: name.to_owned(), file, boot, runs: AtomicU64::new(0) });
                }
                Err(Errno::WOULDBLOCK) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(1)),
                Err(Errno::WOULDBLOCK) => {
                    let text = format!("cannot become {name}: somebody alive is already");
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A tag for the processes of a new run.
    pub(crate) fn next_tag(&self) -> String {
        format!("{}.{}", self.name, self.runs.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Puts a leader on the list that was started between then and now. A full disk does not keep it from running: its
    /// tag is known as well.
    pub(crate) fn note(&self, leader: Pid, then: u64) {
        let line = format!("{} {then} {} {}\n", leader.as_raw_nonzero(), os::ticks(), self.boot);
        let _ = (&self.file).write_all(line.as_bytes());
    }
}

impl Drop for Roster {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether the owner of a name is alive.
pub fn is_alive(directory: &Path, name: &str) -> bool {
    let Ok(file) = File::open(directory.join(name)) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Ends what owners who are dead have left in their processes, and forgets the owners.
pub fn sweep(directory: &Path) -> io::Result<Vec<Swept>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let boot = os::boot_id().unwrap_or_default();
    let mut dead = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !entry.file_type()?.is_file() || name.starts_with('.') {
            continue;
        }
        if let Some((lock, text)) = take_over(&entry.path()) {
            let leaders = text.lines().filter_map(|line| leader(line, &boot)).collect();
            dead.push((entry.path(), lock, Legacy { name, leaders }));
        }
    }
    let mut swept = Vec::with_capacity(dead.len());
    for (path, lock, legacy) in dead {
        let ended = os::end_orphaned(&legacy);
        std::fs::remove_file(path)?;
        drop(lock);
        swept.push(Swept { name: legacy.name, ended });
    }
    Ok(swept)
}

/// Locks the file of an owner who is dead, and reads it.
fn take_over(path: &Path) -> Option<(File, String)> {
    let mut file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    // Somebody else may have swept it, and somebody alive have taken the name since.
    let is_there = file.metadata().ok()?.nlink() > 0;
    is_there.then(|| (file, String::from_utf8_lossy(&bytes).into_owned()))
}

/// A line of the list, if it is whole and of this boot.
fn leader(line: &str, boot: &str) -> Option<(Pid, RangeInclusive<u64>)> {
    let mut words = line.split(' ');
    let (pid, from, to, of) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let pid = Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 1)?)?;
    let times = from.parse().ok()?..=to.parse().ok()?;
    (words.next().is_none() && of == boot).then_some((pid, times))
}
