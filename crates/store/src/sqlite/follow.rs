//! Waiting for other processes without asking again and again.
//!
//! Whoever commits touches the time stamp of the store's file, and the kernel tells everybody who watches it. A process
//! that dies between its commit and the touch leaves the others to their slow second look.

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_engine::Seq;

use super::{Sqlite, queries};
use crate::StoreError;

/// How long a waiter trusts that it would have been told.
#[cfg(target_os = "linux")]
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// Elsewhere there is nobody to tell us: look often enough to seem immediate to a person.
#[cfg(not(target_os = "linux"))]
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// Tells everybody who waits that there is something new.
pub(super) fn wake(path: &Path) {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    // Those who are not told look again soon.
    let _ = utimensat(CWD, path, &Timestamps { last_access: now, last_modification: now }, AtFlags::empty());
}

pub(super) fn wait(store: &Sqlite, after: Seq, patience: Duration) -> Result<(), StoreError> {
    let began = Instant::now();
    let bell = Bell::at(store.path())?;
    while queries::head(store)? <= after {
        let Some(left) = patience.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else { break };
        bell.listen(left.min(SECOND_LOOK))?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
struct Bell {
    watch: rustix::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Bell {
    /// Starts to watch, so that nothing is missed between a look and a wait.
    fn at(path: &Path) -> Result<Self, StoreError> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let fail = |error: rustix::io::Errno| StoreError::io(path, error.into());
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(fail)?;
        add_watch(&watch, path, WatchFlags::ATTRIB).map_err(fail)?;
        Ok(Self { watch })
    }

    fn listen(&self, patience: Duration) -> Result<(), StoreError> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let patience = Timespec::try_from(patience).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut watched = [PollFd::new(&self.watch, PollFlags::IN)];
        match poll(&mut watched, Some(&patience)) {
            // What exactly happened does not matter: the log is looked at next.
            Ok(_) | Err(rustix::io::Errno::INTR) => self.drain(),
            Err(error) => return Err(StoreError::io(Path::new("inotify"), error.into())),
        }
        Ok(())
    }

    fn drain(&self) {
        let mut buffer = [0_u8; 1024];
        while matches!(rustix::io::read(&self.watch, &mut buffer), Ok(1..)) {}
    }
}

#[cfg(not(target_os = "linux"))]
struct Bell;

#[cfg(not(target_os = "linux"))]
impl Bell {
    fn at(_: &Path) -> Result<Self, StoreError> {
        Ok(Self)
    }

    fn listen(&self, patience: Duration) -> Result<(), StoreError> {
        std::thread::sleep(patience);
        Ok(())
    }
}
