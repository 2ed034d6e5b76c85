//! How long this process stood still (Ctrl-Z), so that such time is not told as time of the work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Default)]
pub struct Standstill(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    since: Option<Instant>,
    total: Duration,
    times: u32,
}

impl Standstill {
    pub fn begin(&self) {
        self.state().since = Some(Instant::now());
    }

    /// Answers how long it was.
    pub fn end(&self) -> Duration {
        let mut state = self.state();
        let time = state.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        state.total += time;
        state.times += 1;
        time
    }

    /// How long it was in all, until now.
    pub fn total(&self) -> Duration {
        let state = self.state();
        state.total + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How often it was.
    pub fn times(&self) -> u32 {
        self.state().times
    }

    /// What came since it was so long does not count: nothing else was going on either.
    pub fn forget_since(&self, total: Duration) {
        self.state().total = total;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
