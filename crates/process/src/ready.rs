//! Which of several descriptors have something for us.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long to rest when the system refuses to say what there is, for want of memory for example.
const REST: Duration = Duration::from_millis(10);

/// A descriptor and what is wanted of it. What is `None` is never ready.
pub type Awaited<'a> = Option<(BorrowedFd<'a>, PollFlags)>;

/// Waits until one of them is ready, or until then, and says which are, in their order.
pub fn ready<const N: usize>(all: &[Awaited<'_>; N], until: Option<Instant>) -> [bool; N] {
    let found = ready_of(all, until);
    std::array::from_fn(|index| found[index])
}

/// The same for as many as there are.
pub fn ready_of(all: &[Awaited<'_>], until: Option<Instant>) -> Vec<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let longest = Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 };
    let timeout = left.map(|left| left.try_into().unwrap_or(longest));
    let mut descriptors: Vec<PollFd<'_>> =
        all.iter().flatten().map(|(descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)).collect();
    let found = poll(&mut descriptors, timeout.as_ref()).unwrap_or_else(|error| {
        // An interruption is news of nothing, and nor is another error, but that may come again at once.
        if error != Errno::INTR {
            std::thread::sleep(REST);
        }
        0
    });
    let mut results = descriptors.iter().map(|descriptor| found > 0 && !descriptor.revents().is_empty());
    all.iter().map(|place| place.is_some() && results.next().unwrap_or(false)).collect()
}
