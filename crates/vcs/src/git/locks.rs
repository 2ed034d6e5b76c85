//! Locks: git's own, which a crash leaves behind, and those of Windlass, which it does not.
//!
//! Invariants: while holding a lock of our own, Windlass removes a lock of git only if no present process could hold it; and only
//! - among the admin files of a Windlass worktree, or
//! - on refs or settings, which all worktrees share, after a minimum age: an invisible process, for example in another
//!   container, is done by then. The index of any other worktree is left alone.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use windlass_process::file;

use super::error::LockHolder;
use super::{Error, GitRepository};

/// The interval and the number of attempts to lock a worktree that another Windlass process uses.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_LOCK_POLLS: u32 = 500;
/// The pauses while a process may hold a lock of git, in milliseconds.
const RETRY_PAUSES_MS: [u64; 7] = [5, 20, 50, 100, 200, 400, 800];
/// The minimum age of a shared lock before it counts as left behind.
const MIN_STALE_AGE: Duration = Duration::from_secs(5);
/// The tolerance between the times of files and of processes.
#[cfg(target_os = "linux")]
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// A lock on a worktree, a checkout or the creation of worktrees. A crash releases it.
#[derive(Debug)]
pub(super) struct RepositoryLock {
    file: File,
}

impl RepositoryLock {
    /// Returns the time since a file was made, by the clock of the disk that holds both.
    fn elapsed_since(&self, made: SystemTime) -> Option<Duration> {
        (&self.file).write_all(b".").ok()?;
        self.file.metadata().ok()?.modified().ok()?.duration_since(made).ok()
    }
}

impl GitRepository {
    /// Returns the path of a Windlass file about a worktree.
    pub(super) fn worktree_file(&self, worktree: &Path, kind: &str) -> PathBuf {
        let name = worktree.file_name().unwrap_or_default().to_string_lossy();
        self.common.join("windlass").join(format!("{name}.{kind}"))
    }

    /// Locks a worktree against other Windlass processes.
    pub(super) fn lock_worktree(&self, worktree: &Path) -> Result<RepositoryLock, Error> {
        self.lock_file(&self.worktree_file(worktree, "held"), worktree)
    }

    /// Locks the creation of worktrees against other Windlass processes: git cannot read half-made worktrees of others.
    pub(super) fn lock_creation(&self) -> Result<RepositoryLock, Error> {
        self.lock_file(&self.common.join("windlass/making"), &self.root)
    }

    /// Locks a used checkout against its removal by other Windlass processes.
    pub(super) fn lock_checkout_use(&self, checkout: &Path) -> Result<RepositoryLock, Error> {
        self.lock_file(&self.worktree_file(checkout, "used"), checkout)
    }

    /// Does the same, or returns `None` if the checkout is used.
    pub(super) fn try_lock_checkout_use(&self, checkout: &Path) -> Result<Option<RepositoryLock>, Error> {
        let path = self.worktree_file(checkout, "used");
        let file = open_lock(&path, &self.common)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RepositoryLock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(Error::io_error("lock", path)(source)),
        }
    }

    fn lock_file(&self, path: &Path, of: &Path) -> Result<RepositoryLock, Error> {
        let file = open_lock(path, &self.common)?;
        for _ in 0..MAX_LOCK_POLLS {
            match file.try_lock() {
                Ok(()) => return Ok(RepositoryLock { file }),
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL_INTERVAL),
                Err(TryLockError::Error(source)) => return Err(Error::io_error("lock", path)(source)),
            }
        }
        Err(Error::Busy { path: of.to_owned() })
    }
}

fn open_lock(path: &Path, common: &Path) -> Result<File, Error> {
    let directory = path.parent().unwrap_or(common);
    fs::create_dir_all(directory).map_err(Error::io_error("make", directory))?;
    file::open_lock_file(path).map_err(Error::io_error("open", path))
}

/// Adds to a lock error the process that may hold the lock.
pub(super) fn name_lock_holder(error: Error, repository: &GitRepository) -> Error {
    let Error::Locked { path, .. } = error else { return error };
    let holder = holder(&path, &work_directories(&path, repository), Duration::ZERO);
    Error::Locked { path, holder }
}

/// Returns every directory in which a git of this repository may run, in any worktree.
fn work_directories(lock: &Path, repository: &GitRepository) -> Vec<PathBuf> {
    let own = [&repository.common, &repository.root].into_iter().cloned().chain(lock.parent().map(Path::to_owned));
    own.chain(repository.worktree_entries().into_iter().flat_map(|entry| [entry.path, entry.admin])).collect()
}

/// Removes a shared lock that a dead git left.
pub(super) fn clear_shared_lock(lock: &Path, repository: &GitRepository) -> bool {
    let shared = ["packed-refs.lock", "config.lock"].iter().any(|name| lock == repository.common.join(name));
    if !(shared || lock.starts_with(repository.common.join("refs"))) {
        return false;
    }
    // While we waited, the lock may have disappeared, or a new one taken its place.
    let Ok(held) = repository.lock_file(&repository.common.join("windlass/clearing"), &repository.root) else {
        return false;
    };
    let Some(found) = FoundLock::inspect_lock(lock) else { return false };
    let Some(age) = held.elapsed_since(found.made).filter(|age| *age >= MIN_STALE_AGE) else { return false };
    // Git processes of Windlass that wait for the lock started after it was made.
    holder(lock, &work_directories(lock, repository), age).is_none()
        && found.remove_if_same(lock).is_ok_and(|removed| removed)
}

/// The identity of a lock file, which tells it from a later one at the same path.
#[derive(Debug, PartialEq, Eq)]
struct FoundLock {
    file: (u64, u64),
    made: SystemTime,
}

impl FoundLock {
    fn inspect_lock(lock: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(lock).ok()?;
        Some(Self { file: (found.dev(), found.ino()), made: found.modified().ok()? })
    }

    /// Removes the lock. Returns whether it was still the same.
    fn remove_if_same(&self, lock: &Path) -> io::Result<bool> {
        if Self::inspect_lock(lock).as_ref() != Some(self) {
            return Ok(false);
        }
        match fs::remove_file(lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }
    }
}

/// Removes locks that a dead git left among the admin files of a Windlass worktree. `_held` proves that no other Windlass
/// process uses it.
pub(super) fn clear_worktree_locks(admin: &Path, worktree: &Path, _held: &RepositoryLock) -> Result<(), Error> {
    let places = [admin.to_owned(), worktree.to_owned()];
    for name in ["index.lock", "HEAD.lock", "ORIG_HEAD.lock"] {
        let path = admin.join(name);
        let mut pauses = RETRY_PAUSES_MS.into_iter();
        while let Some(found) = FoundLock::inspect_lock(&path) {
            match (holder(&path, &places, Duration::ZERO), pauses.next()) {
                (None, _) => drop(found.remove_if_same(&path).map_err(Error::io_error("remove", &path))?),
                (Some(_), Some(pause)) => thread::sleep(Duration::from_millis(pause)),
                (holder, None) => return Err(Error::Locked { path, holder }),
            }
        }
    }
    Ok(())
}

/// Returns a process that could hold a lock: a git whose working directory, arguments or environment name one of these
/// directories, or cannot be read; or any process with the lock file open. A process that started after the lock was made
/// does not hold it.
#[cfg(target_os = "linux")]
fn holder(lock: &Path, directories: &[PathBuf], made: Duration) -> Option<LockHolder> {
    let lock = fs::canonicalize(lock).unwrap_or_else(|_| lock.to_owned());
    let is_younger = |pid: &u32| windlass_process::process_age(*pid).is_some_and(|age| age + CLOCK_SLACK < made);
    let Ok(processes) = fs::read_dir("/proc") else { return Some(LockHolder::unknown_process()) };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| !is_younger(pid)).find_map(|pid| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let read = |name: &str| file::read_kernel_file(&process.join(name)).unwrap_or_default();
        let command = String::from_utf8_lossy(&read("comm")).trim_end().to_owned();
        let is_in = |path: &Path| directories.iter().any(|directory| path.starts_with(directory));
        let names = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            directories.iter().any(|directory| text.contains(&*directory.to_string_lossy()))
        };
        let is_at_work = || {
            // An ending process has no working directory; one without permission to look might be anywhere.
            let place = fs::read_link(process.join("cwd"));
            place.map_or_else(|error| error.kind() == io::ErrorKind::PermissionDenied, |place| is_in(&place))
                || names(&read("cmdline"))
                || names(&read("environ"))
        };
        let has_it_open = || {
            let open = fs::read_dir(process.join("fd")).ok().into_iter().flatten().flatten();
            open.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == lock)
        };
        let could = command.starts_with("git") && is_at_work() || has_it_open();
        could.then_some(LockHolder { pid, command })
    })
}

/// Without `/proc`, any process could hold the lock.
#[cfg(not(target_os = "linux"))]
fn holder(_: &Path, _: &[PathBuf], _: Duration) -> Option<LockHolder> {
    Some(LockHolder::unknown_process())
}
