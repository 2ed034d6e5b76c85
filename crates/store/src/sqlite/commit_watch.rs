//! Waits for commits of other processes without polling the log.
//!
//! A writer touches the time stamp of the store's file after its commit, and the kernel notifies every process that watches the
//! file. A process that dies between its commit and the touch leaves the others to their slow second poll.

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_engine::Seq;

use super::{SqliteStore, queries};
use crate::StoreError;

/// Poll interval of a waiter with a watch.
#[cfg(target_os = "linux")]
const WATCHED_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Poll interval without a watch: short enough to seem immediate to a user.
const UNWATCHED_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Notifies all waiters of a commit.
pub(super) fn notify_waiters(path: &Path) {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    // A waiter without a notification polls soon.
    let _ = utimensat(CWD, path, &Timestamps { last_access: now, last_modification: now }, AtFlags::empty());
}

pub(super) fn wait_for_commit(store: &SqliteStore, after: Seq, patience: Duration) -> Result<(), StoreError> {
    let began = Instant::now();
    // Kept after the first wait: removing a watch costs more than most waits.
    let bell = store.commit_watch.get_or_init(|| CommitWatch::watch_store(store.path()));
    while queries::read_head(store)? <= after {
        let Some(left) = patience.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else { break };
        bell.wait_for_change(left);
    }
    Ok(())
}

/// A watch for commits. It polls slowly if the system has no watch left.
pub(super) struct CommitWatch {
    #[cfg(target_os = "linux")]
    watch: Option<rustix::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl CommitWatch {
    /// Starts to watch, so that nothing is missed between a read and a wait.
    fn watch_store(path: &Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        Self { watch: watch.and_then(|watch| add_watch(&watch, path, WatchFlags::ATTRIB).map(|_| watch)).ok() }
    }

    /// Returns on a notification, or when it is time to poll.
    fn wait_for_change(&self, patience: Duration) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(watch) = &self.watch else { return std::thread::sleep(patience.min(UNWATCHED_POLL_INTERVAL)) };
        let patience = patience.min(WATCHED_POLL_INTERVAL);
        let patience = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        // The kind of change does not matter: the caller reads the log next.
        if poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&patience)).is_ok() {
            let mut buffer = [0_u8; 1024];
            while matches!(rustix::io::read(watch, &mut buffer), Ok(1..)) {}
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl CommitWatch {
    fn watch_store(_: &Path) -> Self {
        Self {}
    }

    fn wait_for_change(&self, patience: Duration) {
        std::thread::sleep(patience.min(UNWATCHED_POLL_INTERVAL));
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The system has a limited number of watches, and other programs may use them all.
    #[test]
    fn unwatched_store_is_polled() {
        assert!(CommitWatch::watch_store(Path::new("/no/such/file")).watch.is_none());
        let began = Instant::now();
        CommitWatch { watch: None }.wait_for_change(Duration::from_secs(600));
        assert!(began.elapsed() >= UNWATCHED_POLL_INTERVAL && began.elapsed() < Duration::from_secs(60));
    }
}
