//! Orders to runs in progress: cancel, kill, pause, resume.
//!
//! Invariants:
//! - An order is never taken back: a cancelled control stays cancelled, also for runs that have not begun.
//! - Every order wakes every run that listens; no run polls.
//! - `pause_runs` returns when the process trees of all runs are stopped.
//!
//! Not here: what a run does on an order (`run_state`), where orders come from (`signals`).

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::os::Waker;

/// How long `pause_runs` waits for runs that are busy elsewhere, for example in an observer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Cancels, kills, pauses and resumes the runs that listen to it. Clones share one state.
#[derive(Clone, Default)]
pub struct Control {
    shared: Arc<Shared>,
    /// Whether runs that are started with this clone ignore a cancel.
    resolute: bool,
    /// Set when the runs that are started with this clone alone are cancelled.
    called_off: Option<Arc<AtomicBool>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    order: Order,
    paused: bool,
    /// One for each run.
    wakers: Vec<Arc<Waker>>,
    /// Wakers of finished runs, for reuse.
    spare: Vec<Arc<Waker>>,
    /// Number of runs whose process tree is stopped.
    still: usize,
}

/// An order, mildest first, so that `max` is the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    #[default]
    Continue,
    Cancel,
    Kill,
}

impl Control {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends SIGTERM to all runs, and SIGKILL after their grace. Runs that have not begun will not start.
    pub fn cancel(&self) {
        self.change(|state| state.order = state.order.max(Order::Cancel));
    }

    /// Sends SIGKILL to all runs at once.
    pub fn kill(&self) {
        self.change(|state| state.order = Order::Kill);
    }

    /// Stops the process trees of all runs, and their deadlines. Runs that have not begun wait.
    pub fn pause(&self) {
        self.change(|state| state.paused = true);
        let busy = |state: &mut State| state.paused && state.still < state.wakers.len();
        let _ = self.shared.changed.wait_timeout_while(self.state(), PATIENCE, busy);
    }

    pub fn resume(&self) {
        self.change(|state| state.paused = false);
    }

    /// Returns whether a cancel or a kill applies to runs of this clone.
    pub fn is_cancelled(&self) -> bool {
        self.heard(self.state().order) >= Order::Cancel
    }

    /// Waits for some time, or until a cancel or a kill. Returns whether the whole time passed.
    pub fn wait(&self, time: Duration) -> bool {
        let quiet = |state: &mut State| self.heard(state.order) == Order::Continue;
        let waited = self.shared.changed.wait_timeout_while(self.state(), time, quiet);
        waited.expect("nothing panics while it holds the control").1.timed_out()
    }

    /// Returns the same control for work that continues after a cancel: only a kill ends it.
    pub fn resolute(&self) -> Self {
        Self { resolute: true, ..self.clone() }
    }

    /// Returns the same control for runs that can be cancelled separately from the others.
    pub fn apart(&self) -> Self {
        Self { called_off: Some(Arc::default()), ..self.clone() }
    }

    /// Cancels only the runs that were started with this clone, or a clone of it. Without an earlier [`Self::apart`] this does
    /// nothing. An observer may cancel its own run.
    pub fn call_off(&self) {
        if let Some(called_off) = &self.called_off {
            called_off.store(true, Ordering::Relaxed);
            self.change(|_| {});
        }
    }

    /// Returns what an order means for runs of this clone.
    fn heard(&self, order: Order) -> Order {
        let called_off = self.called_off.as_ref().is_some_and(|called_off| called_off.load(Ordering::Relaxed));
        match order {
            Order::Kill => order,
            _ if called_off => Order::Cancel,
            Order::Cancel if self.resolute => Order::Continue,
            _ => order,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("nothing panics while it holds the control")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        for waker in &state.wakers {
            waker.wake();
        }
        self.shared.changed.notify_all();
    }

    /// Notifies a caller that waits in `pause_runs` that a run is stopped or over.
    fn tell(&self, state: &State) {
        if state.paused {
            self.shared.changed.notify_all();
        }
    }

    pub(crate) fn listen(&self) -> std::io::Result<Listener> {
        let mut state = self.state();
        let waker = match state.spare.pop() {
            Some(waker) => waker,
            None => Arc::new(Waker::new()?),
        };
        state.wakers.push(waker.clone());
        drop(state);
        Ok(Listener { control: self.clone(), waker, still: false })
    }
}

/// The side of a control that one run holds.
pub(crate) struct Listener {
    control: Control,
    waker: Arc<Waker>,
    still: bool,
}

impl Listener {
    /// Returns the present order, and whether runs must be stopped. An order takes precedence over a pause.
    pub fn word(&self) -> (Order, bool) {
        let state = self.control.state();
        let order = self.control.heard(state.order);
        (order, state.paused && order == Order::Continue)
    }

    /// Waits while the control is paused. Returns whether the run may begin.
    pub fn may_begin(&self) -> bool {
        let paused = |state: &mut State| state.paused && self.control.heard(state.order) == Order::Continue;
        let mut state = self.control.state();
        // The count changes under the same guard as the end of the wait, so that a pause never counts a starting run as stopped.
        state.still += 1;
        self.control.tell(&state);
        let waited = self.control.shared.changed.wait_while(state, paused);
        let mut state = waited.expect("nothing panics while it holds the control");
        state.still -= 1;
        self.control.heard(state.order) == Order::Continue
    }

    /// Records whether the process tree of this run is stopped.
    pub fn set_still(&mut self, still: bool) {
        if still != self.still {
            self.still = still;
            let mut state = self.control.state();
            state.still = if still { state.still + 1 } else { state.still - 1 };
            self.control.tell(&state);
        }
    }

    /// Clears the wake-up. Call this when the descriptor is readable, before the order is read.
    pub fn clear(&self) {
        self.waker.clear();
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.set_still(false);
        let mut state = self.control.state();
        state.wakers.retain(|waker| !Arc::ptr_eq(waker, &self.waker));
        state.spare.push(self.waker.clone());
        self.control.tell(&state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// Simulates a run that only stops and continues as ordered.
    fn live(control: &Control, begun: &AtomicUsize, over: &AtomicBool) {
        let mut listener = control.listen().expect("a waker");
        listener.may_begin();
        begun.fetch_add(1, Ordering::SeqCst);
        while !over.load(Ordering::SeqCst) {
            listener.set_still(listener.word().1);
            std::thread::yield_now();
        }
    }

    #[test]
    fn nothing_begins_after_a_pause_has_returned() {
        // Enough threads that they contend for the lock when they wake up.
        const RUNS: usize = 8;
        for round in 0..100 {
            let (control, begun, over) = (Control::new(), AtomicUsize::new(0), AtomicBool::new(false));
            control.pause();
            std::thread::scope(|scope| {
                for _ in 0..RUNS {
                    scope.spawn(|| live(&control, &begun, &over));
                }
                while control.state().still < RUNS {
                    std::thread::yield_now();
                }
                control.resume();
                for _ in 0..round * 20 {
                    std::hint::spin_loop();
                }
                control.pause();
                let before = begun.load(Ordering::SeqCst);
                for _ in 0..20 {
                    std::thread::yield_now();
                }
                let after = begun.load(Ordering::SeqCst);
                over.store(true, Ordering::SeqCst);
                control.resume();
                assert_eq!(before, after, "in round {round}");
            });
        }
    }
}
