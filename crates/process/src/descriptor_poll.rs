//! Polls several descriptors at once.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Pause after `poll` fails, for example for want of memory.
const POLL_ERROR_BACKOFF: Duration = Duration::from_millis(10);

/// A descriptor and the events to poll for. `None` is never ready.
pub type PollRequest<'a> = Option<(BorrowedFd<'a>, PollFlags)>;

/// Waits until a descriptor is ready, or until the deadline. Returns which are ready, in their order.
pub fn poll_descriptors<const N: usize>(all: &[PollRequest<'_>; N], until: Option<Instant>) -> [bool; N] {
    let found = poll_descriptor_list(all, until);
    std::array::from_fn(|index| found[index])
}

/// Does the same for any number of descriptors.
pub fn poll_descriptor_list(all: &[PollRequest<'_>], until: Option<Instant>) -> Vec<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let longest = Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 };
    let timeout = left.map(|left| left.try_into().unwrap_or(longest));
    let mut descriptors: Vec<PollFd<'_>> =
        all.iter().flatten().map(|(descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)).collect();
    let found = poll(&mut descriptors, timeout.as_ref()).unwrap_or_else(|error| {
        // An interruption or another error means that nothing is ready, but another error may recur at once.
        if error != Errno::INTR {
            std::thread::sleep(POLL_ERROR_BACKOFF);
        }
        0
    });
    let mut results = descriptors.iter().map(|descriptor| found > 0 && !descriptor.revents().is_empty());
    all.iter().map(|place| place.is_some() && results.next().unwrap_or(false)).collect()
}
